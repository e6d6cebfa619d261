/**
 * Is a series drifting? Rank methods, so +∞ (an operation that never had the event) is simply the worst value: Mann–Kendall
 * for the sign, Theil–Sen for the slope, both with their variance inflated for the series' own correlation.
 */
import { InputError } from '../base/errors.ts';
import { autocorrelations, firstOrderTime, uniformRanks } from './autocorrelation.ts';
import { binomialCdf } from './binomial.ts';
import { normalCdf, normalQuantile } from './normal.ts';

/** Every pair is compared; beyond this a caller should batch first. */
const MOST = 2000;

export interface MannKendall {
  /** Σ sign(x_j − x_i) over i < j. */
  readonly s: number;
  /** Kendall's τ in [−1, 1]: s over the number of pairs. */
  readonly tau: number;
  /** By how much correlation inflates the variance of s, ≥ 1. */
  readonly inflation: number;
  /** Standard deviation of s under no trend, inflated. */
  readonly deviation: number;
  /** Two-sided p-value of "no trend"; 1 when all values are equal. */
  readonly p: number;
}

/**
 * Mann–Kendall with the variance corrected after Hamed & Rao (1998) by the rank autocorrelation of the detrended series, and
 * no less than a first-order model of it would: with the few batches of one run single lags are seldom significant.
 * Undefined for fewer than 4 values, where no arrangement is significant. @throws InputError above 2,000 values, or for NaN.
 */
export function mannKendall(values: ArrayLike<number>): MannKendall | undefined {
  const n = checked(values);
  if (n < 4) return undefined;
  let s = 0;
  for (let j = 1; j < n; j++) for (let i = 0; i < j; i++) s += sign(values[i]!, values[j]!);
  const inflation = inflationOf(values);
  const variance = ((n * (n - 1) * (2 * n + 5) - tieTerm(values)) / 18) * inflation;
  const deviation = Math.sqrt(Math.max(0, variance));
  const z = s === 0 || deviation === 0 ? 0 : (Math.abs(s) - 1) / deviation; // continuity: s moves in steps of 2
  return { s, tau: s / ((n * (n - 1)) / 2), inflation, deviation, p: Math.min(1, 2 * normalCdf(-z)) };
}

export interface Slope {
  /** Units of the values per unit of time (per index without times). ±∞ when half the pairs meet +∞. */
  readonly slope: number;
  readonly low: number;
  readonly high: number;
}

/**
 * The Theil–Sen slope, the median over all pairs, with Sen's interval (1968): the order statistics of the pair slopes that
 * stand ± z·sd(s) from the middle. A pair of two +∞ counts as level. Undefined for fewer than 2 distinct times.
 * @param deviation sd of Mann–Kendall's s, inflated for correlation.
 */
export function theilSen(
  values: ArrayLike<number>,
  deviation: number,
  level = 0.95,
  times?: ArrayLike<number>,
): Slope | undefined {
  const n = checked(values);
  const slopes = new Float64Array((n * (n - 1)) / 2);
  let count = 0;
  for (let j = 1; j < n; j++) {
    for (let i = 0; i < j; i++) {
      const dt = times === undefined ? j - i : times[j]! - times[i]!;
      if (dt > 0) slopes[count++] = values[i] === values[j] ? 0 : (values[j]! - values[i]!) / dt;
    }
  }
  if (count === 0) return undefined;
  const sorted = slopes.subarray(0, count).sort();
  const spread = normalQuantile((1 + level) / 2) * deviation;
  const low = Math.floor((count - spread) / 2) - 1;
  const high = Math.ceil((count + spread) / 2);
  const mid = count >> 1;
  const [a, b] = [sorted[count % 2 === 1 ? mid : mid - 1]!, sorted[mid]!];
  return {
    slope: a === b ? a : Number.isFinite(a + b) ? (a + b) / 2 : a + b || 0,
    low: low < 0 ? Number.NEGATIVE_INFINITY : sorted[low]!,
    high: high >= count ? Number.POSITIVE_INFINITY : sorted[high]!,
  };
}

export interface Drift {
  /** `unknown`: too few batches to tell. */
  readonly direction: 'up' | 'down' | 'none' | 'unknown';
  readonly p: number;
  readonly tau: number;
  /** Per batch, or per unit of `times`; undefined when unknown. */
  readonly slope: Slope | undefined;
  readonly batches: number;
}

/** Fewest batches a drift is tested on: with fewer, correlation cannot be told from trend. */
export const FEWEST_BATCHES = 8;

