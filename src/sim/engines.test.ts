import { describe, expect, it } from 'vitest';
import type { Clock } from '../core/clock.ts';
import { virtualClock } from '../core/clock.ts';
import type { Engine, Observer } from '../core/engine.ts';
import { measure } from '../core/measure.ts';
import { Recorder } from '../core/recorder.ts';
import type { RequestSpec } from '../core/request.ts';
import { ContinuousReplica } from './continuous.ts';
import { limitsOf } from './limits.ts';
import { pacedClock } from './paced.ts';
import { nullEngine, scriptedEngine } from './scripted.ts';
import { simEngine } from './sim-engine.ts';
import { simulate, simulateInto } from './simulate.ts';
import { linearModel, listed, poisson, spec } from './testing.ts';

interface Call {
  readonly what: string;
  readonly t: number;
}

/** Notes every call, and passes it on to a recorder. */
function recorded(calls: Call[], recorder?: Recorder): Observer {
  const note = (what: string, t: number): void => {
    calls.push({ what, t });
  };
  return {
    dispatched(t) {
      note('dispatched', t);
      recorder?.dispatched(t);
    },
    connected(t, how) {
      note('connected', t);
      recorder?.connected(t, how);
    },
    sent(t) {
      note('sent', t);
      recorder?.sent(t);
    },
    headers(t, status) {
      note('headers', t);
      recorder?.headers(t, status);
    },
    event(t, event, coalesced) {
      note('event', t);
      recorder?.event(t, event, coalesced);
    },
    ended(t, ending) {
      note(`ended:${ending.kind}`, t);
      recorder?.ended(t, ending);
    },
  };
}

const ENGINES: readonly [string, (clock: Clock) => Engine][] = [
  ['null', nullEngine],
  ['scripted', (clock) => scriptedEngine(clock, { ttft: 30, itl: 7, stagger: 2 })],
  ['scripted without gaps', (clock) => scriptedEngine(clock, { ttft: 0, itl: 0 })],
  [
    'sim',
    (clock) =>
      simEngine(
        new ContinuousReplica(
          linearModel({ base: 3, perSequence: 0.5 }),
          limitsOf({ kvBlocks: 40, maxSeqs: 4, maxBatchedTokens: 64, maxQueue: 8 }),
        ),
        clock,
      ),
  ],
];

describe.each(ENGINES)('Engine rules: %s', (_name, make) => {
  it('calls nobody inside submit, never goes back, ends exactly once, and last', () => {
    const clock = virtualClock(17);
    const engine = make(clock);
    const all: Call[][] = [];
    for (let i = 0; i < 20; i++) {
      clock.at(17 + i * 3, () => {
        const calls: Call[] = [];
        all.push(calls);
        engine.submit(spec(i, 20, 1 + (i % 7)), recorded(calls));
        expect(calls).toEqual([]);
      });
    }
    clock.runAll();
    expect(all.length).toBe(20);
    for (const calls of all) {
      expect(calls.slice(0, 2).map((c) => c.what)).toEqual(['dispatched', 'sent']);
      expect(calls.filter((c) => c.what.startsWith('ended')).length).toBe(1);
      expect(calls.at(-1)!.what).toMatch(/^ended/);
      for (let i = 1; i < calls.length; i++) expect(calls[i]!.t).toBeGreaterThanOrEqual(calls[i - 1]!.t);
    }
  });

  it('says nothing after cancel, whenever that comes', () => {
    for (let after = 0; after < 60; after += 4) {
      const clock = virtualClock();
      const engine = make(clock);
      const calls: Call[] = [];
      const other: Call[] = [];
      const cancel = engine.submit(spec(0, 30, 8), recorded(calls));
      engine.submit(spec(1, 30, 8), recorded(other));
      clock.advance(after);
      const before = calls.length;
      cancel();
      clock.runAll();
      expect(calls.length).toBe(before);
      expect(other.at(-1)!.what).toBe('ended:closed');
      cancel();
    }
  });

  it('says nothing after a cancel from inside its own observer', () => {
    for (const at of ['dispatched', 'sent', 'event']) {
      const clock = virtualClock();
      const calls: Call[] = [];
      const observer = recorded(calls);
      const stop = (what: string): void => {
        if (what === at) cancel();
      };
      const cancel = make(clock).submit(spec(0, 30, 8), {
        ...observer,
        dispatched: (t) => {
          observer.dispatched(t);
          stop('dispatched');
        },
        sent: (t) => {
          observer.sent(t);
          stop('sent');
        },
        event: (t, e, c) => {
          observer.event(t, e, c);
          stop('event');
        },
      });
      clock.runAll();
      expect(calls.at(-1)!.what).toBe(at);
    }
  });

  it('may be submitted to from inside an observer', () => {
    const clock = virtualClock();
    const engine = make(clock);
    const second: Call[] = [];
    const first: Call[] = [];
    const observer = recorded(first);
    engine.submit(spec(0, 5, 2), {
      ...observer,
      ended: (t, e) => {
        observer.ended(t, e);
        engine.submit(spec(1, 5, 2), recorded(second));
        expect(second).toEqual([]);
      },
    });
    clock.runAll();
    expect(second.at(-1)!.what).toBe('ended:closed');
  });
});

