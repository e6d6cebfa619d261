/**
 * What one candidate can do. First the cap: the largest batch at which the target share of requests still meets the
 * per-token limits with the batch kept full. Then the rate a replica so capped sustains, by search over simulations.
 */
import type { Share } from '../base/units.ts';
import { judge } from '../core/judge.ts';
import { runSearch } from '../drive/capacity/run.ts';
import { type CapacityOutcome, type Probe, SEARCH_DEFAULTS, type SearchPlan } from '../drive/capacity/types.ts';
import { metricsOf, simulate } from '../sim/index.ts';
import { meanTokens, openMix } from '../workload/index.ts';
import { closedMix } from '../workload/mix.ts';
import { type Candidate, type PlanAsk, type Replica, replicaOf } from './options.ts';
import { probeOf } from './probe.ts';

/** A candidate as it stands after its search. Plain data. */
export interface Evaluated {
  readonly candidate: Candidate;
  readonly basis: Replica['basis'];
  readonly cap: number;
  /** What keeps the cap from being larger. */
  readonly capBound: 'tpot' | 'kv-pool' | 'limit';
  /** Highest rate confirmed to pass and lowest confirmed to fail, requests (or sessions) a second a replica. */
  readonly low: number | null;
  readonly high: number | null;
  /** Where it seems to lie while not confirmed. */
  readonly steer: number | null;
  readonly end: CapacityOutcome['end'];
  readonly attainment: Share | null;
  readonly ttftP90: number | null;
  readonly tpotP90: number | null;
  readonly tokensPerSecond: number | null;
  /** The limit that is missed first beyond the rate, or at any rate. */
  readonly binding: string | null;
  readonly beyond: readonly string[];
  readonly confirmed: boolean;
}

/** Larger caps are not tried: vLLM's own default is 256, its largest captured graph 512. */
export const LARGEST_CAP = 512;

export function evaluate(
  ask: PlanAsk,
  c: Candidate,
  how: 'steer' | 'confirm',
  knownCap?: CapFound,
): Promise<Evaluated> {
  const replica = replicaOf(ask, c);
  const cap = knownCap ?? largestCap(ask, replica);
  return search(ask, c, replica, cap, how);
}

export interface CapFound {
  readonly cap: number;
  readonly bound: Evaluated['capBound'];
}

/** By bisection over closed loops that keep the batch full; attainment of the per-token limits falls with the batch. */
export function largestCap(ask: PlanAsk, replica: Replica): CapFound {
  const most = Math.min(LARGEST_CAP, poolOf(ask, replica));
  if (most < 1) return { cap: 1, bound: 'kv-pool' };
  const { tpot, gap, smoothness } = ask.contract.limits;
  const bound = most === LARGEST_CAP ? 'limit' : 'kv-pool';
  if (tpot === undefined && gap === undefined && smoothness === undefined) return { cap: most, bound };
  let low = 0;
  let high = most + 1;
  // A cap need not be finer than a few percent.
  while (high - low > Math.max(1, Math.floor(low / 32))) {
    const mid = low === 0 ? Math.max(1, Math.floor(high / 4)) : Math.floor(Math.sqrt(low * high));
    const at = Math.min(high - 1, Math.max(low + 1, mid));
    if (paceAttainment(ask, replica, at) >= ask.contract.attainment) low = at;
    else high = at;
  }
  return low >= most ? { cap: most, bound } : { cap: Math.max(1, low), bound: 'tpot' };
}

/** Sequences of the mix's mean length that the KV pool holds. */
function poolOf(ask: PlanAsk, replica: Replica): number {
  const { requests, input, output } = meanTokens(ask.mix);
  const limits = replica.limits(1);
  return Math.floor((limits.kvBlocks * limits.blockTokens) / ((input + output) / requests));
}

/** Share of requests within the limits on pace, with `cap` sequences always in the batch. */
export function paceAttainment(ask: PlanAsk, replica: Replica, cap: number): Share {
  const { tpot, gap, smoothness } = ask.contract.limits;
  const limits = {
    ...(tpot !== undefined && { tpot }),
    ...(gap !== undefined && { gap }),
    ...(smoothness !== undefined && { smoothness, ttft: ask.contract.limits.ttft ?? Number.MAX_SAFE_INTEGER }),
  };
  const pace = { ...ask.contract, limits, deadline: Number.MAX_SAFE_INTEGER };
  const warm = 2 * cap;
  const want = warm + Math.max(200, 3 * cap);
  let seen = 0;
  let good = 0;
  let counted = 0;
  const singles = { ...ask.mix, classes: ask.mix.classes.map(({ session, ...rest }) => rest) };
  simulate(closedMix(singles, cap, ask.seed), replica.cluster(cap), (done) => {
    if (++seen <= warm) return false;
    counted++;
    const facts = { outcome: 'completed' as const, streamed: true, asked: { output: done.spec.outputTokens } };
    if (done.outcome === 'completed' && judge(metricsOf(done), facts, pace).class === 'good') good++;
    return seen >= want;
  });
  return counted > 0 ? good / counted : 0;
}

async function search(
  ask: PlanAsk,
  c: Candidate,
  replica: Replica,
  cap: CapFound,
  how: 'steer' | 'confirm',
): Promise<Evaluated> {
  const target = {
    cluster: () => replica.cluster(cap.cap),
    workload: (rate: number, seed: number) => openMix(ask.mix, { ...ask.process, rate }, seed),
    contract: ask.contract,
  };
  const plan: SearchPlan = {
    ...SEARCH_DEFAULTS,
    target: ask.contract.attainment,
    seed: ask.seed,
    unloadedRate: 0.05,
    unloadedRequests: 60,
    warmup: 100,
    ...(how === 'steer'
      ? { resolution: 0.08, steerRequests: 500, groups: 0, confirmRequests: 100, replications: 2 }
      : { resolution: 0.04, steerRequests: 1000, confirmRequests: 1500, replications: 8 }),
  };
  const probes: Probe[] = [];
  const outcome = await runSearch(plan, {
    run: (request) => {
      const measure = probeOf(target, request);
      probes.push({ request, measure });
      return measure;
    },
  });
  const rate = outcome.low ?? outcome.bracket.low;
  const at = probes.filter((p) => p.request.rate === rate).at(-1)?.measure ?? null;
  const point = outcome.points.filter((p) => p.rate === rate).at(-1) ?? null;
  return {
    candidate: c,
    basis: replica.basis,
    cap: cap.cap,
    capBound: cap.bound,
    low: outcome.end === 'infeasible' ? null : outcome.low,
    high: outcome.high,
    steer: outcome.end === 'infeasible' ? null : (outcome.bracket.low ?? null),
    end: outcome.end,
    attainment: point?.attainment ?? null,
    ttftP90: point?.ttft.p90 ?? null,
    tpotP90: point?.tpot.p90 ?? null,
    tokensPerSecond: at?.throughput ?? null,
    binding: bindingText(outcome, probes),
    beyond: replica.beyond(),
    confirmed: how === 'confirm' && outcome.low !== null,
  };
}

/** What is missed first: of the failing probe nearest the knee. */
function bindingText(outcome: CapacityOutcome, probes: readonly Probe[]): string | null {
  if (outcome.binding) return outcome.binding.limit;
  const failing = probes
    .filter((p) => p.measure.attainment < outcome.target && p.measure.misses.length > 0)
    .sort((a, b) => a.request.rate - b.request.rate)[0];
  return failing?.measure.misses[0]?.limit ?? null;
}
