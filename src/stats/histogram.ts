/**
 * Cumulative histograms as Prometheus keeps them: counts of observations ≤ each bound, the last bound +∞. What a histogram
 * says of a quantile is an interval; what two say of replicas is their sum; percentiles are never averaged.
 */
import { InputError } from '../base/errors.ts';

export interface Histogram {
  /** Upper bounds, strictly ascending, the last +∞. Any unit (seconds, in Prometheus). */
  readonly bounds: readonly number[];
  /** Observations ≤ each bound: non-decreasing; the last is the total count. */
  readonly counts: readonly number[];
  /** Σ of the observations. */
  readonly sum: number;
}

/**
 * Checks what a scrape said. `count` is its `_count`, where it gave one; `where` names the line or series in the error.
 * @throws InputError: bounds that do not ascend or lack +Inf, a decreasing bucket, a `_count` other than the +Inf bucket.
 */
export function histogram(
  bounds: readonly number[],
  counts: readonly number[],
  sum: number,
  where: string,
  count?: number,
): Histogram {
  const bad = (what: string): never => {
    throw new InputError(`${where}: ${what}; this is not a valid histogram, look at what exports it`);
  };
  if (bounds.length === 0 || bounds.length !== counts.length)
    bad(`${bounds.length} bounds and ${counts.length} counts`);
  for (let i = 0; i < bounds.length; i++) {
    if (Number.isNaN(bounds[i]!)) bad('a bound is not a number');
    if (i > 0 && !(bounds[i]! > bounds[i - 1]!)) bad(`bound ${bounds[i]} does not exceed ${bounds[i - 1]}`);
    if (!(counts[i]! >= 0 && counts[i]! < Number.POSITIVE_INFINITY))
      bad(`bucket le=${label(bounds[i]!)} counts ${counts[i]}`);
    if (i > 0 && counts[i]! < counts[i - 1]!) {
      bad(
        `bucket le=${label(bounds[i]!)} counts ${counts[i]}, fewer than the ${counts[i - 1]} of le=${label(bounds[i - 1]!)}`,
      );
    }
  }
  if (bounds.at(-1) !== Number.POSITIVE_INFINITY) bad('there is no bucket le=+Inf');
  if (count !== undefined && count !== counts.at(-1))
    bad(`_count is ${count} but bucket le=+Inf counts ${counts.at(-1)}`);
  if (Number.isNaN(sum)) bad('the sum is not a number');
  return { bounds, counts, sum };
}

/** Observations in all. */
export function totalOf(h: Histogram): number {
  return h.counts.at(-1)!;
}

/** The exact mean; undefined when empty. */
export function meanOf(h: Histogram): number | undefined {
  const n = totalOf(h);
  return n > 0 ? h.sum / n : undefined;
}

export interface NamedHistogram {
  /** Which replica, for the error. */
  readonly name: string;
  readonly histogram: Histogram;
}

/**
 * The sum of replicas, bucket by bucket. Where bounds differ, only the bounds all of them have are kept, which is exact but
 * coarser; where they share no finite bound the merge is refused, naming two that do not fit.
 * @throws InputError for none, or without a common finite bound.
 */
export function mergeHistograms(parts: readonly NamedHistogram[]): Histogram & { readonly coarsened: boolean } {
  const [first] = parts;
  if (first === undefined) throw new InputError('histogram: there is nothing to merge');
  let bounds = first.histogram.bounds;
  for (const part of parts) {
    if (part.histogram.bounds === bounds) continue; // most share one array
    const own = new Set(part.histogram.bounds);
    const common = bounds.filter((b) => own.has(b));
    if (common.length <= 1 && (bounds.length > 1 || own.size > 1)) {
      const fits = (other: NamedHistogram): boolean =>
        other.histogram.bounds.some((b) => b !== Number.POSITIVE_INFINITY && own.has(b));
      const against = parts.find((other) => other !== part && !fits(other)) ?? first;
      throw new InputError(
        `histogram: ${against.name} and ${part.name} have no finite bucket bound that all share, so their sum has no buckets; give them the same buckets`,
      );
    }
    bounds = common;
  }
  const counts = new Array<number>(bounds.length).fill(0);
  let sum = 0;
  for (const { histogram: h } of parts) {
    sum += h.sum;
    if (h.bounds === bounds) {
      for (let i = 0; i < counts.length; i++) counts[i]! += h.counts[i]!;
      continue;
    }
    let at = 0;
    bounds.forEach((bound, i) => {
      while (h.bounds[at] !== bound) at++;
      counts[i]! += h.counts[at]!;
    });
  }
  return { bounds, counts, sum, coarsened: parts.some((p) => p.histogram.bounds.length > bounds.length) };
}