describe('scriptedEngine', () => {
  it('keeps absolute deadlines', () => {
    const clock = virtualClock(100);
    const engine = scriptedEngine(clock, { ttft: 50, itl: 20, tokens: 4 });
    const recorder = new Recorder(spec(0, 10, 128), 100);
    engine.submit(spec(0, 10, 128), recorded([], recorder));
    clock.runAll();
    const record = recorder.record();
    expect([...record.timeline.at]).toEqual([150, 170, 190, 210]);
    expect(record).toMatchObject({ outcome: 'completed', finish: 'stop', usage: { input: 10, output: 4 } });
    expect(measure(record)).toMatchObject({ ttft: 50, tpot: 20, n: 4, exactness: 'exact' });
  });
  it('staggers streams within one gap', () => {
    const clock = virtualClock();
    const engine = scriptedEngine(clock, { ttft: 10, itl: 9, tokens: 2, stagger: 4 });
    const all = [0, 1, 2, 3].map((i) => {
      const calls: Call[] = [];
      engine.submit(spec(i, 1, 2), recorded(calls));
      return calls;
    });
    clock.runAll();
    expect(all.map((calls) => calls.find((c) => c.what === 'event')!.t)).toEqual([10, 14, 18, 13]);
  });
  it('keeps several choices apart', () => {
    const clock = virtualClock();
    const s: RequestSpec = spec(0, 1, 3, { choices: 2 });
    const recorder = new Recorder(s, 0);
    scriptedEngine(clock, { ttft: 10, itl: 5 }).submit(s, recorded([], recorder));
    clock.runAll();
    expect([...recorder.record().timeline.choice]).toEqual([0, 1, 0, 1, 0, 1]);
    expect(recorder.record()).toMatchObject({ outcome: 'completed', finishReason: 'length|length' });
  });
  it('refuses negative times', () => {
    expect(() => scriptedEngine(virtualClock(), { ttft: -1, itl: 0 })).toThrow(/scripted ttft -1 ms must be 0 or more/);
  });
});

describe('pacedClock', () => {
  it('runs at its speed from 0, without drift over chained deadlines', () => {
    const wall = virtualClock(500);
    const clock = pacedClock(wall, 10);
    expect(clock.now()).toBe(0);
    const seen: number[] = [];
    const tick = (k: number): void => {
      seen.push(wall.now());
      if (k < 100) clock.at(6 * (k + 1), () => tick(k + 1));
    };
    clock.at(6, () => tick(1));
    wall.runAll();
    expect(seen[0]).toBeCloseTo(500.6, 9);
    expect(seen[99]).toBeCloseTo(560, 9);
    expect(clock.now()).toBeCloseTo(600, 9);
  });
  it('refuses a speed that is no speed', () => {
    expect(() => pacedClock(virtualClock(), 0)).toThrow(/speed 0 is not a positive number/);
  });
});

describe('simEngine', () => {
  it('tells tokens in time, on a paced clock, with the step ends as stamps', () => {
    const wall = virtualClock(1000);
    const clock = pacedClock(wall, 2);
    const engine = simEngine(
      new ContinuousReplica(linearModel({ base: 10 }), limitsOf({ kvBlocks: 40, maxSeqs: 4, maxBatchedTokens: 64 })),
      clock,
    );
    const told: [number, number][] = [];
    engine.submit(spec(0, 5, 4), { ...recorded([]), event: (t) => told.push([t, wall.now()]) });
    wall.runAll();
    expect(told).toEqual([
      [10, 1005],
      [20, 1010],
      [30, 1015],
      [40, 1020],
    ]);
  });

  it('refuses over a full queue, and what can never fit', () => {
    const clock = virtualClock();
    const engine = simEngine(
      new ContinuousReplica(
        linearModel({ base: 10 }),
        limitsOf({ kvBlocks: 4, maxSeqs: 1, maxBatchedTokens: 64, maxQueue: 1 }),
      ),
      clock,
    );
    const outcomes: (string | undefined)[] = [];
    for (const s of [spec(0, 5, 4), spec(1, 500, 4), spec(2, 5, 4), spec(3, 5, 4)]) {
      const recorder = new Recorder(s, 0);
      engine.submit(s, {
        ...recorded([], recorder),
        ended: (t, e) => {
          recorder.ended(t, e);
          outcomes.push(`${s.operation} ${recorder.record().outcome}`);
        },
      });
    }
    clock.runAll();
    expect(outcomes.sort()).toEqual(['0 completed', '1 failed', '2 rejected', '3 rejected']);
  });
});

describe('several choices', () => {
  it('are refused by both doors, which serve single sequences', () => {
    const cluster = (): ContinuousReplica =>
      new ContinuousReplica(linearModel({ base: 10 }), limitsOf({ kvBlocks: 40, maxSeqs: 4, maxBatchedTokens: 64 }));
    const s = spec(0, 5, 4, { choices: 2 });
    const clock = virtualClock();
    const recorder = new Recorder(s, 0);
    simEngine(cluster(), clock).submit(s, recorded([], recorder));
    clock.runAll();
    expect(recorder.record()).toMatchObject({ outcome: 'failed', reason: 'engine' });
    expect(() => simulate(listed([{ at: 0, spec: s }]), cluster(), () => undefined)).toThrow(/asks for 2 choices/);
  });
});

describe('simulateInto', () => {
  it('waits for a full sink and loses nothing', async () => {
    let held = 0;
    let waits = 0;
    const seen: number[] = [];
    await simulateInto(
      listed(poisson(50, 100, 3, (i) => spec(i, 10, 3))),
      new ContinuousReplica(linearModel({ base: 1 }), limitsOf({ kvBlocks: 400, maxSeqs: 8, maxBatchedTokens: 64 })),
      {
        add(record) {
          seen.push(record.operation);
          held++;
        },
        get full() {
          return held >= 8;
        },
        async drained() {
          waits++;
          held = 0;
        },
        close: () => Promise.resolve(),
      },
    );
    expect(seen.sort((a, b) => a - b)).toEqual(Array.from({ length: 50 }, (_, i) => i));
    expect(waits).toBeGreaterThan(3);
  });
});
