import { describe, expect, it } from 'vitest';
import { type Cluster, type Finished, NO_GAUGES, QUEUE_FULL } from './cluster.ts';
import { schedulerConformance } from './conformance.ts';
import { ContinuousReplica } from './continuous.ts';
import { DisaggregatedCluster } from './disaggregated.ts';
import { FrontendCluster } from './frontend.ts';
import { GatedReplica } from './gated.ts';
import { limitsOf } from './limits.ts';
import { SharedLink } from './link.ts';
import { ROUTER_POLICIES, RoutedCluster, RoutedDecodeCluster } from './router.ts';
import { simulate } from './simulate.ts';
import { expectedTokens, SpeculativeReplica } from './speculative.ts';
import { StaticReplica } from './static.ts';
import { linearModel, listed, poisson, spec } from './testing.ts';

const step = linearModel({ base: 4, perSequence: 0.25, perPrefillToken: 0.05, perKv: 0.001 });
const tight = limitsOf({ kvBlocks: 24, maxSeqs: 8, maxBatchedTokens: 64 });
const replica = (): ContinuousReplica => new ContinuousReplica(step, tight);
const ANY = Number.POSITIVE_INFINITY;
/** A queue before a whole system is its frontend's. */
const bounded = (system: Cluster, maxQueue = ANY): Cluster =>
  maxQueue === ANY ? system : new FrontendCluster(system, 0, maxQueue);

for (const policy of ROUTER_POLICIES) {
  schedulerConformance(`three replicas, ${policy}`, {
    make: (maxQueue) => bounded(new RoutedCluster([replica(), replica(), replica()], policy), maxQueue),
    fcfs: (f) => f.handle % 3,
  });
}
schedulerConformance('continuous batching, planned a step ahead', {
  make: (maxQueue = ANY) => new ContinuousReplica(step, { ...tight, asyncScheduling: true, maxQueue }),
  fcfs: true,
});
schedulerConformance('continuous batching, admitted by the first chunk', {
  make: (maxQueue = ANY) => new ContinuousReplica(step, { ...tight, reservePrompt: false, maxQueue }),
  fcfs: true,
});
schedulerConformance('static batching', {
  make: (maxQueue = ANY) => new StaticReplica(step, { ...tight, maxQueue }),
  fcfs: true,
});
schedulerConformance('gated batching', {
  make: (maxQueue = ANY) => new GatedReplica(step, { ...tight, maxQueue }),
  fcfs: true,
});
const transfer = { bytesPerToken: 1000, bandwidth: 2e6, latency: 1 };
schedulerConformance('disaggregated, one and one', {
  make: (maxQueue) => bounded(new DisaggregatedCluster(replica(), replica(), transfer), maxQueue),
  fcfs: true,
});
schedulerConformance('disaggregated, two and two', {
  make: (maxQueue) =>
    bounded(
      new DisaggregatedCluster(
        new RoutedCluster([replica(), replica()], 'least-loaded'),
        new RoutedDecodeCluster([replica(), replica()], 'least-loaded'),
        transfer,
      ),
      maxQueue,
    ),
  fcfs: false,
});

const speculation = { draftTokens: 3, acceptance: 0.7, seed: 5 };
schedulerConformance('speculative decoding', {
  make: (maxQueue = ANY) => new SpeculativeReplica(step, { ...tight, maxQueue }, speculation),
  fcfs: true,
  severalTokensAStep: true,
});

schedulerConformance('behind a frontend', {
  make: (maxQueue = ANY) => new FrontendCluster(replica(), 7.5, maxQueue),
  fcfs: true,
});

function all(cluster: Cluster, offers: Parameters<typeof listed>[0]): Finished[] {
  const done: Finished[] = [];
  simulate(listed(offers), cluster, (d) => void done.push(d.finished as Finished));
  return done.sort((a, b) => a.spec.operation - b.spec.operation);
}
const roomy = limitsOf({ kvBlocks: 10_000, maxSeqs: 64, maxBatchedTokens: 4096 });
const mean = (xs: readonly number[]): number => xs.reduce((a, b) => a + b, 0) / xs.length;

