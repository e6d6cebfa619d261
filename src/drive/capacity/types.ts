/** What a capacity search asks for and is told. Plain data: a search can be stored after each probe and taken up again. */
import type { Millis, PerSecond, Share } from '../../base/units.ts';
import type { LimitName } from '../../core/contract.ts';
import type { LedgerClass } from '../../core/judge.ts';

/**
 * `unloaded`: so slow that requests hardly meet. `steer`: one cheap run that only guides. `confirm`: one of several
 * independent replications that the answer rests on.
 */
export type ProbeRole = 'unloaded' | 'steer' | 'confirm';

/** One run at one rate. */
export interface ProbeRequest {
  readonly rate: PerSecond;
  /** Never used twice within a search. */
  readonly seed: number;
  /** Size of the cohort, and how many offers come before it. */
  readonly requests: number;
  readonly warmup: number;
  readonly role: ProbeRole;
  /** In words for people: why this rate, and why again if it was probed before. */
  readonly why: string;
  /** The replication's number from 1 on, of how many, in which group of the search. */
  readonly replication?: { readonly index: number; readonly of: number; readonly group: number };
}

export interface Quantiles {
  readonly p50: Millis | null;
  readonly p90: Millis | null;
  readonly p99: Millis | null;
}

/** Where misses come from: a limit (or the way an operation ended) and a class of requests. */
export interface Miss {
  readonly class: string;
  readonly limit: LimitName | LedgerClass;
  readonly count: number;
  readonly offered: number;
}

/** What one run found. No infinities: JSON could not keep them. */
export interface ProbeMeasure {
  readonly offered: number;
  readonly good: number;
  /** Share good, and its interval from this one run: indicative only. */
  readonly attainment: Share;
  readonly low: Share;
  readonly high: Share;
  /** How many independent operations this run is worth, for its share. */
  readonly effectiveN: number;
  readonly goodput: PerSecond;
  readonly throughput: PerSecond | null;
  /** Quantiles over offered operations; null: that quantile never came. */
  readonly ttft: Quantiles;
  readonly tpot: Quantiles;
  readonly e2eP50: Millis;
  readonly e2eP95: Millis;
  /** Share cancelled at the deadline: load the server was spared. */
  readonly shed: Share;
  /** Kendall's τ of TTFT over arrival, in batches, failures as +∞; and its p-value, two-sided. 0 and 1: too few. */
  readonly trend: number;
  readonly trendP: number;
  /** TTFT of the last quarter over that of the first: a trend of microseconds is no overload. */
  readonly climb: number;
  /** Offers from the start that MSER-5 would leave out; null: not settled by the middle of the run, or too short to tell. */
  readonly settling: number | null;
  readonly misses: readonly Miss[];
  /** Why the client, not the server, was measured; empty when it was not. */
  readonly clientBound: readonly string[];
  /** Length of the whole run, warm-up and cool-down included. */
  readonly elapsed: Millis;
}

export interface Probe {
  readonly request: ProbeRequest;
  readonly measure: ProbeMeasure;
}

/** `void` proves nothing about the server. `pass` and `fail` of a steering probe are its leaning, not a finding. */
export type CapacityVerdict = 'pass' | 'fail' | 'undecided' | 'void';

/** A rate of the curve: a steering probe, or the replications of a group together. */
export interface CurvePoint {
  readonly rate: PerSecond;
  readonly role: ProbeRole;
  readonly verdict: CapacityVerdict;
  readonly attainment: Share;
  readonly low: Share;
  readonly high: Share;
  /** Confidence of [low, high], two-sided. */
  readonly level: Share;
  readonly effectiveN: number;
  readonly goodput: PerSecond;
  readonly throughput: PerSecond | null;
  readonly ttft: Quantiles;
  readonly tpot: Quantiles;
  readonly offered: number;
  readonly replications: number;
  readonly unstable: boolean;
  readonly shed: Share;
  readonly misses: readonly Miss[];
  /** What the verdict rests on, in words. */
  readonly because: string;
  readonly why: string;
  readonly elapsed: Millis;
}

export interface SearchPlan {
  /** The share of operations that must be good. */
  readonly target: Share;
  /** Seeds are drawn from this one. */
  readonly seed: number;
  /** The steering bracket is narrowed until high/low ≤ 1 + resolution. */
  readonly resolution: number;
  /** Joint confidence of the interval. */
  readonly confidence: Share;
  /** The first rate: so slow that the server is almost unloaded. */
  readonly unloadedRate: PerSecond;
  /** Where the knee is expected, from a model of the hardware. */
  readonly guess?: PerSecond;
  readonly unloadedRequests: number;
  readonly steerRequests: number;
  /** Cohort of a replication; raised up to `stretch` times where neighbours are so alike that more are needed. */
  readonly confirmRequests: number;
  readonly stretch: number;
  readonly replications: number;
  /** Fewest offers before a cohort. */
  readonly warmup: number;
  /** Groups of replications at most. */
  readonly groups: number;
  readonly maxRate: PerSecond;
  /**
   * What an arrival is, where it is more than one operation: a session's mean turns, and its mean think time in all. Rates,
   * cohorts and warm-ups then count sessions.
   */
  readonly arrival?: { readonly operations: number; readonly pauses: Millis };
}

export const SEARCH_DEFAULTS: Omit<SearchPlan, 'target' | 'seed' | 'unloadedRate'> = {
  resolution: 0.05,
  confidence: 0.95,
  unloadedRequests: 30,
  steerRequests: 300,
  confirmRequests: 500,
  stretch: 4,
  replications: 5,
  warmup: 20,
  groups: 7,
  maxRate: 100_000,
};

/** Why a search ended. */
export type SearchEnd =
  | 'found'
  | 'infeasible'
  /** Rates beyond `ceiling` could not be offered. */
  | 'client-bound'
  /** Still passing at the highest rate allowed. */
  | 'above-range'
  /** Some verdict could not be had in the groups, or the time, allowed. */
  | 'undecided'
  | 'interrupted';

export interface CapacityOutcome {
  readonly end: SearchEnd;
  /** Highest rate confirmed to pass, and the lowest confirmed to fail; null where there is none. */
  readonly low: PerSecond | null;
  readonly high: PerSecond | null;
  readonly confidence: Share;
  readonly target: Share;
  /** In the order they were run. */
  readonly points: readonly CurvePoint[];
  /** The steering bracket: where capacity seems to lie while it is not confirmed. */
  readonly bracket: { readonly low: PerSecond | null; readonly high: PerSecond | null };
  readonly goodputAtCapacity: PerSecond | null;
  /** The limit and class that are missed most: without load when infeasible, else at the lowest rate that fails. */
  readonly binding: Miss | null;
  /** What else must be said: a rise of attainment with rate, a goodput that peaks, a client at its limit. */
  readonly notes: readonly string[];
  readonly runs: number;
  readonly offered: number;
  readonly elapsed: Millis;
}
