/** `goodput merge --json`: its type is the document. snake_case; what cannot be told is absent, never 0. */
import type {
  Concept,
  DurationConcept,
  GaugeConcept,
  Meaning,
  Role,
  SizeConcept,
  TotalConcept,
} from '../../core/evidence.ts';
import type { Quantiles } from './quantiles.ts';

export const MERGE_SCHEMA = 'goodput.merge/1';

export interface MergedMeaning extends Meaning {
  readonly engine: string;
}

/** Observations that mean the same, of one engine or of several. */
export interface MergedPart {
  readonly count: number;
  /** Σ of the observations, in `meaning.unit`. */
  readonly sum?: number;
  readonly mean?: number;
  readonly quantiles?: Quantiles;
  /** Cumulative; `le` null is +Inf. */
  readonly buckets?: readonly { readonly le: number | null; readonly count: number }[];
  /** Replicas in it. */
  readonly replicas: number;
  readonly meaning: MergedMeaning;
  readonly notes: readonly string[];
}

/** One concept. Where its tellers mean different things there is no number of all: they stand in `apart`. */
export type Merged = Partial<Omit<MergedPart, 'replicas' | 'notes'>> & {
  readonly replicas: number;
  readonly notes: readonly string[];
  readonly apart?: readonly MergedPart[];
};

export interface MergedCount {
  readonly count?: number;
  readonly by?: Readonly<Record<string, number>>;
  readonly replicas: number;
  readonly meaning?: MergedMeaning;
  readonly notes: readonly string[];
  readonly apart?: readonly { readonly count: number; readonly replicas: number; readonly meaning: MergedMeaning }[];
}

export interface MergedGauge {
  /** Of what adds up over replicas: requests, power, memory. */
  readonly sum?: number;
  readonly mean: number;
  readonly min: number;
  readonly max: number;
  readonly by: Readonly<Record<string, number>>;
  readonly replicas: number;
  readonly meaning: MergedMeaning;
  readonly notes: readonly string[];
}

/** What follows from several concepts of one population. */
export interface Derived {
  readonly value: number;
  readonly unit: string;
  readonly how: string;
}

export interface Share {
  readonly limit_s: number;
  readonly low: number;
  readonly high: number;
  readonly count: number;
}

export interface Joint {
  readonly limits: Readonly<Partial<Record<DurationConcept, Share>>>;
  /** The share of requests that met all limits lies in it; nothing tighter follows. */
  readonly low?: number;
  readonly high?: number;
  readonly notes: readonly string[];
}

export interface ReplicaRow {
  readonly replica: string;
  readonly engine: string;
  readonly role: Role;
  readonly window?: { readonly start?: number; readonly end?: number };
  readonly reset: boolean;
  readonly notes: readonly string[];
  readonly concepts: Readonly<
    Partial<Record<Concept, { count?: number; mean?: number; quantiles?: Quantiles; value?: number }>>
  >;
}

export type MergeDocument = {
  readonly schema: typeof MERGE_SCHEMA;
  readonly files: number;
  readonly families: number;
  readonly unmapped: number;
  readonly gauges: Readonly<Partial<Record<GaugeConcept, MergedGauge>>>;
  readonly derived: Readonly<Record<string, Derived>>;
  readonly replicas: readonly ReplicaRow[];
  readonly notes: readonly string[];
  readonly errors: readonly string[];
  readonly joint?: Joint;
} & Readonly<Partial<Record<DurationConcept | SizeConcept, Merged>>> &
  Readonly<Partial<Record<TotalConcept, MergedCount>>>;