describe('RoutedCluster', () => {
  it('is one replica when it has one', () => {
    const offers = poisson(100, 50, 4, (i, u) => spec(i, 1 + Math.floor(u() * 100), 1 + Math.floor(u() * 50)));
    const plain = (f: Finished): unknown => [f.scheduled, f.firstToken, f.ended];
    expect(all(new RoutedCluster([replica()], 'round-robin'), offers).map(plain)).toEqual(
      all(replica(), offers).map(plain),
    );
  });

  it('keeps requests of one prefix together under prefix-affinity, and so finds more in the caches', () => {
    const offers = poisson(200, 20, 6, (i, u) => {
      const group = Math.floor(u() * 7);
      return spec(i, 200, 5, { prefixBlocks: Array.from({ length: 12 }, (_, k) => group * 100 + k) });
    });
    const hits = (policy: (typeof ROUTER_POLICIES)[number]): number => {
      const cluster = new RoutedCluster(
        [0, 1, 2, 3].map(() => new ContinuousReplica(step, roomy)),
        policy,
      );
      all(cluster, offers);
      return cluster.gauges().prefixHits;
    };
    expect(hits('prefix-affinity')).toBe((200 - 7) * 192);
    expect(hits('round-robin')).toBeLessThan((200 - 7) * 192);
  });

  it('beats turns by load when lengths differ', () => {
    const offers = poisson(2000, 60, 8, (i, u) => spec(i, 1, u() < 0.1 ? 300 : 5));
    const one = limitsOf({ kvBlocks: 10_000, maxSeqs: 1, maxBatchedTokens: 64 });
    const wait = (policy: (typeof ROUTER_POLICIES)[number]): number =>
      mean(
        all(
          new RoutedCluster(
            [0, 1, 2, 3].map(() => new ContinuousReplica(linearModel({ base: 1 }), one)),
            policy,
          ),
          offers,
        ).map((f) => f.scheduled - f.arrived),
      );
    expect(wait('least-loaded')).toBeLessThan(0.8 * wait('round-robin'));
  });
});

describe('StaticReplica', () => {
  it('starts the next batch when the longest of the last is through', () => {
    const done = all(
      new StaticReplica(linearModel({ base: 10 }), limitsOf({ kvBlocks: 100, maxSeqs: 2, maxBatchedTokens: 64 })),
      [
        { at: 0, spec: spec(0, 5, 3) },
        { at: 0, spec: spec(1, 5, 10) },
        { at: 1, spec: spec(2, 5, 1) },
      ],
    );
    expect(done.map((f) => [f.scheduled, f.firstToken, f.ended])).toEqual([
      [0, 10, 30],
      [0, 10, 100],
      [100, 110, 110],
    ]);
  });
});

describe('GatedReplica', () => {
  const gated = (maxBatchedTokens = 64): Cluster =>
    new GatedReplica(linearModel({ base: 10 }), limitsOf({ kvBlocks: 100, maxSeqs: 4, maxBatchedTokens }));

  it('lets n streams take turns in steps of n − 1', () => {
    const times = all(
      gated(),
      [0, 1, 2].map((i) => ({ at: 0, spec: spec(i, 5, 4) })),
    ).map((f) => [...f.tokenTimes()]);
    // All prompts in one step; then 0 and 1, for 2 was sampled last; then 2 and 0; then 1 and 2, …
    expect(times).toEqual([
      [10, 20, 30, 50],
      [10, 20, 40, 50],
      [10, 30, 40, 60],
    ]);
  });
  it('lets requests in when one stream is left, not before', () => {
    const done = all(gated(), [
      { at: 0, spec: spec(0, 5, 3) },
      { at: 0, spec: spec(1, 5, 9) },
      { at: 15, spec: spec(2, 5, 1) },
    ]);
    // 0 has its tokens at 10, 20 and 40 (1 has the step between); then 1 is alone, and after its next step 2 joins.
    expect(done.map((f) => f.firstToken)).toEqual([10, 10, 60]);
  });
  it('shares the tokens of a step evenly between prompts', () => {
    const done = all(gated(40), [
      { at: 0, spec: spec(0, 60, 1) },
      { at: 0, spec: spec(1, 10, 1) },
      { at: 0, spec: spec(2, 60, 1) },
    ]);
    expect(done.map((f) => f.firstToken)).toEqual([40, 10, 40]);
  });
});

describe('SharedLink', () => {
  it('shares its bandwidth evenly', () => {
    const link = new SharedLink(1000); // a byte a millisecond
    const ended: [number, number][] = [];
    const note = (id: number, t: number): void => void ended.push([id, t]);
    link.begin(1, 100, 0);
    link.begin(2, 100, 50); // 1 has 50 left; both go at half speed
    link.begin(3, 10, 60); // three at a third each
    for (let t = link.nextAt(); t < Number.POSITIVE_INFINITY; t = link.nextAt()) link.advance(t, note);
    // At 60: 1 has 45 left, 2 has 95, 3 has 10. 3 ends at 90; then halves: 1 has 35 left, ends at 160; 2 has 50: at 210.
    expect(ended.map(([id]) => id)).toEqual([3, 1, 2]);
    expect(ended.map(([, t]) => Math.round(t))).toEqual([90, 160, 210]);
  });
  it('gives the share of a dropped transfer to the rest', () => {
    const link = new SharedLink(1000);
    link.begin(1, 100, 0);
    link.begin(2, 100, 0);
    link.drop(2, 100); // both have 50 left
    expect(link.nextAt()).toBe(150);
  });
});

