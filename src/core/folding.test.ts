/** Folds: the ledger's identity, shards that merge exactly, throughput by receipt, and what survivors would hide. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  CohortReducer,
  clientVerdict,
  contractOf,
  estimatedWindow,
  goodputOf,
  LEDGER,
  OUTCOMES,
  type Outcome,
  type RequestRecord,
  ThroughputReducer,
  timelineOf,
  type Window,
} from './index.ts';

/** An operation by its TTFT and gaps of 10 ms; `undefined`: it ended without output after `elapsed`. */
function operation(
  index: number,
  scheduled: number,
  outcome: Outcome,
  ttft: number | undefined,
  more: Partial<RequestRecord> & { chunks?: number; elapsed?: number } = {},
): RequestRecord {
  const { chunks = 3, elapsed = 30_000, ...rest } = more;
  const receipts = ttft === undefined ? [] : Array.from({ length: chunks }, (_, i) => scheduled + ttft + 10 * i);
  const last = receipts.at(-1);
  const ended = last ?? (outcome === 'unsent' || outcome === 'undecided' ? undefined : scheduled + elapsed);
  return {
    operation: index,
    attempt: 0,
    attempts: outcome === 'unsent' ? 0 : 1,
    lostHedge: false,
    class: 'default',
    asked: { input: 5, output: 3, choices: 1, stream: true },
    stamps: {
      scheduled,
      ...(outcome !== 'unsent' && { dispatched: scheduled }),
      ...(receipts[0] !== undefined && { firstOutput: receipts[0], firstAnswer: receipts[0] }),
      ...(last !== undefined && { lastOutput: last }),
      ...(ended !== undefined && { ended }),
    },
    timeline: timelineOf(
      receipts,
      receipts.map(() => 1),
    ),
    streamed: true,
    unseenEndTokens: 0,
    outcome,
    reason: outcome === 'completed' ? '' : outcome,
    detail: '',
    phase: 'done',
    impliedEnd: false,
    events: receipts.length,
    coalesced: 0,
    unclassified: 0,
    ...rest,
  };
}

const WINDOW: Window = { start: 0, end: 1000 };
const CONTRACT = contractOf({ ttft: 500, tpot: 50 });

function fold(records: readonly RequestRecord[], contract = CONTRACT, window = WINDOW) {
  const reducer = new CohortReducer(contract, window);
  for (const r of records) reducer.add(r);
  return reducer.finish();
}

const anyOperation = (index: number): fc.Arbitrary<RequestRecord> =>
  fc
    .record({
      // Whole microseconds, and never two at once.
      at: fc.integer({ min: -100_000, max: 1_100_000 }).map((us) => us / 1000 + index * 0.000_001),
      outcome: fc.constantFrom(...OUTCOMES),
      ttft: fc.option(fc.integer({ min: 0, max: 900 }), { nil: undefined }),
      chunks: fc.integer({ min: 1, max: 5 }),
      streamed: fc.boolean(),
    })
    .map(({ at, outcome, ttft, chunks, streamed }) =>
      operation(index, at, outcome, outcome === 'unsent' ? undefined : ttft, {
        chunks: streamed ? chunks : 1,
        streamed,
      }),
    );
const anyOperations = fc
  .integer({ min: 0, max: 40 })
  .chain((n) => fc.tuple(...Array.from({ length: n }, (_, i) => anyOperation(i))));
const anyContract = fc
  .record({
    cancelled: fc.constantFrom('not-good' as const, 'observed' as const, 'exclude' as const),
    nonStreamed: fc.constantFrom('unmeasurable' as const, 'skip' as const, 'exclude' as const),
    oneToken: fc.constantFrom('vacuous' as const, 'late' as const),
    unmeasurable: fc.constantFrom('late' as const, 'skip' as const, 'exclude' as const),
  })
  .map((cases) => ({ ...CONTRACT, cases }));

describe('the cohort identity', () => {
  test('holds under every outcome and contract: each operation of the window in exactly one place', () => {
    fc.assert(
      fc.property(anyOperations, anyContract, (records, contract) => {
        const f = fold(records, contract);
        const inside = records.filter((r) => r.stamps.scheduled >= 0 && r.stamps.scheduled < 1000);
        expect(f.offered).toBe(inside.length);
        expect(LEDGER.reduce((sum, c) => sum + f.ledger[c], 0)).toBe(f.offered);
        expect(f.arrivals.length).toBe(f.offered - f.excluded);
        expect(f.good.filter((g) => g === 1).length).toBe(f.ledger.good);
        expect(f.good.filter((g) => g === 2).length).toBe(f.ledger.undecided);
        expect([...f.missedSets.values()].reduce((a, b) => a + b, 0)).toBeLessThanOrEqual(f.ledger.late);
        for (const outcome of ['rejected', 'failed', 'truncated', 'cancelled', 'unsent', 'undecided'] as const) {
          expect(f.ledger[outcome]).toBe(inside.filter((r) => r.outcome === outcome).length);
        }
      }),
    );
  });
  test('every outcome once', () => {
    const f = fold(OUTCOMES.map((outcome, i) => operation(i, i, outcome, outcome === 'unsent' ? undefined : 100)));
    expect(f.ledger).toEqual({
      good: 1,
      late: 0,
      invalid: 0,
      rejected: 1,
      failed: 1,
      truncated: 1,
      'timed-out': 1,
      cancelled: 1,
      unsent: 1,
      undecided: 1,
    });
  });
});

