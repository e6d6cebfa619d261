/**
 * What servers say of themselves, in one form: `observe` makes it from metrics and spans, `diagnose` and `report` read it.
 * It stands beside records and is never mixed into their numbers: its populations and clocks are the server's.
 */
import type { Histogram } from '../stats/histogram.ts';

/** Durations a server observes once a request (or, for `itl`, once a step or token): seconds. */
export const DURATIONS = ['queue', 'prefill', 'decode', 'inference', 'ttft', 'itl', 'tpot', 'e2e', 'transfer'] as const;
export type DurationConcept = (typeof DURATIONS)[number];

/** Sizes a server observes once a request or a step: tokens. */
export const SIZES = ['prompt_length', 'output_length', 'step_tokens', 'prefill_computed'] as const;
export type SizeConcept = (typeof SIZES)[number];

/** What only grows. Prefix cache counters are in tokens or in blocks: `Meaning.unit` says which. */
export const TOTALS = [
  'prompt_tokens',
  'generation_tokens',
  'prefix_cache_queries',
  'prefix_cache_hits',
  'preemptions',
  'draft_tokens',
  'accepted_tokens',
  'finishes',
  'failures',
  'aborts',
  'prefill_seconds',
  'decode_seconds',
  'slo_violations',
  'retries',
] as const;
export type TotalConcept = (typeof TOTALS)[number];

/** What goes up and down. `kv_usage` and utilisations are shares of 0 to 1; clocks MHz, power W, memory bytes. */
export const GAUGES = [
  'running',
  'waiting',
  'kv_usage',
  'process_start',
  'gpu_utilisation',
  'gpu_memory',
  'gpu_power',
  'gpu_clock',
] as const;
export type GaugeConcept = (typeof GAUGES)[number];

export type Concept = DurationConcept | SizeConcept | TotalConcept | GaugeConcept;

/** What a server means by a value: engines differ, and the difference changes conclusions. */
export interface Meaning {
  /** The metric's name, as exposed. */
  readonly metric: string;
  /** When the clock starts, for a duration: 'tokenization begins', 'first schedule' … */
  readonly clock?: string;
  /** What one observation is: 'a request', 'an engine step', 'a token, the interval smoothed' … */
  readonly observation: string;
  /** When it is recorded: 'at the first token', 'when the request finishes' … */
  readonly recorded?: string;
  readonly unit: 'seconds' | 'tokens' | 'blocks' | 'requests' | 'share' | 'bytes' | 'watts' | 'megahertz' | 'steps';
  /** Requests that leave no observation: 'aborted', 'rejected' … */
  readonly misses?: string;
}

/** A histogram's worth of one concept in the window. Without buckets (a summary, two counters) only count and sum. */
export interface Observed {
  readonly count: number;
  /** Σ of the observations, in `meaning.unit`; absent where the server exposes none. */
  readonly sum?: number;
  readonly histogram?: Histogram;
  readonly meaning: Meaning;
}

export interface Counted {
  readonly count: number;
  /** By the server's own reason, where it splits them: finish reasons, error kinds. */
  readonly by?: Readonly<Record<string, number>>;
  readonly meaning: Meaning;
}

/** A gauge over the window: what the scrapes saw, not what happened between them. */
export interface Gauged {
  readonly last: number;
  readonly mean: number;
  readonly min: number;
  readonly max: number;
  readonly samples: number;
  readonly meaning: Meaning;
}

/**
 * Where the teller stands: the engine itself; a router, gateway or frontend before it, which may count the same requests
 * once more; a GPU's exporter. Numbers of different places are never added.
 */
export type Role = 'engine' | 'router' | 'gpu';

/** One replica's own account of one window. Replicas are kept apart: a pool's mean hides the one that suffers. */
export interface ReplicaEvidence {
  /** Address or file and the labels that tell engines apart: `a:8000 engine=1`. */
  readonly replica: string;
  readonly engine: string;
  /** Absent: the engine itself. */
  readonly role?: Role;
  /** Unix ms of the scrapes that bound the window; one scrape has no start: everything since the process began. */
  readonly window: { readonly start?: number; readonly end?: number };
  /** A counter fell in the window: what is told begins at the restart. */
  readonly reset: boolean;
  readonly durations: Readonly<Partial<Record<DurationConcept, Observed>>>;
  readonly sizes: Readonly<Partial<Record<SizeConcept, Observed>>>;
  readonly totals: Readonly<Partial<Record<TotalConcept, Counted>>>;
  readonly gauges: Readonly<Partial<Record<GaugeConcept, Gauged>>>;
  /** What a reader must know to use these numbers. */
  readonly notes: readonly string[];
}

/** Servers' account of one window. */
export interface Evidence {
  readonly replicas: readonly ReplicaEvidence[];
  /** What could not be read, with file and line: those families are left out whole. */
  readonly errors: readonly string[];
}

/** What a server said of one request (a span, a `server` block in its last chunk), seconds on the server's clock. */
export interface RequestEvidence {
  /** The id both sides know: `x-request-id`, the response's id. */
  readonly request: string;
  readonly durations: Readonly<Partial<Record<DurationConcept, number>>>;
  readonly promptTokens?: number;
  readonly cachedTokens?: number;
  readonly outputTokens?: number;
}
