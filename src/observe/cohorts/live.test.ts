import { describe, expect, it } from 'vitest';
import { contractOf, judgeRecord, LEDGER, Recorder, type RequestSpec } from '../../core/index.ts';
import { LogSketch } from '../../stats/index.ts';
import { type FinalOperation, LiveCohorts, type LivePresent } from './index.ts';

const contract = contractOf({ ttft: 500 }, { deadline: 30_000 });
const NOW: Omit<LivePresent, 'now'> = {
  inFlight: [],
  queued: 0,
  upstreams: [],
  records: {
    written: 0,
    pending: 0,
    dropped: 0,
    problem: null,
    passed_through: 0,
    unreadable: {},
    listener_failures: 0,
  },
};

function live(): LiveCohorts {
  return new LiveCohorts({
    boundary: 'proxy',
    instance: '127.0.0.1:1',
    epochWall: 1_000_000,
    contractFor: () => contract,
    window: 1000,
    keep: 3,
  });
}

function spec(operation: number): RequestSpec {
  return {
    operation,
    attempt: 0,
    class: 'default',
    inputTokens: 0,
    outputTokens: 0,
    choices: 1,
    stream: true,
    ignoreEos: false,
  };
}

/** Arrives at `at`, first output `ttft` later (none: it fails). */
function operation(number: number, at: number, ttft: number | undefined, name = 'default'): FinalOperation {
  const recorder = new Recorder({ ...spec(number), class: name }, at);
  if (ttft === undefined) recorder.ended(at + 50, { kind: 'http-error', status: 500, detail: '' });
  else {
    recorder.event(at + ttft, { outputs: [{ choice: 0, kind: 'text', tokens: 1 }] }, false);
    recorder.event(at + ttft + 10, { outputs: [], finishes: [{ choice: 0, reason: 'stop' }] }, false);
    recorder.ended(at + ttft + 10, { kind: 'closed' });
  }
  const record = recorder.record();
  const { metrics, verdict } = judgeRecord(record, contract);
  const arrival = { operation: number, at, class: name, tenant: '' };
  return { ...arrival, record, attempts: [record], metrics, verdict, contract, groupedBy: 'none' };
}

describe('live cohorts', () => {
  it('puts an operation into the window of its arrival, pending until it is final', () => {
    const cohorts = live();
    const late = operation(1, 900, 700);
    cohorts.arrived(late);
    cohorts.arrived(operation(2, 1100, 100));
    const before = cohorts.snapshot({
      ...NOW,
      now: 1300,
      inFlight: [{ operation: 1, at: 900, class: 'default', tenant: '', hasOutput: false }],
    });
    expect(before.windows.map((w) => [w.start_s, w.state, w.all.pending])).toEqual([
      [1000, 'settling', 1],
      [1001, 'open', 1],
    ]);
    expect(before.windows[0]?.all.oldest_waiting_ms).toBe(400);
    expect(before.windows[1]?.all.oldest_waiting_ms).toBeNull();
    expect(before.windows[0]?.all.attainment).toEqual({ low: 0, high: 1, denominator: 1 });
    cohorts.final(late);
    cohorts.final(operation(2, 1100, 100));
    const after = cohorts.snapshot({ ...NOW, now: 2500 });
    expect(after.windows.map((w) => [w.state, w.all.outcomes.good, w.all.outcomes.late])).toEqual([
      ['final', 0, 1],
      ['final', 1, 0],
      ['open', 0, 0],
    ]);
    expect(after.windows[1]?.all.goodput_rps).toBe(1);
    expect(after.total.attainment).toEqual({ low: 0.5, high: 0.5, denominator: 2 });
  });

  it('adds up: offered = pending + every outcome, in windows, classes and the whole', () => {
    const cohorts = live();
    const ops = Array.from({ length: 40 }, (_, i) =>
      operation(i, 100 * i, i % 7 === 0 ? undefined : 20 * i, i % 2 ? 'a' : 'b'),
    );
    for (const op of ops) cohorts.arrived(op);
    for (const op of ops.slice(0, 30)) cohorts.final(op);
    const snapshot = cohorts.snapshot({ ...NOW, now: 4000 });
    const all = [snapshot.total, ...snapshot.classes, ...snapshot.windows.flatMap((w) => [w.all, ...w.classes])];
    for (const c of all) expect(c.offered).toBe(c.pending + LEDGER.reduce((sum, name) => sum + c.outcomes[name], 0));
    expect(snapshot.total.offered).toBe(40);
    expect(snapshot.total.pending).toBe(10);
    expect(snapshot.classes.map((c) => [c.class, c.offered])).toEqual([
      ['a', 20],
      ['b', 20],
    ]);
  });

  it('ranks operations without the event as infinite beside those measured', () => {
    const cohorts = live();
    for (const [i, ttft] of [100, 200, 300, undefined, undefined].entries()) {
      const op = operation(i, i, ttft);
      cohorts.arrived(op);
      cohorts.final(op);
    }
    const { ttft } = cohorts.snapshot({ ...NOW, now: 500 }, { sketches: true }).total;
    expect(ttft.measured.count).toBe(3);
    expect(ttft.offered.count).toBe(5);
    expect(Math.abs((ttft.measured.p50_ms as number) - 200)).toBeLessThan(2.1);
    expect(ttft.measured.p99_ms).toBeCloseTo(298, -1);
    expect(ttft.offered.p90_ms).toBe('inf');
    expect(LogSketch.from(ttft.sketch_ms as never).infinite).toBe(2);
  });

  it('forgets old windows, but none that is not final', () => {
    const cohorts = live();
    const open = operation(0, 500, 100);
    cohorts.arrived(open);
    for (let i = 1; i < 10; i++) {
      const op = operation(i, 1000 * i + 1, 100);
      cohorts.arrived(op);
      cohorts.final(op);
    }
    const starts = (): number[] => cohorts.snapshot({ ...NOW, now: 9900 }).windows.map((w) => w.start_s - 1000);
    expect(starts()).toEqual([0, 8, 9]);
    cohorts.final(open);
    const op = operation(11, 10_001, 100);
    cohorts.arrived(op);
    cohorts.final(op);
    expect(cohorts.snapshot({ ...NOW, now: 10_500 }).windows.map((w) => w.start_s - 1000)).toEqual([8, 9, 10]);
    expect(cohorts.snapshot({ ...NOW, now: 10_500 }, { windows: 1 }).windows).toHaveLength(1);
  });
});