describe('shards', () => {
  /** A fold as plain data: sketches by their state, example details left to whichever came first. */
  const plain = (f: ReturnType<typeof fold>) => ({
    ...f,
    gaps: f.gaps.toJSON(),
    itl: f.itl.toJSON(),
    missedSets: new Map([...f.missedSets].sort()),
    reasons: new Map([...f.reasons].map(([k, v]) => [k, v.count] as const).sort()),
    tokenSources: new Map([...f.tokenSources].sort()),
    exactness: new Map([...f.exactness].sort()),
    unmeasurable: new Map([...f.unmeasurable].sort()),
    vacuous: new Map([...f.vacuous].sort()),
  });
  const deal = (records: readonly RequestRecord[], k: number) =>
    Array.from({ length: k }, (_, shard) => records.filter((r) => r.operation % k === shard));

  test('merge to exactly what one reducer gives', () => {
    fc.assert(
      fc.property(anyOperations, anyContract, fc.integer({ min: 2, max: 4 }), (records, contract, k) => {
        const parts = deal(records, k).map((part) => {
          const reducer = new CohortReducer(contract, WINDOW);
          for (const r of part) reducer.add(r);
          return reducer;
        });
        const [first, ...rest] = parts as [CohortReducer, ...CohortReducer[]];
        for (const part of rest) first.merge(part);
        expect(plain(first.finish())).toEqual(plain(fold(records, contract)));
      }),
    );
  });
  test('operations of one instant stand in the order of their numbers, whichever shard had them', () => {
    const records = [
      operation(0, 5, 'completed', 100),
      operation(1, 5, 'completed', 900),
      operation(2, 5, 'failed', undefined),
    ];
    const [a, b] = [new CohortReducer(CONTRACT, WINDOW), new CohortReducer(CONTRACT, WINDOW)];
    for (const r of [records[2], records[1]]) a.add(r as RequestRecord);
    b.add(records[0] as RequestRecord);
    a.merge(b);
    expect([...a.finish().good]).toEqual([1, 0, 0]);
    expect([...a.finish().latent]).toEqual([100, 900, Number.POSITIVE_INFINITY]);
  });
  test('throughput too', () => {
    fc.assert(
      fc.property(anyOperations, (records) => {
        const [one, a, b] = [
          new ThroughputReducer(WINDOW),
          new ThroughputReducer(WINDOW),
          new ThroughputReducer(WINDOW),
        ];
        records.forEach((r, i) => {
          one.add(r);
          (i % 2 ? a : b).add(r);
        });
        a.merge(b);
        expect(a.finish()).toEqual(one.finish());
      }),
    );
  });
});

