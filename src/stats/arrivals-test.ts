/**
 * Did the load arrive as planned? Three tests of arrival times against the process they were drawn from: how many, how
 * bunched, and how spaced. Times in any one unit, ascending.
 */
import { InputError } from '../base/errors.ts';
import { chiSquareCdf, gammaP } from './gamma.ts';
import { normalCdf } from './normal.ts';

/** Gamma inter-arrivals by the square of their coefficient of variation, as serving benchmarks' burstiness: 1/shape. */
export type PlannedArrivals =
  | { readonly process: 'poisson' }
  | { readonly process: 'constant' }
  | { readonly process: 'gamma'; readonly shape: number };

/** Variance over mean-square of an inter-arrival time: 1 for Poisson, 0 for constant, 1/shape for gamma. */
export function squaredVariation(planned: PlannedArrivals): number {
  if (planned.process === 'poisson') return 1;
  return planned.process === 'constant' ? 0 : 1 / planned.shape;
}

export interface CountTest {
  readonly observed: number;
  readonly expected: number;
  /** (observed − expected) / √(expected · squared variation): renewal counts, for a long window. */
  readonly z: number;
  /** Two-sided p-value. */
  readonly p: number;
}

/**
 * Is the number of arrivals in a window of `length` what the planned rate gives? Asymptotic (some 20 arrivals and more). A
 * constant process may be off by one arrival: within that p is 1, beyond it 0.
 */
export function countTest(observed: number, rate: number, length: number, planned: PlannedArrivals): CountTest {
  const expected = rate * length;
  if (!(expected > 0))
    throw new InputError(`arrivals: ${rate} per unit over ${length} expects no arrival; nothing to test`);
  const off = observed - expected;
  const variance = expected * squaredVariation(planned);
  if (variance === 0) return { observed, expected, z: off, p: Math.abs(off) <= 1 ? 1 : 0 };
  const z = off / Math.sqrt(variance);
  return { observed, expected, z, p: 2 * normalCdf(-Math.abs(z)) };
}

export interface Dispersion {
  /** Variance over mean of the counts per window: 1 for Poisson, less when regular, more when bursty. */
  readonly index: number;
  readonly low: number;
  readonly high: number;
  readonly level: number;
  readonly windows: number;
  readonly meanCount: number;
  /** Two-sided p-value of "Poisson": (windows − 1) · index is chi-square (Fisher). */
  readonly pPoisson: number;
}

/**
 * The index of dispersion of counts over equal windows (Cox & Lewis 1966, 6.3), with the interval that the chi-square
 * distribution of the counts' variance gives: exact for Poisson-like counts in the mean, approximate below some 5 a window.
 * Undefined with fewer than 2 windows or no arrivals.
 */
export function dispersion(
  times: ArrayLike<number>,
  start: number,
  end: number,
  windows: number,
  level = 0.95,
): Dispersion | undefined {
  if (!(end > start)) throw new InputError(`arrivals: the window [${start}, ${end}) is empty`);
  const counts = new Float64Array(Math.max(0, Math.floor(windows)));
  let total = 0;
  for (let i = 0; i < times.length; i++) {
    const t = times[i]!;
    if (t < start || t >= end) continue;
    counts[Math.min(counts.length - 1, Math.floor(((t - start) * counts.length) / (end - start)))]! += 1;
    total++;
  }
  const k = counts.length;
  if (k < 2 || total === 0) return undefined;
  const mean = total / k;
  let squares = 0;
  for (const c of counts) squares += (c - mean) ** 2;
  const index = squares / (k - 1) / mean;
  const statistic = squares / mean;
  const below = chiSquareCdf(statistic, k - 1);
  const alpha = (1 - level) / 2;
  return {
    index,
    low: statistic / chiSquareQuantile(1 - alpha, k - 1),
    high: statistic / chiSquareQuantile(alpha, k - 1),
    level,
    windows: k,
    meanCount: mean,
    pPoisson: Math.min(1, 2 * Math.min(below, 1 - below)),
  };
}

export interface KolmogorovSmirnov {
  /** Largest distance between the empirical and the planned distribution function. */
  readonly distance: number;
  /** P(a distance as large | the plan holds). */
  readonly p: number;
  readonly n: number;
}

/**
 * One-sample Kolmogorov–Smirnov test of inter-arrival times against the planned process at its planned `rate` (not one fitted
 * to them, which would make the p-value too large). Undefined without inter-arrivals. A constant process has no spread to
 * test: its distance is the share of gaps off by more than `tolerance` of the planned gap, and p is 1 if there are none.
 */
export function interArrivalTest(
  times: ArrayLike<number>,
  rate: number,
  planned: PlannedArrivals,
  tolerance = 1e-3,
): KolmogorovSmirnov | undefined {
  const n = times.length - 1;
  if (n < 1) return undefined;
  const gaps = Float64Array.from({ length: n }, (_, i) => times[i + 1]! - times[i]!);
  if (planned.process === 'constant') {
    const off = gaps.filter((g) => Math.abs(g * rate - 1) > tolerance).length;
    return { distance: off / n, p: off === 0 ? 1 : 0, n };
  }
  const shape = planned.process === 'gamma' ? planned.shape : 1;
  const cdf = (x: number): number => (shape === 1 ? -Math.expm1(-rate * x) : gammaP(shape, shape * rate * x));
  return kolmogorovSmirnov(gaps.sort(), (x) => cdf(Math.max(0, x)));
}

/** The one-sample test of ascending `sorted` against a continuous distribution function. n ≥ 1. */
export function kolmogorovSmirnov(sorted: ArrayLike<number>, cdf: (x: number) => number): KolmogorovSmirnov {
  const n = sorted.length;
  let distance = 0;
  for (let i = 0; i < n; i++) {
    const f = cdf(sorted[i]!);
    distance = Math.max(distance, f - i / n, (i + 1) / n - f);
  }
  return { distance, p: kolmogorovTail(distance, n), n };
}

/** Kolmogorov's limit with Stephens' correction for small n (1970): good to 0.01 from n = 5. */
function kolmogorovTail(distance: number, n: number): number {
  const root = Math.sqrt(n);
  const x = (root + 0.12 + 0.11 / root) * distance;
  if (x < 0.2) return 1;
  let sum = 0;
  for (let k = 1; k <= 100; k++) {
    const term = Math.exp(-2 * k * k * x * x);
    sum += k % 2 === 1 ? term : -term;
    if (term < 1e-17) break;
  }
  return Math.min(1, Math.max(0, 2 * sum));
}

/** By bisection of the distribution function: called twice a report. */
export function chiSquareQuantile(p: number, df: number): number {
  if (!(p >= 0 && p < 1) || !(df > 0)) return Number.NaN;
  let low = 0;
  let high = df + 10;
  while (chiSquareCdf(high, df) < p) high *= 2;
  for (let i = 0; i < 200 && high - low > 1e-14 * high; i++) {
    const mid = (low + high) / 2;
    if (chiSquareCdf(mid, df) < p) low = mid;
    else high = mid;
  }
  return (low + high) / 2;
}