/**
 * Tests arrival-ordered batch values (medians of TTFT with failures as +∞, backlog, age of the oldest waiting) for drift at
 * the two-sided level `alpha`. Upward drift of these means the rate is not sustainable, whatever attainment says so far.
 *
 * Mann–Kendall takes four fifths of the error, the signs of the steps from batch to batch the rest: a bent climb leaves
 * residuals that look like correlation, but even a walk without drift does not climb step after step. Some 20 batches serve
 * well; each should span several correlation times, or a slow swing of a stable queue counts as drift.
 */
export function driftTest(
  batches: ArrayLike<number>,
  options: { readonly alpha?: number; readonly times?: ArrayLike<number> } = {},
): Drift {
  const alpha = options.alpha ?? 0.05;
  const ranks = batches.length < FEWEST_BATCHES ? undefined : mannKendall(batches);
  if (ranks === undefined) return { direction: 'unknown', p: 1, tau: 0, slope: undefined, batches: batches.length };
  const steps = stepSigns(batches);
  const byRanks = ranks.p / 0.8;
  const bySteps = steps.p / 0.2;
  const p = Math.min(1, byRanks, bySteps);
  const upward = (byRanks <= bySteps ? ranks.s : steps.balance) > 0;
  const slope = theilSen(batches, ranks.deviation, 1 - alpha, options.times);
  return { direction: p >= alpha ? 'none' : upward ? 'up' : 'down', p, tau: ranks.tau, slope, batches: batches.length };
}

/** Rises less falls from each value to the next, and the two-sided p-value of their balance (sign test). */
function stepSigns(values: ArrayLike<number>): { balance: number; p: number } {
  let ups = 0;
  let downs = 0;
  for (let i = 1; i < values.length; i++) {
    const s = sign(values[i - 1]!, values[i]!);
    if (s > 0) ups++;
    else if (s < 0) downs++;
  }
  const n = ups + downs;
  return { balance: ups - downs, p: n === 0 ? 1 : Math.min(1, 2 * binomialCdf(Math.min(ups, downs), n, 0.5)) };
}

function sign(from: number, to: number): number {
  return to > from ? 1 : to < from ? -1 : 0;
}

/** Σ t(t−1)(2t+5) over groups of t equal values. */
function tieTerm(values: ArrayLike<number>): number {
  const sizes = new Map<number, number>();
  for (let i = 0; i < values.length; i++) sizes.set(values[i]!, (sizes.get(values[i]!) ?? 0) + 1);
  let term = 0;
  for (const t of sizes.values()) term += t * (t - 1) * (2 * t + 5);
  return term;
}

/**
 * Variance inflation from the ranks left after taking their own trend out: a trend is not correlation. Nor is a ceiling
 * reached at one end (batches that all failed), which therefore counts as one value here.
 */
function inflationOf(all: ArrayLike<number>): number {
  const values = withoutCeiling(all);
  const n = values.length;
  if (n < 4) return 1;
  const ranks = uniformRanks(values);
  const trend = theilSen(ranks, 0)?.slope ?? 0;
  const rest = uniformRanks(ranks.map((r, i) => Math.round((r - trend * i) * 1e9))); // rounding is no residual
  const r = autocorrelations(rest, Math.min(n - 3, Math.ceil(n / 2)));
  let sum = 0;
  for (let k = 1; k < r.length; k++) {
    if (Math.abs(r[k]!) > 1.96 / Math.sqrt(n)) sum += (n - k) * (n - k - 1) * (n - k - 2) * r[k]!;
  }
  const hamedRao = 1 + (2 * sum) / (n * (n - 1) * (n - 2));
  const first = Math.min(firstOrderTime(rest) ?? 1, n);
  return Math.max(1, hamedRao, first);
}

/** The values without a repeated maximum at the start or the end, of which one is kept. */
function withoutCeiling(values: ArrayLike<number>): number[] {
  const kept = Array.from(values);
  const top = kept.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  while (kept.length > 1 && kept.at(-1) === top && kept.at(-2) === top) kept.pop();
  let from = 0;
  while (from + 1 < kept.length && kept[from] === top && kept[from + 1] === top) from++;
  return kept.slice(from);
}

function checked(values: ArrayLike<number>): number {
  const n = values.length;
  if (n > MOST)
    throw new InputError(`trend: ${n} values are too many to compare in pairs; take at most ${MOST} batches`);
  for (let i = 0; i < n; i++) if (Number.isNaN(values[i]!)) throw new InputError(`trend: value ${i} is not a number`);
  return n;
}
