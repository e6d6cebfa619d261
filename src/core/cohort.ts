/**
 * The cohort: the operations whose `scheduled` falls in a planned window, folded into the ledger, the misses, and the
 * exact columns that quantiles and intervals are taken from. Shards merge exactly.
 */
import { type Millis, type PerSecond, toMicroGrid } from '../base/units.ts';
import { LogSketch } from '../stats/sketch.ts';
import type { Contract, ContractFor, LimitName } from './contract.ts';
import { judge, LEDGER, type LedgerClass, measureOptions, type Verdict } from './judge.ts';
import { forEachGap, type Metrics, measure } from './measure.ts';
import type { RequestRecord } from './record.ts';
import { PREDECESSOR_FAILED } from './request.ts';
import type { Reducer } from './sink.ts';
import type { TokenExactness, TokenSource } from './tokens.ts';

/** Operations with `start ≤ scheduled < end` are the cohort. `estimated`: no window was planned, it was inferred. */
export interface Window {
  readonly start: Millis;
  readonly end: Millis;
  readonly estimated?: boolean;
  /**
   * Asked for N requests, the cohort is the N first offers after warm-up, operations `[from, to)`, and the window only
   * gives the rates their length. Absent where the window decides.
   */
  readonly operations?: readonly [from: number, to: number];
  /**
   * In a load of sessions the cohort is those that arrived in the window, `[from, to)`, with all their turns, whenever these
   * came. Operations of no session are then told by the window.
   */
  readonly sessions?: readonly [from: number, to: number];
}

/** Whether an operation belongs to the window's cohort. */
export function inCohort(window: Window, operation: number, scheduled: Millis, session?: number): boolean {
  if (window.sessions && session !== undefined) return session >= window.sessions[0] && session < window.sessions[1];
  if (window.operations) return operation >= window.operations[0] && operation < window.operations[1];
  return scheduled >= window.start && scheduled < window.end;
}

/** Metrics with exact columns. Those of `COMPLETED_ONLY` are measured on completed operations alone. */
export const COLUMNS = [
  'ttft',
  'ttftDispatched',
  'ttfa',
  'tpot',
  'gap',
  'smoothness',
  'latency',
  'e2e',
  'e2eDispatched',
  'sendLag',
  'ttftScheduled',
  'e2eScheduled',
] as const;
export type Column = (typeof COLUMNS)[number];

/** A truncated stream has no last token and no end of its own, so these are not measured on it. */
const COMPLETED_ONLY: ReadonlySet<Column> = new Set([
  'tpot',
  'smoothness',
  'latency',
  'e2e',
  'e2eDispatched',
  'e2eScheduled',
]);

/** Columns where an unsuccessful operation ranks as +∞ (or as 0, the worst smoothness) when taken over all offered. */
export interface CohortFold {
  readonly window: Window;
  readonly ledger: Readonly<Record<LedgerClass, number>>;
  readonly offered: number;
  /** Taken out of the denominator by the contract. */
  readonly excluded: number;
  /** `scheduled` and 1/0/2 (good, not good, undecided) of each non-excluded operation, in order of arrival. */
  readonly arrivals: Float64Array;
  readonly good: Uint8Array;
  /** TTFT of the same operations in the same order, +∞ where it never came: the latent series of the interval. */
  readonly latent: Float64Array;
  /** Measured values, sorted ascending. */
  readonly columns: Readonly<Record<Column, Float64Array>>;
  /** For each column, offered operations that ended without the event: they rank as +∞. Undecided ones are not counted. */
  readonly censored: Readonly<Record<Column, number>>;
  /** Pooled chunk gaps of all operations, and those of token-exact streams alone (ITL). */
  readonly gaps: LogSketch;
  readonly itl: LogSketch;
  /** How many completed operations missed each set of limits: key `ttft`, or `ttft+tpot`. */
  readonly missedSets: ReadonlyMap<string, number>;
  readonly unmeasurable: ReadonlyMap<LimitName, number>;
  readonly vacuous: ReadonlyMap<LimitName, number>;
  readonly tokenSources: ReadonlyMap<TokenSource, number>;
  readonly exactness: ReadonlyMap<TokenExactness, number>;
  /** Reasons of unsuccessful ends, and of invalid ones, with counts and one example detail. */
  readonly reasons: ReadonlyMap<string, { readonly count: number; readonly detail: string }>;
  readonly attempts: number;
  readonly events: number;
  readonly coalesced: number;
  readonly unclassified: number;
  readonly impliedEnds: number;
  readonly coarseFirstChunk: number;
  /** Σ tokens asked and achieved, over completed operations where the count is known. */
  readonly lengths: Lengths;
  /** Elapsed time at which the longest unsuccessful operation was given up: what "> x" says of an infinite quantile. */
  readonly censoredAbove: Millis;
  /** Of the unsent, turns that were not sent because their predecessor failed: not the client's doing. */
  readonly unsentAfterFailure: number;
}

