import { describe, expect, it } from 'vitest';
import { accelerator } from '../model/accelerator.ts';
import { deployment } from '../model/deployment.ts';
import { IdealStepModel } from '../model/ideal.ts';
import { model } from '../model/lookup.ts';
import { type Finished, QUEUE_FULL, TOO_LONG } from './cluster.ts';
import { schedulerConformance } from './conformance.ts';
import { ContinuousReplica } from './continuous.ts';
import { limitsFor, limitsOf } from './limits.ts';
import { recordOf } from './record-of.ts';
import { simulate } from './simulate.ts';
import { linearModel, listed, poisson, spec } from './testing.ts';

const step = linearModel({ base: 4, perSequence: 0.25, perPrefillToken: 0.05, perKv: 0.001 });

const ANY = Number.POSITIVE_INFINITY;
schedulerConformance('continuous batching under KV pressure', {
  make: (maxQueue = ANY) =>
    new ContinuousReplica(step, limitsOf({ kvBlocks: 24, maxSeqs: 8, maxBatchedTokens: 64, maxQueue })),
  fcfs: true,
});
schedulerConformance('continuous batching with room', {
  make: (maxQueue = ANY) =>
    new ContinuousReplica(step, limitsOf({ kvBlocks: 4000, maxSeqs: 64, maxBatchedTokens: 512, maxQueue })),
  fcfs: true,
});
schedulerConformance('continuous batching of whole prompts, odd blocks, long prompts held back', {
  make: (maxQueue = ANY) =>
    new ContinuousReplica(
      step,
      limitsOf({ kvBlocks: 60, maxSeqs: 8, maxBatchedTokens: 32, blockTokens: 7, chunkedPrefill: false, maxQueue }),
    ),
  fcfs: true,
});
schedulerConformance('continuous batching with a limit on long prefills', {
  make: (maxQueue = ANY) =>
    new ContinuousReplica(
      step,
      limitsOf({ kvBlocks: 30, maxSeqs: 8, maxBatchedTokens: 64, longPrefill: 24, prefixCaching: false, maxQueue }),
    ),
  fcfs: true,
});

function all(cluster: ContinuousReplica, offers: Parameters<typeof listed>[0]): Finished[] {
  const done: Finished[] = [];
  simulate(listed(offers), cluster, (d) => void done.push(d.finished as Finished));
  return done;
}

describe('one request by hand', () => {
  // 100 prompt tokens at a budget of 40: chunks of 40, 40, 20; then 3 decode steps reading 101, 102, 103 tokens.
  const limits = limitsOf({ kvBlocks: 100, maxSeqs: 4, maxBatchedTokens: 40 });
  const replica = new ContinuousReplica(linearModel({ base: 10, perPrefillToken: 0.5, perKv: 0.1 }), limits);
  const [f] = all(replica, [{ at: 5, spec: spec(0, 100, 4) }]);

  it('takes its prefill steps, then decodes on a growing context', () => {
    expect(f!.scheduled).toBe(5);
    const ttft = 3 * 10 + 0.5 * 100;
    expect(f!.firstToken).toBeCloseTo(5 + ttft, 9);
    const decode = [10 + 0.1 * 101, 10 + 0.1 * 102, 10 + 0.1 * 103];
    expect(f!.lastToken - f!.firstToken).toBeCloseTo(decode[0]! + decode[1]! + decode[2]!, 9);
    const times = [...f!.tokenTimes()];
    expect(times[2]! - times[1]!).toBeCloseTo(decode[1]!, 9);
  });

  it('matches the ideal table when a full batch stands at 2,048 tokens', () => {
    const d = deployment(model('llama-3.1-8b'), accelerator('h100-sxm'));
    const ideal = new ContinuousReplica(new IdealStepModel(d), limitsFor(d, { maxSeqs: 16, maxBatchedTokens: 40_000 }));
    const done = all(
      ideal,
      Array.from({ length: 16 }, (_, i) => ({ at: 0, spec: spec(i, 2047, 2) })),
    );
    // All prefill in one step; the second token's step reads 16 × 2,048 tokens.
    for (const f of done) expect((f.lastToken - f.firstToken).toFixed(2)).toBe('6.08');
  });
});

