/**
 * The door without a clock against the load driver on the door with one: sessions whose turns fail, classes with deadlines
 * of their own, queues that fill, requests that never fit. The same records, stamp for stamp.
 */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { virtualClock } from '../../src/core/clock.ts';
import { contractFor, contractOf } from '../../src/core/contract.ts';
import type { RequestRecord } from '../../src/core/record.ts';
import type { Workload } from '../../src/core/request.ts';
import type { Sink } from '../../src/core/sink.ts';
import { drive } from '../../src/drive/index.ts';
import { type Cluster, limitsOf, simEngine, simulateInto, systemOf } from '../../src/sim/index.ts';
import { linearModel } from '../../src/sim/testing.ts';
import { type ClassPlan, openMix } from '../../src/workload/index.ts';

const step = linearModel({ base: 4, perSequence: 0.25, perPrefillToken: 0.05, perKv: 0.001 });
const tight = limitsOf({ kvBlocks: 30, maxSeqs: 6, maxBatchedTokens: 64, maxQueue: 5 });
const CONTRACT = contractOf({ ttft: 500 }, { deadline: 700.25 });
const FOR = contractFor(CONTRACT, {
  hasty: contractOf({ ttft: 50 }, { deadline: 120.125 }),
  patient: contractOf({}, { deadline: 60_000 }),
});

const SYSTEMS: readonly [string, () => Cluster][] = [
  ['continuous', () => systemOf({ step, limits: tight })],
  ['speculative', () => systemOf({ step, limits: tight, speculation: { draftTokens: 3, acceptance: 0.7, seed: 2 } })],
  ['static', () => systemOf({ step, limits: tight, scheduler: 'static' })],
  ['routed, behind a frontend', () => systemOf({ step, limits: tight, replicas: 2, frontend: 3.5 })],
  [
    'disaggregated',
    () =>
      systemOf({
        step,
        limits: tight,
        prefill: { replicas: 1, transfer: { bytesPerToken: 1000, bandwidth: 1e8, latency: 0.5 } },
      }),
  ],
];

/** The first `count` arrivals of a load, and what their ends release. */
function first(count: number, inner: Workload): Workload {
  let left = count;
  return { next: () => (left-- > 0 ? inner.next() : undefined), ended: (o, t, ok) => inner.ended(o, t, ok) };
}

function load(rate: number, seed: number): Workload {
  const single = (name: string, input: ClassPlan['input'], output: ClassPlan['output']): ClassPlan => ({
    name,
    share: 1,
    input,
    output,
    choices: 1,
    stream: true,
    ignoreEos: true,
  });
  const classes: ClassPlan[] = [
    single('hasty', { kind: 'uniform', low: 1, high: 100 }, { kind: 'uniform', low: 1, high: 60 }),
    // Histories grow beyond the 480 tokens of the pool: such a turn fails, and those after it are not sent.
    {
      ...single('talk', { kind: 'uniform', low: 1, high: 150 }, { kind: 'uniform', low: 1, high: 80 }),
      share: 2,
      session: { turns: { kind: 'uniform', low: 1, high: 5 }, think: { kind: 'exponential', mean: 40 } },
    },
    single('patient', { kind: 'fixed', tokens: 20 }, { kind: 'uniform', low: 1, high: 200 }),
  ];
  return first(60, openMix({ classes, prompt: 'none' }, { process: 'poisson', rate }, seed));
}

function kept(): Sink & { readonly records: Map<number, RequestRecord> } {
  const records = new Map<number, RequestRecord>();
  return {
    records,
    add: (r) => void records.set(r.operation, r),
    full: false,
    drained: () => Promise.resolve(),
    close: () => Promise.resolve(),
  };
}

it.each(SYSTEMS)('gives through simulate what drive records: %s', async (_, make) => {
  const outcomes = new Set<string>();
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 5, max: 60 }), fc.nat({ max: 1e6 }), async (rate, seed) => {
      const pulled = kept();
      const summary = await simulateInto(load(rate, seed), make(), pulled, { contractFor: FOR });
      expect(summary).toMatchObject({ open: 0, offered: pulled.records.size });
      // The driver leaves itself 20 ms before the first arrival can be due: its time 0 is ours.
      const clock = virtualClock(-20);
      const driven = kept();
      const run = drive(
        load(rate, seed),
        simEngine(make(), clock),
        clock,
        { contract: CONTRACT, contractFor: FOR, window: { warmup: 0, duration: 1e7, whole: true }, seed },
        driven,
      );
      clock.runAll();
      await run.done;
      for (const { outcome, reason } of pulled.records.values()) outcomes.add(`${outcome} ${reason}`);
      expect(digest(driven.records)).toEqual(digest(pulled.records));
    }),
    { numRuns: 12, seed: 17 },
  );
  // The property is worth something only where all of these came up.
  expect([...outcomes].sort()).toEqual(
    expect.arrayContaining([
      'completed ',
      'failed engine',
      'rejected refused',
      'timed-out deadline',
      'unsent predecessor-failed',
    ]),
  );
});

/** By operation, the timeline as one text: a matcher takes long over typed arrays. */
function digest(records: ReadonlyMap<number, RequestRecord>): object[] {
  return [...records.values()]
    .sort((a, b) => a.operation - b.operation)
    .map(({ timeline, ...rest }) => ({ ...rest, at: timeline.at.join(), tokens: timeline.tokens.join() }));
}