export interface Lengths {
  readonly askedInput: number;
  readonly achievedInput: number;
  readonly askedOutput: number;
  readonly achievedOutput: number;
}

export class CohortReducer implements Reducer<RequestRecord, CohortFold> {
  readonly contract: Contract;
  readonly window: Window;
  readonly #contractFor: ContractFor;
  #arrivals = new Column64();
  /** Numbers of the operations: those of one instant stand in their order, whichever shard had them. */
  #operations = new Column64();
  #verdicts: number[] = [];
  #latent = new Column64();
  #ledger = Object.fromEntries(LEDGER.map((c) => [c, 0])) as Record<LedgerClass, number>;
  #excluded = 0;
  #columns = byColumn(() => new Column64());
  #censored = byColumn(() => 0);
  /** Gaps of token-exact streams, and of all others: each gap is put in one sketch, for that is what a fold costs most. */
  #itl = new LogSketch();
  #coarse = new LogSketch();
  #missedSets = new Map<string, number>();
  #unmeasurable = new Map<LimitName, number>();
  #vacuous = new Map<LimitName, number>();
  #sources = new Map<TokenSource, number>();
  #exactness = new Map<TokenExactness, number>();
  #reasons = new Map<string, { count: number; detail: string }>();
  #attempts = 0;
  #events = 0;
  #coalesced = 0;
  #unclassified = 0;
  #impliedEnds = 0;
  #coarseFirstChunk = 0;
  #lengths = { askedInput: 0, achievedInput: 0, askedOutput: 0, achievedOutput: 0 };
  #censoredAbove = 0;
  #unsentAfterFailure = 0;

  /** @param contractFor the contract of each traffic class, where they differ. */
  constructor(contract: Contract, window: Window, contractFor: ContractFor = () => contract) {
    this.contract = contract;
    this.window = window;
    this.#contractFor = contractFor;
  }

  /** Folds one operation (attempts already folded). Those outside the window are left out. */
  add(record: RequestRecord): void {
    if (!inCohort(this.window, record.operation, record.stamps.scheduled, record.session)) return;
    const contract = this.#contractFor(record.class);
    const metrics = measure(record, measureOptions(contract));
    const verdict = judge(metrics, record, contract);
    this.addJudged(record, metrics, verdict);
  }

