/**
 * Quantiles of measured values: linear interpolation between order statistics, Hyndman & Fan (1996) type 7, numpy's
 * default. +∞ is a value like any other (an operation whose event never came); an interpolation that touches it is +∞.
 */
import { InputError } from '../base/errors.ts';
import { binomialCdf } from './binomial.ts';

/** A sorted copy, ascending. @throws InputError when a value is NaN: it has no rank. */
export function sortedCopy(values: ArrayLike<number>): Float64Array<ArrayBuffer> {
  const sorted = Float64Array.from(values).sort();
  if (Number.isNaN(sorted.at(-1) ?? 0))
    throw new InputError('quantile: a value is not a number; leave undefined figures out');
  return sorted;
}

/** The quantile of ascending `sorted` at `p` in [0, 1]; undefined when empty. */
export function quantile(sorted: ArrayLike<number>, p: number): number | undefined {
  return atFraction(sorted, 0, p);
}

/** `quantile` at each of `ps`. */
export function quantiles(sorted: ArrayLike<number>, ps: readonly number[]): (number | undefined)[] {
  return ps.map((p) => quantile(sorted, p));
}

/** A quantile over offered operations: a value, or, where it is infinite, what it is known to exceed. */
export type OfferedQuantile =
  | { readonly value: number; readonly censoredAbove: null }
  | { readonly value: null; readonly censoredAbove: number };

/**
 * The quantile of `sorted` together with `censored` operations that ended unsuccessfully before the event and rank as +∞.
 * `longest` is how long those were observed at most (a deadline); an infinite quantile is reported as above the greater of
 * it and of the largest measured value. Undefined when nothing was offered.
 */
export function offeredQuantile(
  sorted: ArrayLike<number>,
  censored: number,
  p: number,
  longest = 0,
): OfferedQuantile | undefined {
  const value = atFraction(sorted, censored, p);
  if (value === undefined) return undefined;
  if (value !== Number.POSITIVE_INFINITY) return { value, censoredAbove: null };
  let last = sorted.length - 1;
  while (last >= 0 && sorted[last] === Number.POSITIVE_INFINITY) last--;
  return { value: null, censoredAbove: Math.max(longest, last >= 0 ? sorted[last]! : 0) };
}

export interface QuantileInterval {
  /** The order statistics that bound the quantile. Null where the sample has none low (or high) enough. */
  readonly low: number | null;
  readonly high: number | null;
  readonly level: number;
  /** The sample size the bounds rest on. */
  readonly effectiveN: number;
  /** False when a bound is missing: the sample cannot support this quantile, and a figure of it carries a mark. */
  readonly supported: boolean;
}

export interface QuantileIntervalOptions {
  /** Two-sided confidence, default 0.95. */
  readonly level?: number;
  /** Values of +∞ to count behind `sorted`. */
  readonly censored?: number;
  /** For dependent values: how many independent ones they are worth. At most their number, which is the default. */
  readonly effectiveN?: number;
}

/**
 * A distribution-free interval of the quantile by order statistics (David & Nagaraja, Order Statistics, 7.1): the number
 * of values below the true quantile is binomial(n, p). With an effective sample size m the ranks are those of m values,
 * each a block of n/m, outer edges taken. A bound of +∞ is an honest one (a censored operation); null is no bound.
 */
export function quantileInterval(
  sorted: ArrayLike<number>,
  p: number,
  options: QuantileIntervalOptions = {},
): QuantileInterval | undefined {
  checkFraction(p);
  const { level = 0.95, censored = 0 } = options;
  const n = sorted.length + censored;
  if (n === 0) return undefined;
  const m = Math.floor(Math.min(n, Math.max(1, options.effectiveN ?? n)));
  const alpha = (1 - level) / 2;
  const below = (rank: number): number => binomialCdf(rank - 1, m, p); // P(fewer than `rank` of m lie below); rises
  const lowOfM = firstRank(m, (rank) => below(rank) > alpha) - 1;
  const highOfM = firstRank(m, (rank) => below(rank) >= 1 - alpha);
  // A rank of m stands for a block of n/m ranks of n: the outer edge of the block.
  const low = lowOfM < 1 ? 0 : Math.floor(((lowOfM - 1) * n) / m) + 1;
  const high = highOfM > m ? n + 1 : Math.min(n, Math.ceil((highOfM * n) / m));
  const at = (rank: number): number | null =>
    rank < 1 || rank > n ? null : rank > sorted.length ? Number.POSITIVE_INFINITY : sorted[rank - 1]!;
  return { low: at(low), high: at(high), level, effectiveN: m, supported: low >= 1 && high <= n };
}

/** The smallest rank in 1…n that satisfies a monotone predicate, n + 1 if none. */
function firstRank(n: number, holds: (rank: number) => boolean): number {
  let low = 1;
  let high = n + 1;
  while (low < high) {
    const mid = (low + high) >>> 1;
    if (holds(mid)) high = mid;
    else low = mid + 1;
  }
  return low;
}

function atFraction(sorted: ArrayLike<number>, censored: number, p: number): number | undefined {
  checkFraction(p);
  const n = sorted.length + censored;
  if (n === 0) return undefined;
  const at = (rank: number): number => (rank < sorted.length ? sorted[rank]! : Number.POSITIVE_INFINITY);
  const h = (n - 1) * p;
  const near = Math.round(h);
  if (Math.abs(h - near) <= 4 * Number.EPSILON * h) return at(near); // 0.29 × 100 is rank 29, touching no neighbour
  const rank = Math.floor(h);
  const [a, b] = [at(rank), at(rank + 1)];
  return a === b || b === Number.POSITIVE_INFINITY ? b : a + (h - rank) * (b - a);
}

function checkFraction(p: number): void {
  if (!(p >= 0 && p <= 1)) throw new InputError(`quantile: ${p} is not between 0 and 1; write p99 as 0.99`);
}
