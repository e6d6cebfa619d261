/**
 * The report: one plain object, which is the JSON as printed. Times are milliseconds, rates per second, shares in [0, 1].
 * A figure that is undefined or was not measured is null, never 0. Every field is of version `goodput.report/1`.
 */
import type { Contract, LimitName } from '../core/index.ts';

export interface Report {
  readonly schema: 'goodput.report/1';
  readonly run: RunFacts;
  readonly contract: Contract;
  /** Where the clock of TTFT, E2E and the limits starts. */
  readonly boundary: Contract['boundary'];
  readonly window: WindowReport;
  readonly cohort: CohortReport;
  readonly attainment: AttainmentReport;
  /** Good operations per second of the window; null where no window is defined. */
  readonly goodput_rps: number | null;
  readonly goodput_rps_per_gpu: number | null;
  readonly offered_rps: number | null;
  /** Operations of the cohort that completed, whenever they did, per second of the window. */
  readonly achieved_rps: number | null;
  /** Output tokens received in the window per second, warm-up and cool-down operations included. */
  readonly throughput_tps: number | null;
  readonly throughput: ThroughputReport | null;
  readonly metrics: MetricsReport;
  /** Late operations by the limit they missed; one that missed two counts in both. Every limit of the contract is named. */
  readonly misses: Partial<Record<LimitName, number>>;
  /** Of those, operations that missed this limit and no other. */
  readonly misses_alone: Partial<Record<LimitName, number>>;
  /** Late operations by the exact set of limits they missed, most frequent first. */
  readonly misses_joint: readonly { readonly limits: readonly LimitName[]; readonly count: number }[];
  /** Of the misses, those that could not be measured, and limits met only because one token leaves them undefined. */
  readonly unmeasurable: Partial<Record<LimitName, number>>;
  readonly vacuous: Partial<Record<LimitName, number>>;
  readonly tokens: TokensReport;
  readonly lengths: LengthsReport;
  readonly attempts: { readonly total: number; readonly per_operation: number | null };
  readonly reasons: readonly { readonly reason: string; readonly count: number; readonly detail: string }[];
  readonly client: ClientReport;
  /** What was sent, held against the planned process or the trace; absent where no arrivals were planned. */
  readonly arrivals?: ArrivalsReport;
  /** Traffic classes, where there are several or one has its own contract. */
  readonly classes?: readonly ClassReport[];
  /** Short names of the notes, for programs. */
  readonly marks: readonly Mark[];
  readonly notes: readonly Note[];
}

export interface ArrivalsReport {
  /** `poisson`, `constant`, `gamma 0.5`, or `trace`: then the trace's own times are the plan. */
  readonly process: string;
  readonly unit: 'requests' | 'sessions';
  readonly planned_rps: number;
  readonly achieved_rps: number;
  /** Arrivals in the window against rate × length; null where the cohort was counted. */
  readonly count: { readonly observed: number; readonly expected: number; readonly p: number | null } | null;
  /** Kolmogorov–Smirnov distance of the gaps as sent from the planned distribution; constant: share of gaps that are off. */
  readonly gaps: { readonly n: number; readonly distance: number; readonly p: number } | null;
  /** Dispatched − scheduled. */
  readonly lag_ms: SpreadReport | null;
  /** No test rejects the plan at one in a thousand. */
  readonly as_planned: boolean;
}

export interface ClassReport {
  readonly name: string;
  /** The contract this class is judged by. */
  readonly contract: Contract;
  readonly offered: number;
  readonly good: number;
  readonly late: number;
  /** Neither good, late nor undecided. */
  readonly unsuccessful: number;
  readonly undecided: number;
  readonly attainment: AttainmentReport;
  /** Late operations by the limit they missed; one that missed two counts in both. */
  readonly misses: Partial<Record<LimitName, number>>;
}

export interface RunFacts {
  readonly name?: string;
  readonly target?: string;
  readonly model?: string;
  readonly dialect?: string;
  /** The load in words: `Poisson 8/s for 30 s, seed 1`. */
  readonly workload?: string;
  /** The arrival rate that was asked for. */
  readonly asked_rps?: number;
  /** A closed loop offers only what the server lets it: it cannot show capacity. */
  readonly closed_loop?: boolean;
  readonly gpus?: number;
  /** The run ended before its time: killed, or stopped by its user. */
  readonly cut?: string;
  /** No contract was named, so this preset was taken. */
  readonly default_contract?: boolean;
  /** Operations that were read or offered but lie outside the window. */
  readonly outside_window?: number;
  /** Further sentences of the command that made the report. */
  readonly remarks?: readonly string[];
}

export interface WindowReport {
  readonly start_ms: number | null;
  readonly end_ms: number | null;
  readonly seconds: number | null;
  /** No window was planned: span·N/(N−1) of the arrivals. */
  readonly estimated: boolean;
}

export interface CohortReport {
  readonly offered: number;
  readonly good: number;
  readonly late: number;
  readonly invalid: number;
  readonly rejected: number;
  readonly failed: number;
  readonly truncated: number;
  readonly timed_out: number;
  readonly cancelled: number;
  readonly unsent: number;
  readonly undecided: number;
  readonly window_s: number | null;
  /** Operations that the contract takes out of attainment's denominator. They stay in the ledger above. */
  readonly excluded: number;
}