describe('batching', () => {
  it('shares steps: a prompt beside running decodes delays them by its chunk', () => {
    const limits = limitsOf({ kvBlocks: 100, maxSeqs: 4, maxBatchedTokens: 400 });
    const replica = new ContinuousReplica(linearModel({ base: 10, perPrefillToken: 0.5 }), limits);
    const done = all(replica, [
      { at: 0, spec: spec(0, 10, 10) },
      { at: 32, spec: spec(1, 100, 2) },
    ]);
    // Steps: 0–15 prefill of 0; 15–25, 25–35 decode; the arrival at 32 joins at 35 with 100 tokens: 35–95.
    const first = done.find((f) => f.spec.operation === 0) as Finished;
    const second = done.find((f) => f.spec.operation === 1) as Finished;
    expect(second.scheduled).toBe(35);
    expect(second.firstToken).toBe(95);
    expect(first.ended).toBe(15 + 2 * 10 + 60 + 6 * 10);
  });

  it('preempts the latest admitted when KV runs out, and it loses no tokens', () => {
    // 8 blocks of 4: two requests of 8 + 12 tokens need 5 blocks each at their end.
    const replica = new ContinuousReplica(
      linearModel({ base: 10 }),
      limitsOf({ kvBlocks: 8, maxSeqs: 4, maxBatchedTokens: 64, blockTokens: 4 }),
    );
    const done = all(replica, [
      { at: 0, spec: spec(0, 8, 12) },
      { at: 0, spec: spec(1, 8, 12) },
    ]);
    expect(done.map((f) => [f.spec.operation, f.preemptions, f.generated])).toEqual([
      [0, 0, 12],
      [1, 1, 12],
    ]);
    expect(replica.gauges().preemptions).toBe(1);
    // Never fewer than one step between tokens, and the stall in the middle is the wait for request 0 to end.
    const times = done[1]!.earlier![0]!.to;
    expect(times).toBeGreaterThan(0);
  });

  it('refuses what can never fit, and what finds the queue full', () => {
    const replica = new ContinuousReplica(
      step,
      limitsOf({ kvBlocks: 8, maxSeqs: 1, maxBatchedTokens: 64, maxQueue: 2 }),
    );
    expect(replica.offer(spec(0, 100, 29), 0)).toBe(TOO_LONG);
    expect(replica.offer(spec(1, 100, 28), 0)).toBeGreaterThan(0);
    expect(replica.nextAt()).toBeGreaterThan(0); // starts
    expect(replica.offer(spec(2, 1, 1), 1)).toBeGreaterThan(0);
    expect(replica.offer(spec(3, 1, 1), 1)).toBeGreaterThan(0);
    expect(replica.offer(spec(4, 1, 1), 1)).toBe(QUEUE_FULL);
    expect(replica.gauges()).toMatchObject({ running: 1, waiting: 2 });
  });

  it('refuses a pool of no blocks in a line, and ends a request that is longer than the pool as failed', () => {
    expect(() => limitsOf({ kvBlocks: 0 })).toThrow(/^the KV pool has 0 blocks; it needs at least 1: use a larger/);
    const outcomes: string[] = [];
    simulate(
      listed([
        { at: 0, spec: spec(0, 100, 29) },
        { at: 0, spec: spec(1, 100, 28) },
      ]),
      new ContinuousReplica(step, limitsOf({ kvBlocks: 8, maxSeqs: 1, maxBatchedTokens: 64 })),
      (done) => {
        const { operation, outcome, detail } = recordOf(done);
        outcomes.push(`${operation} ${outcome} ${detail}`.trim());
      },
    );
    expect(outcomes).toEqual(['0 failed prompt and output exceed what the engine can hold', '1 completed']);
  });

  it('finds shared prefixes in the cache and computes only the rest', () => {
    const prefixBlocks = Array.from({ length: 6 }, (_, i) => 7000 + i);
    const replica = new ContinuousReplica(
      linearModel({ base: 1, perPrefillToken: 1 }),
      limitsOf({ kvBlocks: 100, maxSeqs: 4, maxBatchedTokens: 512 }),
    );
    const done = all(replica, [
      { at: 0, spec: spec(0, 100, 2, { prefixBlocks }) },
      { at: 1000, spec: spec(1, 100, 2, { prefixBlocks }) },
      { at: 2000, spec: spec(2, 96, 2, { prefixBlocks }) },
    ]);
    expect(done.map((f) => f.cached)).toEqual([0, 96, 80]); // at least one token is always computed: five blocks of the last
    expect(done.map((f) => f.firstToken - f.arrived)).toEqual([101, 5, 17]);
    expect(replica.gauges()).toMatchObject({ prefixQueries: 296, prefixHits: 176 });
  });

  it('tells how many tokens each step carried', () => {
    const seen: [number, number][] = [];
    const replica = new ContinuousReplica(
      linearModel({ base: 1 }),
      limitsOf({ kvBlocks: 100, maxSeqs: 4, maxBatchedTokens: 64 }),
      (tokens, steps) => seen.push([tokens, steps]),
    );
    all(replica, [{ at: 0, spec: spec(0, 100, 5) }]);
    expect(seen).toEqual([
      [64, 1],
      [36, 1],
      [1, 4],
    ]);
    expect(replica.gauges()).toMatchObject({ steps: 6, promptTokens: 100, generationTokens: 5 });
  });
});

describe('skipping', () => {
  it('gives the same times as stepping one by one', () => {
    // A model whose pieces end at every step forces a run of one step each.
    const stepped = {
      ...step,
      decode(n: number, kv: number, into: Parameters<typeof step.decode>[2]) {
        step.decode(n, kv, into);
        into.untilKv = kv;
      },
    };
    const offers = poisson(300, 60, 9, (i, u) => spec(i, 1 + Math.floor(u() * 150), 1 + Math.floor(u() * 80)));
    const limits = limitsOf({ kvBlocks: 60, maxSeqs: 12, maxBatchedTokens: 64 });
    const skipped = all(new ContinuousReplica(step, limits), offers);
    const slow = all(new ContinuousReplica(stepped, limits), offers);
    expect(slow.map((f) => f.spec.operation)).toEqual(skipped.map((f) => f.spec.operation));
    for (let i = 0; i < slow.length; i++) {
      expect(slow[i]!.ended).toBeCloseTo(skipped[i]!.ended, 6);
      expect(slow[i]!.firstToken).toBeCloseTo(skipped[i]!.firstToken, 6);
      expect(slow[i]!.preemptions).toBe(skipped[i]!.preemptions);
    }
    expect(skipped.some((f) => f.preemptions > 0)).toBe(true);
  });
});
