import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { contractOf, LEDGER, type RequestRecord } from '../../core/index.ts';
import { type Caller, type FinalOperation, LiveCohorts, type OperationName, Operations } from './index.ts';

const contract = contractOf(
  { ttft: 500 },
  {
    deadline: 10_000,
    cases: { cancelled: 'observed', nonStreamed: 'skip', oneToken: 'vacuous', unmeasurable: 'late' },
  },
);

function watch(retryWindow = 2000) {
  const records: RequestRecord[] = [];
  const finals: FinalOperation[] = [];
  const operations = new Operations({
    contractFor: () => contract,
    listeners: [
      { final: (f) => void finals.push(f) },
      {
        final: () => {
          throw new Error('a listener of no use');
        },
      },
    ],
    record: (record) => void records.push(record),
    retryWindow,
  });
  return { operations, records, finals };
}

const key = (value: string): OperationName => ({ by: 'idempotency-key', value });
const caller = (at: number, name?: OperationName): Caller => ({
  at,
  class: 'default',
  tenant: '',
  ...(name && { name }),
});
type Watch = ReturnType<typeof watch>;
const succeed = ({ operations }: Watch, attempt: ReturnType<Operations['begin']>, t: number): void => {
  attempt.spec.stream = true;
  attempt.recorder.event(t, { outputs: [{ choice: 0, kind: 'text', tokens: 1 }] }, false);
  attempt.recorder.event(t, { outputs: [], finishes: [{ choice: 0, reason: 'stop' }] }, false);
  operations.ended(attempt, t, { kind: 'closed' });
};
const fail = ({ operations }: Watch, attempt: ReturnType<Operations['begin']>, t: number, status = 503): void =>
  operations.ended(attempt, t, { kind: 'http-error', status, detail: '' });

