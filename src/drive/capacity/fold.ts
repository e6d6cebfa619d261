/** One run folded into what a search needs. The same for a live run and a simulated one. */
import type { Millis, PerSecond } from '../../base/units.ts';
import type { LimitName } from '../../core/contract.ts';
import type { LedgerClass, Verdict } from '../../core/judge.ts';
import { attainmentInterval } from '../../stats/attainment.ts';
import { batchMedians, mser5 } from '../../stats/batches.ts';
import { offeredQuantile, quantile } from '../../stats/quantile.ts';
import { driftTest } from '../../stats/trend.ts';
import type { Miss, ProbeMeasure, Quantiles } from './types.ts';

/** Batches a run is cut into for its trend. */
const BATCHES = 20;

/** What is known of one operation of the cohort. */
export interface Judged {
  readonly operation: number;
  readonly class: string;
  readonly verdict: Pick<Verdict, 'class' | 'excluded' | 'missed'>;
  readonly metrics: {
    readonly ttft?: Millis;
    readonly tpot?: Millis;
    readonly e2e?: Millis;
    readonly latency?: Millis;
  };
}

export interface ProbeTotals {
  /** Length of the cohort's window, s. */
  readonly seconds: number;
  readonly throughput: PerSecond | null;
  readonly clientBound: readonly string[];
  readonly elapsed: Millis;
}

/** Memory: some 40 bytes an operation of the cohort. */
export class ProbeFold {
  #operation: number[] = [];
  #outcome: number[] = [];
  #ttft: number[] = [];
  #tpot: number[] = [];
  #e2e: number[] = [];
  #tpotCensored = 0;
  #longest = 0;
  #offered = 0;
  #good = 0;
  #shed = 0;
  #misses = new Map<string, Map<LimitName | LedgerClass, number>>();
  #classes = new Map<string, number>();
  #early: (readonly [operation: number, ttft: number])[] = [];

  get offered(): number {
    return this.#offered;
  }

  add(op: Judged): void {
    const { verdict, metrics } = op;
    const c = verdict.class;
    this.#offered++;
    this.#classes.set(op.class, (this.#classes.get(op.class) ?? 0) + 1);
    const e2e = metrics.e2e ?? 0;
    this.#e2e.push(e2e);
    if (c === 'timed-out') this.#shed++;
    if (metrics.tpot !== undefined) this.#tpot.push(metrics.tpot);
    else if (c !== 'good' && c !== 'late' && c !== 'invalid') this.#tpotCensored++;
    if (metrics.ttft === undefined) this.#longest = Math.max(this.#longest, e2e);
    if (c === 'good') this.#good++;
    else if (c === 'late') for (const limit of verdict.missed) this.#miss(op.class, limit);
    else this.#miss(op.class, c);
    if (verdict.excluded) return;
    this.#operation.push(op.operation);
    this.#outcome.push(c === 'good' ? 1 : c === 'undecided' ? 2 : 0);
    this.#ttft.push(metrics.ttft ?? (c === 'good' || c === 'late' ? e2e : Number.POSITIVE_INFINITY));
  }

  /** An operation of the warm-up: it only tells how long the server took to settle. */
  warm(operation: number, metrics: Judged['metrics']): void {
    this.#early.push([operation, metrics.ttft ?? Number.POSITIVE_INFINITY]);
  }

  /** The arrival order of the cohort: operations are numbered, most often without a gap, and then each has its place. */
  #order(): Uint32Array {
    const of = this.#operation;
    let [least, most] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
    for (const operation of of) {
      if (operation < least) least = operation;
      if (operation > most) most = operation;
    }
    const order = new Uint32Array(of.length);
    if (most - least + 1 === of.length) of.forEach((operation, i) => void (order[operation - least] = i));
    else order.set(Uint32Array.from(of.keys()).sort((a, b) => of[a]! - of[b]!));
    return order;
  }

  /** What MSER-5 would leave out of warm-up and cohort together. */
  #settling(cohort: Float64Array): number | null {
    const early = this.#early.sort((a, b) => a[0] - b[0]);
    const series = new Float64Array(early.length + cohort.length);
    early.forEach(([, ttft], i) => void (series[i] = ttft));
    series.set(cohort, early.length);
    const { drop, settled } = mser5(series);
    return settled ? drop : null;
  }

  #miss(className: string, limit: LimitName | LedgerClass): void {
    let of = this.#misses.get(className);
    if (!of) {
      of = new Map();
      this.#misses.set(className, of);
    }
    of.set(limit, (of.get(limit) ?? 0) + 1);
  }

  finish(totals: ProbeTotals): ProbeMeasure {
    const order = this.#order();
    const outcomes = Uint8Array.from(order, (i) => this.#outcome[i]!);
    const latent = Float64Array.from(order, (i) => this.#ttft[i]!);
    const interval = attainmentInterval(outcomes, latent);
    const batches = batchMedians(latent, BATCHES);
    const drift = driftTest(batches);
    const finite = latent.filter(Number.isFinite).sort();
    const e2e = Float64Array.from(this.#e2e).sort();
    const misses: Miss[] = [];
    for (const [name, of] of this.#misses) {
      for (const [limit, count] of of) misses.push({ class: name, limit, count, offered: this.#classes.get(name)! });
    }
    misses.sort((a, b) => b.count / b.offered - a.count / a.offered);
    return {
      offered: this.#offered,
      good: this.#good,
      attainment: interval?.value ?? 0,
      low: interval?.low ?? 0,
      high: interval?.high ?? 1,
      effectiveN: interval?.effectiveN ?? 0,
      goodput: totals.seconds > 0 ? this.#good / totals.seconds : 0,
      throughput: totals.throughput,
      ttft: quantiles(finite, latent.length - finite.length, this.#longest),
      tpot: quantiles(Float64Array.from(this.#tpot).sort(), this.#tpotCensored, this.#longest),
      e2eP50: offeredQuantile(e2e, 0, 0.5, 0)?.value ?? 0,
      e2eP95: offeredQuantile(e2e, 0, 0.95, 0)?.value ?? 0,
      shed: this.#offered > 0 ? this.#shed / this.#offered : 0,
      trend: drift.direction === 'unknown' ? 0 : drift.tau,
      trendP: drift.p,
      climb: climbOf(batches),
      settling: this.#settling(latent),
      misses,
      clientBound: totals.clientBound,
      elapsed: totals.elapsed,
    };
  }
}

function quantiles(sorted: Float64Array, censored: number, longest: Millis): Quantiles {
  const of = (p: number): Millis | null => {
    const value = offeredQuantile(sorted, censored, p, longest)?.value;
    return value === undefined || value === null || !Number.isFinite(value) ? null : value;
  };
  return { p50: of(0.5), p90: of(0.9), p99: of(0.99) };
}

/** The median batch of the last quarter over that of the first; at most 1,000, which stands for what never came. */
function climbOf(batches: Float64Array): number {
  const quarter = Math.floor(batches.length / 4);
  if (quarter < 1) return 1;
  const first = quantile(batches.slice(0, quarter).sort(), 0.5) as number;
  const last = quantile(batches.slice(-quarter).sort(), 0.5) as number;
  if (first === last) return 1;
  return Math.min(1000, Math.max(0.001, last / first || 1));
}
