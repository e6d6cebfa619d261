/** Where a scheduler serves one request at a time it is the queue of the textbooks, whatever it is called. */
import { describe, expect, it } from 'vitest';
import type { Uniform } from '../base/random.ts';
import type { Millis } from '../base/units.ts';
import type { Offer } from '../core/request.ts';
import { replicationInterval } from '../stats/index.ts';
import type { Cluster } from './cluster.ts';
import { ContinuousReplica } from './continuous.ts';
import { DisaggregatedCluster } from './disaggregated.ts';
import { FrontendCluster } from './frontend.ts';
import { limitsOf } from './limits.ts';
import { RoutedCluster } from './router.ts';
import { simulate } from './simulate.ts';
import { SpeculativeReplica } from './speculative.ts';
import { StaticReplica } from './static.ts';
import { linearModel, listed, poisson, spec } from './testing.ts';

/** A millisecond a step: the prompt and the first token are one, each later token another. */
const serial = limitsOf({ kvBlocks: 10_000, maxSeqs: 1, maxBatchedTokens: 4096 });
const step = linearModel({ base: 1 });
/** A millisecond a prompt token. */
const prefill = linearModel({ base: 1e-9, perPrefillToken: 1 });

interface Server {
  readonly make: () => Cluster;
  /** What a request of this service time asks. */
  readonly asks: (operation: number, service: Millis) => Offer['spec'];
  /** Spent before the queue. */
  readonly before?: Millis;
}
const byOutput = (operation: number, service: Millis): Offer['spec'] => spec(operation, 1, service);

const SERVERS: Readonly<Record<string, Server>> = {
  continuous: { make: () => new ContinuousReplica(step, serial), asks: byOutput },
  static: { make: () => new StaticReplica(step, serial), asks: byOutput },
  'speculative, nothing drafted': {
    make: () => new SpeculativeReplica(step, serial, { draftTokens: 0, acceptance: 0.5, seed: 1 }),
    asks: byOutput,
  },
  'routed to one replica': {
    make: () => new RoutedCluster([new ContinuousReplica(step, serial)], 'least-loaded'),
    asks: byOutput,
  },
  'behind a frontend': {
    make: () => new FrontendCluster(new ContinuousReplica(step, serial), 12.5),
    asks: byOutput,
    before: 12.5,
  },
  'disaggregated, prompts alone': {
    make: () =>
      new DisaggregatedCluster(new ContinuousReplica(prefill, serial), new ContinuousReplica(step, serial), {
        bytesPerToken: 1,
        bandwidth: 1e9,
        latency: 0,
      }),
    asks: (operation, service) => spec(operation, service, 1),
  },
};

const MEAN = 40;

interface Law {
  readonly draw: (u: Uniform) => Millis;
  readonly secondMoment: number;
}
const LAWS: Readonly<Record<string, Law>> = {
  // Whole steps: geometric, whose wait is that of M/M/1, ρ/(μ−λ), up to 1/(2·40) of it.
  'M/M/1': {
    draw: (u) => Math.max(1, Math.ceil(Math.log(1 - u()) / Math.log(1 - 1 / MEAN))),
    secondMoment: (2 - 1 / MEAN) * MEAN ** 2,
  },
  'M/D/1': { draw: () => MEAN, secondMoment: MEAN ** 2 },
  // One in ten is ten times as long as the others.
  'M/G/1': { draw: (u) => (u() < 0.1 ? 200 : 20), secondMoment: 0.9 * 20 ** 2 + 0.1 * 200 ** 2 },
};
const SERVICE_MEAN: Readonly<Record<string, number>> = { 'M/M/1': MEAN, 'M/D/1': MEAN, 'M/G/1': 38 };

function waits(server: Server, offers: readonly Offer[]): Float64Array {
  const wait = new Float64Array(offers.length);
  simulate(listed(offers), server.make(), ({ finished: f }) => {
    if (f) wait[f.spec.operation] = f.scheduled - f.arrived - (server.before ?? 0);
  });
  return wait;
}

describe.each(Object.keys(SERVERS))('%s, one at a time', (name) => {
  const server = SERVERS[name] as Server;

  it.each(Object.keys(LAWS))('waits as %s says', (law) => {
    const { draw, secondMoment } = LAWS[law] as Law;
    const rho = 0.7;
    const rate = rho / (SERVICE_MEAN[law] as number);
    const means: number[] = [];
    for (let seed = 1; seed <= 8; seed++) {
      const offers = poisson(4000, 1000 * rate, seed, (i, u) => server.asks(i, draw(u)));
      means.push(
        waits(server, offers)
          .subarray(400)
          .reduce((a, b) => a + b, 0) / 3600,
      );
    }
    // Pollaczek–Khinchine: λ·E[S²] / (2(1−ρ)); of M/D/1 it is ρ/(2μ(1−ρ)).
    const expected = (rate * secondMoment) / (2 * (1 - rho));
    const { low, high } = replicationInterval(means, { level: 0.999 });
    expect(low).toBeLessThan(expected);
    expect(high).toBeGreaterThan(expected);
    expect(high - low).toBeLessThan(expected); // an interval that says something
    if (law === 'M/M/1') expect(expected / ((rho * MEAN) / (1 - rho))).toBeCloseTo(1, 1);
  });

  it("follows Lindley's recursion, request by request", () => {
    const service: number[] = [];
    const offers = poisson(3000, 24, 3, (i, u) => {
      service[i] = (LAWS['M/G/1'] as Law).draw(u);
      return server.asks(i, service[i]!);
    }).map((o) => ({ ...o, at: Math.round(1000 * o.at) / 1000 }));
    const wait = waits(server, offers);
    let expected = 0;
    for (let i = 0; i < offers.length; i++) {
      if (i > 0) expected = Math.max(0, expected + service[i - 1]! - (offers[i]!.at - offers[i - 1]!.at));
      expect(Math.abs(wait[i]! - expected)).toBeLessThan(1e-3);
    }
  });
});
