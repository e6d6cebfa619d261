/**
 * What one candidate can do: its cap first, then the rate a replica so capped sustains, by search over simulations.
 */
import type { Share } from '../base/units.ts';
import { searchCost } from '../drive/capacity/cost.ts';
import { runSearch } from '../drive/capacity/run.ts';
import { type CapacityOutcome, type Probe, SEARCH_DEFAULTS, type SearchPlan } from '../drive/capacity/types.ts';
import { type CapBound, type CapFound, largestCap } from './cap.ts';
import { type Candidate, type PlanAsk, type Replica, replicaOf } from './options.ts';
import { type ProbeTarget, probeOf } from './probe.ts';
import { openTraffic, turnsOf } from './traffic.ts';

/** A candidate as it stands after its search. Plain data. */
export interface Evaluated {
  readonly candidate: Candidate;
  readonly basis: Replica['basis'];
  readonly cap: number;
  readonly capBound: CapBound;
  /** Requests a second with the batch kept full at the cap. */
  readonly full: number;
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
  /** TTFT p90 almost without load: what computing a prompt takes. */
  readonly aloneTtftP90: number | null;
  /** The limit, and the class, missed most just beyond the rate, or at any rate. */
  readonly binding: string | null;
  readonly bindingClass: string | null;
  /** Share of the cap in use just beyond the rate (Little's law, at the median E2E). */
  readonly occupied: Share | null;
  readonly beyond: readonly string[];
  readonly confirmed: boolean;
}

export async function evaluate(
  ask: PlanAsk,
  c: Candidate,
  how: 'steer' | 'confirm',
  knownCap?: CapFound,
): Promise<Evaluated> {
  const replica = replicaOf(ask, c);
  const cap = knownCap ?? largestCap(ask, replica);
  const target: ProbeTarget = {
    cluster: () => replica.cluster(cap.cap),
    workload: (rate, seed) => openTraffic(ask.traffic, rate, seed),
    contract: ask.contract,
    ...(ask.contracts && {
      contracts: ask.contracts,
      classTargets: Object.fromEntries(Object.entries(ask.contracts).map(([name, k]) => [name, k.attainment])),
    }),
  };
  const probes: Probe[] = [];
  const outcome = await runSearch(planOf(ask, cap, how), {
    run: (request) => {
      const measure = probeOf(target, request);
      probes.push({ request, measure });
      return measure;
    },
  });
  const rate = outcome.low ?? outcome.bracket.low;
  const at = probes.filter((p) => p.request.rate === rate).at(-1)?.measure ?? null;
  const point = outcome.points.filter((p) => p.rate === rate).at(-1) ?? null;
  const failing = firstFailing(outcome, probes);
  const miss = outcome.binding ?? failing?.measure.misses[0] ?? null;
  const calm = probes[0]?.measure;
  return {
    candidate: c,
    basis: replica.basis,
    cap: cap.cap,
    capBound: cap.bound,
    full: cap.full,
    low: outcome.end === 'infeasible' ? null : outcome.low,
    high: outcome.high,
    steer: outcome.end === 'infeasible' ? null : (outcome.bracket.low ?? null),
    end: outcome.end,
    attainment: point?.attainment ?? null,
    ttftP90: (point ?? calm)?.ttft.p90 ?? null,
    tpotP90: (point ?? calm)?.tpot.p90 ?? null,
    tokensPerSecond: at?.throughput ?? null,
    aloneTtftP90: calm?.ttft.p90 ?? null,
    binding: miss?.limit ?? null,
    bindingClass: miss?.class ?? null,
    occupied: failing
      ? Math.min(1, (failing.request.rate * turnsOf(ask.traffic) * failing.measure.e2eP50) / 1000 / cap.cap)
      : null,
    beyond: replica.beyond(),
    confirmed: how === 'confirm' && outcome.low !== null,
  };
}

/** From what a full batch does: the knee lies below it, and a two-hundredth of it is hardly a load. */
export function planOf(ask: PlanAsk, cap: CapFound, how: 'steer' | 'confirm'): SearchPlan {
  const full = cap.full / turnsOf(ask.traffic);
  return {
    ...SEARCH_DEFAULTS,
    target: ask.contract.attainment,
    seed: ask.seed,
    unloadedRate: full > 0 ? full / (10 * Math.max(20, cap.cap)) : 0.05,
    ...(full > 0 && { guess: 0.85 * full }),
    unloadedRequests: 60,
    warmup: 100,
    ...(how === 'steer'
      ? { resolution: 0.08, steerRequests: 500, groups: 0, confirmRequests: 100, replications: 2 }
      : { resolution: 0.04, steerRequests: 1000, confirmRequests: 1500, replications: 8 }),
  };
}

/** Requests a candidate's simulation is likely to take, for an estimate before it starts. */
export function simulatedRequests(ask: PlanAsk, how: 'steer' | 'confirm'): number {
  const typical: CapFound = { cap: 128, bound: 'limit', full: 1 };
  const { offered } = searchCost(planOf(ask, typical, how));
  // A steered candidate has its cap found by some eight closed loops of five rounds first.
  return Math.round(offered * turnsOf(ask.traffic) + (how === 'steer' ? 8 * 5 * typical.cap : 0));
}

/** The failing probe nearest the knee. */
function firstFailing(outcome: CapacityOutcome, probes: readonly Probe[]): Probe | undefined {
  return probes
    .filter((p) => p.measure.attainment < outcome.target && p.measure.misses.length > 0)
    .sort((a, b) => a.request.rate - b.request.rate)[0];
}
