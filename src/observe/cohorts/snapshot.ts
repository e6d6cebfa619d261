/**
 * `/live`: the cohorts of a proxy as one plain object, `goodput.live/1`. Times of day in Unix seconds, durations in
 * milliseconds, rates per second, shares in [0, 1]. What is undefined is null, never 0.
 */
import type { Millis, PerSecond, Seconds, Share } from '../../base/units.ts';
import type { Limits } from '../../core/contract.ts';
import type { LedgerClass } from '../../core/judge.ts';
import type { SketchData } from '../../stats/sketch.ts';

export interface LiveSnapshot {
  readonly schema: 'goodput.live/1';
  /** Who stamps: at `proxy` the clock starts when a request is received there, at `client` when the caller asks. */
  readonly boundary: 'proxy' | 'client';
  /** What tells this process from others: the proxy's listening address. */
  readonly instance: string;
  readonly time_s: Seconds;
  readonly started_s: Seconds;
  readonly window_s: Seconds;
  readonly contracts: Readonly<Record<string, LiveContract>>;
  /** Operations under way now. */
  readonly now: LiveNow;
  /** Everything since the start: all classes, then each. */
  readonly total: LiveCohort;
  readonly classes: readonly LiveCohort[];
  /** By arrival, oldest first. The last is the one that arrivals fall into now. */
  readonly windows: readonly LiveWindow[];
  /** Upstreams of a proxy; empty for a client. */
  readonly upstreams: readonly LiveUpstream[];
  readonly records: LiveRecords;
}

export interface LiveContract {
  readonly name: string;
  /** ms; smoothness a share. */
  readonly limits: Limits;
  readonly deadline_ms: Millis | null;
  readonly attainment: Share;
}

export interface LiveNow {
  readonly in_flight: number;
  /** Of those, without output yet. */
  readonly waiting: number;
  /** Held back by the proxy's own concurrency cap; they count in the two above. */
  readonly queued: number;
  /** null when none waits. */
  readonly oldest_waiting_ms: Millis | null;
}

export interface LiveWindow {
  readonly start_s: Seconds;
  readonly end_s: Seconds;
  /** `open`: arrivals still fall into it. `settling`: some of its operations are not final. `final`: nothing changes. */
  readonly state: 'open' | 'settling' | 'final';
  /** All classes together, then each that had arrivals. */
  readonly all: LiveCohort;
  readonly classes: readonly LiveCohort[];
}

export interface LiveCohort {
  /** Empty for all classes together. */
  readonly class: string;
  /** offered = pending + Σ outcomes, always. */
  readonly offered: number;
  readonly pending: number;
  readonly outcomes: Readonly<Record<LedgerClass, number>>;
  /** Of the outcomes, those the contract takes out of attainment's denominator. */
  readonly excluded: number;
  /** Attempts sent for the final operations. */
  readonly attempts: number;
  /** [good, good + pending + undecided] / denominator; null without a denominator. */
  readonly attainment: { readonly low: Share; readonly high: Share; readonly denominator: number } | null;
  /** Good per second: of the window's length, or of its part that has passed while it is open. */
  readonly goodput_rps: PerSecond | null;
  readonly offered_rps: PerSecond | null;
  /** Age of the oldest of its operations that has no output yet; null when there is none. */
  readonly oldest_waiting_ms: Millis | null;
  readonly ttft: LiveQuantiles;
  readonly tpot: LiveQuantiles;
  readonly gap: LiveQuantiles;
  readonly latency: LiveQuantiles;
  readonly e2e: LiveQuantiles;
  /** How long the proxy's concurrency cap held operations back. */
  readonly queued: LiveQuantiles;
}

/** Quantiles of final operations, in ms. `measured`: those that have the figure. `offered`: the others rank as +∞. */
export interface LiveQuantiles {
  readonly measured: QuantileRow;
  readonly offered: QuantileRow;
  /** Of measured and censored (`infinite`) values, mergeable by `LogSketch`; absent unless asked for. */
  readonly sketch_ms?: SketchData;
}

export interface QuantileRow {
  readonly count: number;
  /** null where empty; `"inf"` where it falls among operations that never had the event. */
  readonly p50_ms: Millis | 'inf' | null;
  readonly p90_ms: Millis | 'inf' | null;
  readonly p99_ms: Millis | 'inf' | null;
}

export interface LiveUpstream {
  /** Without user or password. */
  readonly url: string;
  readonly in_flight: number;
  readonly max_concurrency: number | null;
  /** False while it is passed over because of failures. */
  readonly healthy: boolean;
  readonly requests: number;
  readonly failures: number;
}

/** What became of records. Dropped ones are missing from the run folder, never from the cohorts. */
export interface LiveRecords {
  readonly written: number;
  readonly pending: number;
  readonly dropped: number;
  /** What is wrong with writing just now; null when nothing is. */
  readonly problem: string | null;
  /** Requests on paths of no dialect that were passed on unrecorded. */
  readonly passed_through: number;
  /** Responses that could not be read, by reason: their bytes passed unchanged. */
  readonly unreadable: Readonly<Record<string, number>>;
  /** Calls of a listener that threw. */
  readonly listener_failures: number;
}