describe('DisaggregatedCluster', () => {
  it('hands the KV over, by hand', () => {
    const cluster = new DisaggregatedCluster(
      new ContinuousReplica(linearModel({ base: 10 }), roomy),
      new ContinuousReplica(linearModel({ base: 2 }), roomy),
      { bytesPerToken: 100, bandwidth: 1e6, latency: 5 },
    );
    const [f] = all(cluster, [{ at: 3, spec: spec(0, 50, 4) }]);
    // Prefill 3–13; 5,000 bytes at 1,000 a millisecond and 5 ms: 23; three decode steps of 2 ms.
    expect([f!.scheduled, f!.firstToken, f!.ended]).toEqual([3, 13, 29]);
    expect(cluster.gauges()).toMatchObject({
      ...NO_GAUGES,
      kvBlocks: 20_000,
      promptTokens: 50,
      generationTokens: 4,
      steps: 4,
      prefixQueries: 50,
    });
  });

  it('spares decodes the prefills of others', () => {
    const offers = poisson(400, 12, 3, (i) => spec(i, 2000, 60));
    const heavy = linearModel({ base: 5, perPrefillToken: 0.02 });
    const worst = (cluster: Cluster): number =>
      Math.max(...all(cluster, offers).map((f) => (f.lastToken - f.firstToken) / 59));
    const together = worst(
      new RoutedCluster([new ContinuousReplica(heavy, roomy), new ContinuousReplica(heavy, roomy)], 'least-loaded'),
    );
    const apart = worst(
      new DisaggregatedCluster(new ContinuousReplica(heavy, roomy), new ContinuousReplica(heavy, roomy), {
        bytesPerToken: 131_072,
        bandwidth: 50e9,
        latency: 0.1,
      }),
    );
    expect(apart).toBeLessThan(0.75 * together);
  });
});

describe('SpeculativeReplica', () => {
  it('yields (1 − a^(k+1))/(1 − a) tokens a step', () => {
    const replica = new SpeculativeReplica(linearModel({ base: 10 }), roomy, speculation);
    const [f] = all(replica, [{ at: 0, spec: spec(0, 10, 20_000) }]);
    const perStep = 19_999 / ((f!.lastToken - f!.firstToken) / 10);
    expect(expectedTokens(speculation)).toBeCloseTo(2.533, 3);
    expect(perStep / expectedTokens(speculation)).toBeCloseTo(1, 1);
  });

  it('is plain decoding without drafts, and pays for a draft model', () => {
    const offers = poisson(60, 40, 2, (i, u) => spec(i, 1 + Math.floor(u() * 90), 1 + Math.floor(u() * 40)));
    const uncached = limitsOf({ kvBlocks: 24, maxSeqs: 8, maxBatchedTokens: 64, prefixCaching: false });
    const plain = all(new ContinuousReplica(step, uncached), offers);
    const none = all(new SpeculativeReplica(step, uncached, { ...speculation, draftTokens: 0 }), offers);
    for (let i = 0; i < plain.length; i++) expect(none[i]!.ended).toBeCloseTo(plain[i]!.ended, 6);
    const one = [{ at: 0, spec: spec(0, 10, 50) }];
    const free = all(new SpeculativeReplica(step, tight, speculation), one)[0]!.ended;
    const paid = all(new SpeculativeReplica(step, tight, { ...speculation, draft: linearModel({ base: 1 }) }), one)[0]!
      .ended;
    expect(paid).toBeGreaterThan(free + 30);
  });

  it('refuses shares that are none', () => {
    expect(() => new SpeculativeReplica(step, tight, { ...speculation, acceptance: 1.2 })).toThrow(
      /acceptance 1.2 is not a share/,
    );
    expect(
      () => new SpeculativeReplica(step, limitsOf({ kvBlocks: 9, maxSeqs: 8, maxBatchedTokens: 16 }), speculation),
    ).toThrow(/below 8 sequences × 4 tokens/);
  });
});

describe('FrontendCluster', () => {
  it('delays what comes by a constant, and counts it as waiting', () => {
    const cluster = new FrontendCluster(new ContinuousReplica(linearModel({ base: 10 }), roomy), 15, 2);
    const [f] = all(cluster, [{ at: 3, spec: spec(0, 50, 2) }]);
    expect([f!.arrived, f!.scheduled, f!.ended]).toEqual([3, 18, 38]);
    expect(cluster.offer(spec(1, 5, 2), 40)).toBeGreaterThan(0);
    expect(cluster.offer(spec(2, 5, 2), 41)).toBeGreaterThan(0);
    expect(cluster.gauges().waiting).toBe(2);
    expect(cluster.offer(spec(3, 5, 2), 42)).toBe(QUEUE_FULL);
  });
});