describe('operations', () => {
  it('are their only attempt where nothing names them', () => {
    const w = watch();
    fail(w, w.operations.begin(caller(0)), 10);
    succeed(w, w.operations.begin(caller(20)), 100);
    expect(w.finals.map((f) => [f.operation, f.verdict.class, f.groupedBy])).toEqual([
      [0, 'rejected', 'none'],
      [1, 'good', 'none'],
    ]);
    expect(w.operations.listenerFailures).toBe(2);
  });

  it('join a retry by its key: one operation, its clock from the first attempt', () => {
    const w = watch();
    fail(w, w.operations.begin(caller(0, key('a'))), 10);
    expect(w.finals).toHaveLength(0);
    succeed(w, w.operations.begin(caller(400, key('a'))), 450);
    expect(w.finals).toHaveLength(1);
    expect(w.finals[0]?.record.attempts).toBe(2);
    expect(w.finals[0]?.metrics.ttft).toBe(450);
    expect(w.records.map((r) => [r.operation, r.attempt, r.outcome])).toEqual([
      [0, 0, 'rejected'],
      [0, 1, 'completed'],
    ]);
    // The same key later is another operation.
    succeed(w, w.operations.begin(caller(1000, key('a'))), 1100);
    expect(w.finals.map((f) => f.operation)).toEqual([0, 1]);
  });

  it('are final when no other attempt came in time, at once where none can come', () => {
    const w = watch();
    fail(w, w.operations.begin(caller(0, key('a'))), 10);
    fail(w, w.operations.begin(caller(0, key('b'))), 10, 400);
    expect(w.finals.map((f) => f.verdict.class)).toEqual(['failed']);
    w.operations.sweep(2000);
    expect(w.finals).toHaveLength(1);
    w.operations.sweep(2010);
    expect(w.finals.map((f) => f.verdict.class)).toEqual(['failed', 'rejected']);
    expect(w.operations.inFlight.size).toBe(0);
  });

  it('count a hedge that lost as load', () => {
    const w = watch();
    const first = w.operations.begin(caller(0, key('a')));
    const second = w.operations.begin(caller(100, key('a')));
    succeed(w, second, 200);
    expect(w.finals.map((f) => f.verdict.class)).toEqual(['good']);
    w.operations.left(first, 210);
    expect(w.finals).toHaveLength(1);
    expect(w.records.map((r) => [r.attempt, r.lostHedge])).toEqual([
      [1, false],
      [0, true],
    ]);
  });

  it('join by trace only one after another', () => {
    const w = watch();
    const trace: OperationName = { by: 'trace', value: 't' };
    const one = w.operations.begin(caller(0, trace));
    const two = w.operations.begin(caller(1, trace));
    succeed(w, one, 100);
    succeed(w, two, 100);
    expect(w.finals.map((f) => f.operation)).toEqual([0, 1]);
    fail(w, w.operations.begin(caller(200, trace)), 210);
    succeed(w, w.operations.begin(caller(300, trace)), 350);
    expect(w.finals.map((f) => [f.operation, f.record.attempts])).toEqual([
      [0, 1],
      [1, 1],
      [2, 2],
    ]);
  });

  it('time out at their deadline, also when they go on', () => {
    const w = watch();
    const attempt = w.operations.begin(caller(0));
    w.operations.sweep(10_000);
    expect(w.finals).toHaveLength(0);
    w.operations.sweep(10_100);
    expect(w.finals.map((f) => [f.verdict.class, f.record.stamps.ended])).toEqual([['timed-out', 10_000]]);
    expect(attempt.isOpen).toBe(false);
    succeed(w, w.operations.begin(caller(20_000)), 30_001);
    expect(w.finals[1]?.verdict.class).toBe('timed-out');
    const late = w.operations.begin(caller(40_000));
    w.operations.left(late, 50_100);
    expect(w.finals[2]?.verdict.class).toBe('timed-out');
  });

  it('judge one that was cancelled by what was seen of it', () => {
    const w = watch();
    w.operations.left(w.operations.begin(caller(0)), 100);
    w.operations.left(w.operations.begin(caller(1000)), 1600);
    expect(w.finals.map((f) => [f.verdict.class, f.verdict.excluded])).toEqual([
      ['cancelled', true],
      ['cancelled', false],
    ]);
  });

  it('always add up, whatever happens in whatever order', () => {
    const step = fc.record({
      kind: fc.constantFrom('begin', 'succeed', 'fail', 'leave', 'sweep'),
      name: fc.option(fc.constantFrom('a', 'b', 'c'), { nil: undefined }),
      wait: fc.integer({ min: 0, max: 4000 }),
      which: fc.nat(20),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const w = watch();
        const live = new LiveCohorts({ boundary: 'proxy', instance: '', epochWall: 0, contractFor: () => contract });
        const operations = new Operations({
          contractFor: () => contract,
          listeners: [live, { final: (f) => void w.finals.push(f) }],
          record: () => {},
          retryWindow: 2000,
        });
        const own = { ...w, operations };
        const open: ReturnType<Operations['begin']>[] = [];
        let t = 0;
        for (const s of steps) {
          t += s.wait;
          const attempt = open[s.which % Math.max(1, open.length)];
          if (s.kind === 'begin')
            open.push(operations.begin(caller(t, s.name === undefined ? undefined : key(s.name))));
          else if (s.kind === 'sweep') operations.sweep(t);
          else if (attempt?.isOpen) {
            open.splice(open.indexOf(attempt), 1);
            if (s.kind === 'succeed') succeed(own, attempt, t);
            else if (s.kind === 'fail') fail(own, attempt, t);
            else operations.left(attempt, t);
          }
        }
        operations.close(t);
        expect(operations.inFlight.size).toBe(0);
        expect(new Set(w.finals.map((f) => f.operation)).size).toBe(operations.offered);
        const rest = { now: t, inFlight: [], queued: 0, upstreams: [], records: {} as never };
        const { total } = live.snapshot(rest);
        expect(total.offered).toBe(operations.offered);
        expect(LEDGER.reduce((sum, c) => sum + total.outcomes[c], 0)).toBe(operations.offered);
      }),
      { numRuns: 200 },
    );
  });
});