  /** The same for a caller that already has metrics and verdict. */
  addJudged(record: RequestRecord, metrics: Metrics, verdict: Verdict): void {
    this.#ledger[verdict.class]++;
    if (record.outcome === 'unsent' && record.reason === PREDECESSOR_FAILED) this.#unsentAfterFailure++;
    this.#attempts += record.attempts;
    this.#events += record.events;
    this.#coalesced += record.coalesced;
    this.#unclassified += record.unclassified;
    if (record.impliedEnd) this.#impliedEnds++;
    this.#columnsOf(record, metrics, verdict);
    if (verdict.excluded) this.#excluded++;
    else {
      this.#arrivals.push(record.stamps.scheduled);
      this.#operations.push(record.operation);
      this.#verdicts.push(verdict.class === 'good' ? 1 : verdict.class === 'undecided' ? 2 : 0);
      this.#latent.push(
        metrics.ttft ?? (record.streamed ? Number.POSITIVE_INFINITY : (metrics.e2e ?? Number.POSITIVE_INFINITY)),
      );
    }
    if (verdict.class === 'late' && verdict.missed.length > 0) count(this.#missedSets, verdict.missed.join('+'));
    for (const name of verdict.unmeasurable) count(this.#unmeasurable, name);
    for (const name of verdict.vacuous) count(this.#vacuous, name);
    if (record.timeline.length > 0) {
      count(this.#sources, metrics.tokenSource);
      count(this.#exactness, metrics.exactness);
      if ((metrics.firstChunkShare ?? 0) > 0.1) this.#coarseFirstChunk++;
    }
    const reason = verdict.invalid || record.reason;
    if (reason) {
      const had = this.#reasons.get(reason);
      // Reasons are few words of ours; `invalid` ones quote counts, so the table is bounded.
      if (had) had.count++;
      else if (this.#reasons.size < 100) this.#reasons.set(reason, { count: 1, detail: record.detail });
    }
  }

  #columnsOf(record: RequestRecord, metrics: Metrics, verdict: Verdict): void {
    const completed = record.outcome === 'completed';
    const success = verdict.class === 'good' || verdict.class === 'late' || verdict.class === 'invalid';
    const undecided = verdict.class === 'undecided';
    // An answer without output never had the event either, however properly it ended.
    const never = (!success || metrics.chunks === 0) && !undecided;
    if (never) this.#censoredAbove = Math.max(this.#censoredAbove, metrics.e2e ?? 0);
    for (const name of COLUMNS) {
      const value = metrics[name];
      if (value !== undefined && (completed || !COMPLETED_ONLY.has(name))) this.#columns[name].push(value);
      else if (never && !verdict.excluded) this.#censored[name]++;
    }
    if (record.streamed && record.timeline.length > 1) {
      const sketch = metrics.exactness === 'no' ? this.#coarse : this.#itl;
      forEachGap(record, (gap) => sketch.add(gap));
    }
    if (completed) {
      const { usage, asked } = record;
      if (usage?.input !== undefined && asked.input > 0) {
        this.#lengths.askedInput += asked.input;
        this.#lengths.achievedInput += usage.input;
      }
      const output = usage?.output ?? metrics.n;
      if (output !== undefined && asked.output > 0) {
        this.#lengths.askedOutput += asked.output;
        this.#lengths.achievedOutput += output;
      }
    }
  }

  merge(other: this): void {
    for (const c of LEDGER) this.#ledger[c] += other.#ledger[c];
    this.#excluded += other.#excluded;
    this.#arrivals.append(other.#arrivals);
    this.#operations.append(other.#operations);
    for (const v of other.#verdicts) this.#verdicts.push(v);
    this.#latent.append(other.#latent);
    for (const name of COLUMNS) {
      this.#columns[name].append(other.#columns[name]);
      this.#censored[name] += other.#censored[name];
    }
    this.#itl.merge(other.#itl);
    this.#coarse.merge(other.#coarse);
    mergeCounts(this.#missedSets, other.#missedSets);
    mergeCounts(this.#unmeasurable, other.#unmeasurable);
    mergeCounts(this.#vacuous, other.#vacuous);
    mergeCounts(this.#sources, other.#sources);
    mergeCounts(this.#exactness, other.#exactness);
    for (const [reason, { count: n, detail }] of other.#reasons) {
      const had = this.#reasons.get(reason);
      if (had) had.count += n;
      else this.#reasons.set(reason, { count: n, detail });
    }
    this.#attempts += other.#attempts;
    this.#events += other.#events;
    this.#coalesced += other.#coalesced;
    this.#unclassified += other.#unclassified;
    this.#impliedEnds += other.#impliedEnds;
    this.#coarseFirstChunk += other.#coarseFirstChunk;
    for (const k of Object.keys(this.#lengths) as (keyof Lengths)[]) this.#lengths[k] += other.#lengths[k];
    this.#censoredAbove = Math.max(this.#censoredAbove, other.#censoredAbove);
    this.#unsentAfterFailure += other.#unsentAfterFailure;
  }

  finish(): CohortFold {
    const gaps = new LogSketch();
    gaps.merge(this.#itl);
    gaps.merge(this.#coarse);
    const arrivals = this.#arrivals.values();
    const latent = this.#latent.values();
    const operations = this.#operations.values();
    const order = Uint32Array.from(arrivals.keys()).sort(
      (a, b) => arrivals[a]! - arrivals[b]! || operations[a]! - operations[b]!,
    );
    return {
      window: this.window,
      ledger: { ...this.#ledger },
      offered: LEDGER.reduce((sum, c) => sum + this.#ledger[c], 0),
      excluded: this.#excluded,
      arrivals: Float64Array.from(order, (i) => arrivals[i]!),
      good: Uint8Array.from(order, (i) => this.#verdicts[i]!),
      latent: Float64Array.from(order, (i) => latent[i]!),
      columns: byColumn((name) => this.#columns[name].values().sort()),
      censored: { ...this.#censored },
      gaps,
      itl: this.#itl,
      missedSets: this.#missedSets,
      unmeasurable: this.#unmeasurable,
      vacuous: this.#vacuous,
      tokenSources: this.#sources,
      exactness: this.#exactness,
      reasons: this.#reasons,
      attempts: this.#attempts,
      events: this.#events,
      coalesced: this.#coalesced,
      unclassified: this.#unclassified,
      impliedEnds: this.#impliedEnds,
      coarseFirstChunk: this.#coarseFirstChunk,
      lengths: { ...this.#lengths },
      censoredAbove: this.#censoredAbove,
      unsentAfterFailure: this.#unsentAfterFailure,
    };
  }
}

/**
 * The window of records that had none planned: from the first arrival, `span·N/(N−1)` long. Undefined for one record or
 * zero span.
 */
export function estimatedWindow(arrivals: Iterable<Millis>): Window | undefined {
  let n = 0;
  let first = Number.POSITIVE_INFINITY;
  let last = Number.NEGATIVE_INFINITY;
  for (const t of arrivals) {
    n++;
    first = Math.min(first, t);
    last = Math.max(last, t);
  }
  if (n < 2 || last <= first) return undefined;
  return { start: first, end: toMicroGrid(first + ((last - first) * n) / (n - 1)), estimated: true };
}

/** Length of a window in seconds. */
export function windowSeconds(window: Window): number {
  return toMicroGrid(window.end - window.start) / 1000;
}

/** Good operations per second of the window: a rate, never a percentage. */
export function goodputOf(fold: CohortFold): PerSecond {
  return fold.ledger.good / windowSeconds(fold.window);
}

/** A growable column of float64. */
class Column64 {
  #data = new Float64Array(64);
  #length = 0;
  push(x: number): void {
    if (this.#length === this.#data.length) this.#reserve(2 * this.#length);
    this.#data[this.#length++] = x;
  }
  append(other: Column64): void {
    if (this.#length + other.#length > this.#data.length) this.#reserve(2 * (this.#length + other.#length));
    this.#data.set(other.#data.subarray(0, other.#length), this.#length);
    this.#length += other.#length;
  }
  values(): Float64Array<ArrayBuffer> {
    return this.#data.slice(0, this.#length);
  }
  #reserve(size: number): void {
    const grown = new Float64Array(size);
    grown.set(this.#data.subarray(0, this.#length));
    this.#data = grown;
  }
}

function byColumn<T>(make: (name: Column) => T): Record<Column, T> {
  return Object.fromEntries(COLUMNS.map((name) => [name, make(name)])) as Record<Column, T>;
}

function count<K>(map: Map<K, number>, key: K): void {
  map.set(key, (map.get(key) ?? 0) + 1);
}

function mergeCounts<K>(into: Map<K, number>, from: ReadonlyMap<K, number>): void {
  for (const [key, n] of from) into.set(key, (into.get(key) ?? 0) + n);
}