/**
 * What was observed between two scrapes of one series. A bucket that fell means the process restarted: the window then
 * starts at the reset, and holds all that the later scrape counts. Raw deltas, never extrapolated: whole observations.
 * @throws InputError when the bounds changed: that is a reset to another histogram, whose start is not known.
 */
export function windowOf(before: Histogram, after: Histogram, where: string): Histogram & { readonly reset: boolean } {
  if (before.bounds.length !== after.bounds.length || before.bounds.some((b, i) => b !== after.bounds[i])) {
    throw new InputError(
      `${where}: the buckets changed between two scrapes (${describe(before)} to ${describe(after)}); start a new window`,
    );
  }
  // Per bucket, not cumulative: a restarted process may already count more in total.
  const own = (h: Histogram, i: number): number => h.counts[i]! - (i > 0 ? h.counts[i - 1]! : 0);
  const reset = after.bounds.some((_, i) => own(after, i) < own(before, i));
  if (reset) return { ...after, reset };
  return {
    bounds: after.bounds,
    counts: after.counts.map((c, i) => c - before.counts[i]!),
    sum: after.sum - before.sum,
    reset,
  };
}

/** What a counter grew by between two scrapes; a fall is a reset, and the growth since is its later value. */
export function counterIncrease(before: number, after: number): { readonly increase: number; readonly reset: boolean } {
  return after < before ? { increase: after, reset: true } : { increase: after - before, reset: false };
}

/** The quantile lies in [low, high]. `high` is +∞ above the last finite bound: print `> low`. */
export interface HistogramQuantile {
  readonly low: number;
  readonly high: number;
}

/**
 * The buckets that hold the two order statistics between which the type-7 quantile at `p` lies; undefined when empty. The
 * first bucket is taken to start at 0 (durations, lengths) unless its bound is not positive.
 */
export function histogramQuantile(h: Histogram, p: number): HistogramQuantile | undefined {
  if (!(p >= 0 && p <= 1)) throw new InputError(`quantile: ${p} is not between 0 and 1; write p99 as 0.99`);
  const n = totalOf(h);
  if (n === 0) return undefined;
  const rank = Math.max(0, n - 1) * p;
  const near = Math.round(rank);
  const whole = Math.abs(rank - near) <= 4 * Number.EPSILON * rank;
  const bucketOf = (r: number): number => h.counts.findIndex((c) => c > r);
  const first = bucketOf(whole ? near : Math.floor(rank));
  const last = whole ? first : bucketOf(Math.min(Math.ceil(rank), n - 1));
  const start = h.bounds[0]! > 0 ? 0 : Number.NEGATIVE_INFINITY;
  return { low: first === 0 ? start : h.bounds[first - 1]!, high: h.bounds[last === -1 ? h.bounds.length - 1 : last]! };
}

/** The share of observations ≤ x as [low, high]; equal where x is a bound. Undefined when empty. */
export function histogramShare(h: Histogram, x: number): { readonly low: number; readonly high: number } | undefined {
  const n = totalOf(h);
  if (n === 0) return undefined;
  const at = h.bounds.findIndex((b) => b >= x); // never −1: the last bound is +∞
  const high = h.counts[at]! / n;
  if (h.bounds[at] === x) return { low: high, high };
  return { low: at === 0 ? 0 : h.counts[at - 1]! / n, high };
}

/**
 * What two marginal shares say of both holding on the same operation: Fréchet's bounds, and nothing tighter.
 * @param a, b shares in [0, 1] of the same population.
 */
export function jointShare(a: number, b: number): { readonly low: number; readonly high: number } {
  return { low: Math.max(0, a + b - 1), high: Math.min(a, b) };
}

function label(bound: number): string {
  return bound === Number.POSITIVE_INFINITY ? '+Inf' : String(bound);
}

function describe(h: Histogram): string {
  return `${h.bounds.length} up to ${h.bounds.length > 1 ? h.bounds.at(-2) : '+Inf'}`;
}