export interface AttainmentReport {
  /** good / denominator; with undecided operations the lower of the pair. */
  readonly value: number | null;
  /** The 95 % interval. With undecided operations it covers both ends of the pair. */
  readonly low: number | null;
  readonly high: number | null;
  /** Offered less what the contract excludes. */
  readonly denominator: number;
  readonly target: number;
  /** Value ≥ target; with undecided operations, already the lower of the pair. */
  readonly met: boolean;
  /** What the interval shows of the target. */
  readonly shown: 'met' | 'missed' | 'neither';
  /** [good, good + undecided] / denominator; null without undecided operations. */
  readonly undecided: readonly [number, number] | null;
  readonly level: number;
  readonly method: string;
  /** What must be known before the interval is trusted. */
  readonly method_note: string | null;
  /** How many independent operations these are worth, as far as the method can tell. */
  readonly effective_n: number | null;
}

export interface ThroughputReport {
  readonly tokens: number;
  /** Share of the tokens that were spread evenly over their request's chunks, for want of counts. */
  readonly spread_share: number;
  /** Requests with output in the window whose tokens are unknown; left out. */
  readonly unknown_requests: number;
}

export type MetricName =
  | 'ttft_ms'
  | 'ttft_dispatched_ms'
  | 'ttfa_ms'
  | 'tpot_ms'
  | 'chunk_gap_ms'
  | 'itl_ms'
  | 'max_gap_ms'
  | 'latency_ms'
  | 'e2e_ms'
  | 'e2e_dispatched_ms';

/**
 * TTFT and E2E are from `scheduled` here and from `dispatched` under their own names, whatever the contract's boundary; TTFA
 * and last-token latency are from the boundary. `smoothness` is held against the contract's TTFT and TPOT limits, and null
 * without both.
 */
export type MetricsReport = Readonly<Record<MetricName, MetricReport | null>> & {
  readonly smoothness: SmoothnessReport | null;
};

export const QUANTILES = { p50: 0.5, p90: 0.9, p95: 0.95, p99: 0.99 } as const;
export type QuantileName = keyof typeof QUANTILES;

export interface MetricReport {
  /** Measured values. */
  readonly count: number;
  readonly mean: number;
  readonly p50: number;
  readonly p90: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
  /** 95 % intervals of the quantiles over measured values; a null end: they are worth too few independent ones. */
  readonly ci: Readonly<Record<QuantileName, readonly [number | null, number | null]>> | null;
  /** Quantiles that so many values cannot support, were they ever so independent. */
  readonly unsupported: readonly QuantileName[];
  /**
   * Over offered operations: those that ended unsuccessfully before the event rank as +∞, and a quantile among them is
   * null. Null for pooled gaps, whose population is gaps.
   */
  readonly offered: OfferedReport | null;
  /** For a sketched quantile, its relative error. */
  readonly relative_error?: number;
  /** For ITL: whether one token a chunk was known or inferred from usage. */
  readonly exactness?: 'exact' | 'inferred' | 'mixed';
}

export interface OfferedReport {
  readonly count: number;
  readonly p50: number | null;
  readonly p90: number | null;
  readonly p95: number | null;
  readonly p99: number | null;
  /** What an infinite quantile is known to exceed; null when none is infinite. */
  readonly censored_above: number | null;
}

/** Smoothness is better high, so its quantiles are the low ones. */
export interface SmoothnessReport {
  readonly count: number;
  readonly mean: number;
  readonly p50: number;
  readonly p10: number;
  readonly p5: number;
  readonly p1: number;
  readonly min: number;
}

export interface TokensReport {
  /** Where token counts come from: one source, `mixed`, or `none` without output. */
  readonly source: string;
  readonly sources: Readonly<Record<string, number>>;
  /** Streams by whether each chunk is known to be one token. */
  readonly exactness: Readonly<Record<string, number>>;
}

export interface LengthsReport {
  readonly asked_input: number | null;
  readonly achieved_input: number | null;
  readonly asked_output: number | null;
  readonly achieved_output: number | null;
}

export interface SpreadReport {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

export interface ClientReport {
  /** `unknown`: nothing is recorded of the client. */
  readonly verdict: 'ok' | 'client-bound' | 'unknown';
  readonly why: readonly string[];
  readonly send_lag_ms: SpreadReport | null;
  /** Share of stream events that came in the same read as an earlier one. */
  readonly coalesced: number | null;
  readonly event_loop_ms: SpreadReport | null;
  /** By how much stamps may be late because other streams, ready at the same moment, were read first. */
  readonly stamp_late_ms: SpreadReport | null;
  /** Cores used by the measuring process. */
  readonly cpu: number | null;
  readonly unsent: number;
  /** Records dropped on the way to the run folder. */
  readonly dropped: number;
}

export type Mark =
  | 'client-bound'
  | 'records-dropped'
  | 'cut'
  | 'closed-loop'
  | 'default-contract'
  | 'target-not-shown'
  | 'undecided'
  | 'shed-at-deadline'
  | 'estimated-window'
  | 'no-window'
  | 'outside-window'
  | 'excluded'
  | 'unmeasurable'
  | 'vacuous'
  | 'unsupported-quantiles'
  | 'coarse-first-chunk'
  | 'gaps-are-not-tokens'
  | 'itl-inferred'
  | 'unknown-tokens'
  | 'spread-tokens'
  | 'short-output'
  | 'short-input'
  | 'implied-end'
  | 'unclassified-output'
  | 'coalesced'
  | 'retries'
  | 'remark';

export interface Note {
  readonly mark: Mark;
  readonly text: string;
}
