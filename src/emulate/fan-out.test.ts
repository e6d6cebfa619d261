import { describe, expect, it } from 'vitest';
import { type Engine, Recorder, type RequestSpec, virtualClock } from '../core/index.ts';
import { scriptedEngine } from '../sim/index.ts';
import { submitChoices } from './fan-out.ts';

const SPEC: RequestSpec = {
  operation: 0,
  attempt: 0,
  class: 'default',
  inputTokens: 4,
  outputTokens: 5,
  choices: 3,
  stream: true,
  ignoreEos: true,
};

describe('several choices', () => {
  it('are as many requests to the engine and one to whoever asked', () => {
    const clock = virtualClock();
    const recorder = new Recorder(SPEC, 0);
    submitChoices(scriptedEngine(clock, { ttft: 10, itl: 2, stagger: 0.5 }), SPEC, recorder);
    clock.runAll();
    const record = recorder.record();
    expect(record.outcome).toBe('completed');
    expect(record.finishReason).toBe('length|length|length');
    for (const choice of [0, 1, 2]) expect(record.timeline.choice.filter((c) => c === choice)).toHaveLength(5);
  });

  it('all stop when cancelled, and nobody is told more', () => {
    const clock = virtualClock();
    const recorder = new Recorder(SPEC, 0);
    let open = 0;
    const inner = scriptedEngine(clock, { ttft: 10, itl: 2 });
    const counting: Engine = {
      ...inner,
      submit(spec, to) {
        open++;
        const cancel = inner.submit(spec, to);
        return () => {
          open--;
          cancel();
        };
      },
    };
    const cancel = submitChoices(counting, SPEC, recorder);
    clock.advance(13);
    cancel();
    clock.runAll();
    expect(open).toBe(0);
    expect(recorder.isEnded).toBe(false);
  });

  it('end together at the first that fails', () => {
    const clock = virtualClock();
    const recorder = new Recorder(SPEC, 0);
    const inner = scriptedEngine(clock, { ttft: 10, itl: 2 });
    let n = 0;
    const failing: Engine = {
      ...inner,
      submit: (spec, to) =>
        n++ === 1 ? clock.at(12, () => to.ended(12, { kind: 'refused', detail: 'full' })) : inner.submit(spec, to),
    };
    submitChoices(failing, SPEC, recorder);
    clock.runAll();
    expect(recorder.record()).toMatchObject({ outcome: 'rejected', stamps: { ended: 12 } });
  });
});