describe('pitfalls of other tools', () => {
  test('survivor-only percentage: half the requests fail with HTTP 500, and attainment is half', () => {
    const records = Array.from({ length: 100 }, (_, i) =>
      i % 2 ? operation(i, i, 'completed', 100) : operation(i, i, 'failed', undefined, { elapsed: 5 }),
    );
    const f = fold(records);
    expect(f.ledger.good / (f.offered - f.excluded)).toBe(0.5);
    expect(f.columns.ttft.length).toBe(50);
    expect(f.censored.ttft).toBe(50);
  });
  test('zero-token success: empty answers rank as never come, they do not vanish from the quantiles', () => {
    const f = fold([operation(0, 0, 'completed', 100), operation(1, 1, 'completed', undefined, { elapsed: 3 })]);
    expect(f.ledger).toMatchObject({ good: 1, invalid: 1 });
    expect(f.censored).toMatchObject({ ttft: 1, tpot: 1, latency: 1 });
    expect(f.columns.e2e.length).toBe(2);
  });
  test('incomplete requests skew: a truncated stream has a TTFT but no TPOT, last token or E2E', () => {
    const f = fold([operation(0, 0, 'truncated', 100)]);
    expect(f.columns.ttft.length).toBe(1);
    expect([f.columns.tpot, f.columns.latency, f.columns.e2e].map((c) => c.length)).toEqual([0, 0, 0]);
    expect([f.censored.ttft, f.censored.tpot, f.censored.e2e]).toEqual([0, 1, 1]);
  });
  test('a one-token answer lacks TPOT by nature: it is not censored', () => {
    const f = fold([operation(0, 0, 'completed', 100, { chunks: 1 })]);
    expect(f.censored.tpot).toBe(0);
    expect(f.vacuous.get('tpot')).toBe(1);
  });
  test('several tokens a chunk never enter ITL', () => {
    const r = { ...operation(0, 0, 'completed', 100), timeline: timelineOf([100, 140, 180], [4, 4, 4]) };
    const f = fold([r]);
    expect([f.gaps.count, f.itl.count]).toEqual([2, 0]);
  });
  test('goodput divided by a window with drain: late ends do not stretch the window', () => {
    const f = fold([operation(0, 0, 'completed', 400), operation(1, 999, 'completed', 400)]);
    expect(goodputOf(f)).toBe(2);
  });
  test('throughput divided by a window with drain: tokens of the drain are outside, those of warm-up that arrive are inside', () => {
    const t = new ThroughputReducer(WINDOW);
    t.add(operation(0, -100, 'completed', 95)); // receipts −5, 5, 15
    t.add(operation(1, 900, 'completed', 90)); // receipts 990, 1000, 1010
    expect(t.finish()).toMatchObject({ tokens: 3, tokensPerSecond: 3, spreadShare: 0 });
  });
  test('tokens without counts are spread over their chunks, and said to be', () => {
    const t = new ThroughputReducer(WINDOW);
    const timeline = timelineOf([990, 995, 1005, 1010]);
    t.add({ ...operation(0, 0, 'completed', 990), timeline, usage: { output: 40 } });
    expect(t.finish()).toMatchObject({ tokens: 20, spreadShare: 1, unknown: 0 });
  });
  test('missing usage is not 0 tokens: it is left out and counted', () => {
    const t = new ThroughputReducer(WINDOW);
    t.add({ ...operation(0, 0, 'completed', 100), timeline: timelineOf([100, 110]) });
    expect(t.finish()).toMatchObject({ tokens: 0, unknown: 1 });
  });
  test('an excluded operation stays in the ledger', () => {
    const f = fold([operation(0, 0, 'cancelled', undefined, { elapsed: 10 }), operation(1, 1, 'completed', 100)], {
      ...CONTRACT,
      cases: { ...CONTRACT.cases, cancelled: 'observed' },
    });
    expect([f.offered, f.excluded, f.ledger.cancelled, f.censored.ttft]).toEqual([2, 1, 1, 0]);
  });
});

describe('the window', () => {
  test('is half open', () => {
    expect(fold([operation(0, 0, 'completed', 1), operation(1, 1000, 'completed', 1)]).offered).toBe(1);
  });
  test('may be estimated from two arrivals on', () => {
    expect(estimatedWindow([5])).toBeUndefined();
    expect(estimatedWindow([5, 5])).toBeUndefined();
    expect(estimatedWindow([30, 10, 20])).toEqual({ start: 10, end: 40, estimated: true });
  });
  test('of N requests holds exactly the N first offers', () => {
    const window: Window = { start: 0, end: 1, operations: [1, 3] };
    expect(
      fold(
        [0, 1, 2, 3].map((i) => operation(i, i * 10, 'completed', 1)),
        CONTRACT,
        window,
      ).offered,
    ).toBe(2);
  });
});

describe('client-bound', () => {
  const health = { unsent: 0, dropped: 0 };
  const lag = (p99: number) => ({ ...health, sendLag: { p50: 0, p99, max: p99 } });
  const loop = (p99: number) => ({ ...health, eventLoop: { p50: 0, p99, max: p99 } });
  test('send lag above the greater of 2 ms and 5 % of the TTFT limit', () => {
    expect(clientVerdict(lag(25), CONTRACT).verdict).toBe('ok');
    expect(clientVerdict(lag(25.1), CONTRACT)).toMatchObject({
      verdict: 'client-bound',
      why: ['send lag p99 25.1 ms is above 25.0 ms'],
    });
    expect(clientVerdict(lag(2), contractOf({ tpot: 50 })).verdict).toBe('ok');
    expect(clientVerdict(lag(2.1), contractOf({ ttft: 20 })).verdict).toBe('client-bound');
  });
  test('event-loop delay above 10 % of the tightest cadence', () => {
    expect(clientVerdict(loop(5), CONTRACT).verdict).toBe('ok');
    expect(clientVerdict(loop(5.1), CONTRACT).verdict).toBe('client-bound');
    expect(clientVerdict(loop(2.1), contractOf({ tpot: 50, gap: 20 })).verdict).toBe('client-bound');
    expect(clientVerdict(loop(500), contractOf({ ttft: 500 })).verdict).toBe('ok');
  });
  test('anything unsent by its own limit', () => {
    expect(clientVerdict({ ...health, unsent: 1 }, CONTRACT).verdict).toBe('client-bound');
  });
});
