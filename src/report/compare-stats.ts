/**
 * The statistics of a comparison: one figure of one or more runs a side → the difference, its interval and its p-value.
 *
 * What decides between two systems is how much runs of one system differ among themselves. It is measured by three runs a
 * side, or stated; one run a side knows only its own noise, and speaks of these runs alone.
 */
import { keyed } from '../base/random.ts';
import {
  autocorrelationTime,
  chiSquareCdf,
  FEWEST_RUNS,
  normalCdf,
  normalQuantile,
  studentCdf,
  studentQuantile,
  uniformRanks,
} from '../stats/index.ts';

/** One figure, a number a run. `paired`: the i-th of each side share a seed. */
export interface Series {
  readonly a: readonly number[];
  readonly b: readonly number[];
  readonly paired: boolean;
  /** `relative`: differences of logarithms, for figures above 0. */
  readonly scale: 'relative' | 'absolute';
  /** Standard error inside a run on that scale: of each pair's difference when paired, else of each run, A's then B's. */
  readonly noise: readonly number[];
  /** Standard deviation between runs of one system on that scale, as stated. */
  readonly spread?: number | undefined;
  /** That spread is not stated but assumed, and counts for as many runs more than `assumedRuns` − 1 show. */
  readonly assumedRuns?: number | undefined;
}

/** `runs`: spread between runs was measured. `spread`: it was stated. `single`: neither, so only these runs differ. */
export type Grounds = 'runs' | 'spread' | 'single';

export interface Effect {
  /** On the scale of the series. */
  readonly value: number;
  readonly low: number;
  readonly high: number;
  /** Two-sided, of "no difference". */
  readonly p: number;
  readonly grounds: Grounds;
  readonly method: string;
  /** Standard deviation of one run about its side's mean, as these runs show it; undefined for one run a side. */
  readonly observedSpread: number | undefined;
  /** The runs differ more among themselves than was stated or assumed, so what they show was taken. */
  readonly spreadExceeded: boolean;
}

/** The stated spread is given up only against evidence this strong: it was stated from more runs than these. */
const EXCEEDED = 0.01;
/** An assumed one sooner. */
const UNLIKE_ASSUMED = 0.02;

/**
 * Where nothing is stated. Three pairs measure a spread with two degrees of freedom, and a t test with two finds a difference
 * of four standard errors less than half of the time. So what they show is moderated by what is usual, as if that had been seen
 * in so many runs more (an inverse χ² prior of the variance: Smyth 2004), and where they differ plainly more than is usual,
 * they are believed alone. What it costs where spreads are wider than usual is in `docs/compare.md`.
 */
export const ASSUMED_SPREAD = { relative: 0.03, runs: 17 } as const;

export function effectOf(series: Series, level = 0.95): Effect {
  const { a, b, paired, scale, spread, assumedRuns } = series;
  const on = scale === 'relative' ? Math.log : (x: number): number => x;
  const A = a.map(on);
  const B = b.map(on);
  const few = Math.min(a.length, b.length);
  // Variance of the difference of the sides' means: as measured between runs, and what noise inside runs leaves at least.
  let value: number;
  let measured: number;
  let df: number;
  let inside: number;
  let perRun: number;
  if (paired) {
    const d = A.map((x, i) => B[i]! - x);
    value = mean(d);
    measured = variance(d) / few;
    df = few - 1;
    perRun = Math.sqrt(variance(d) / 2);
    inside = mean(series.noise.map((x) => x * x)) / few;
  } else {
    value = mean(B) - mean(A);
    const [va, vb] = [variance(A) / A.length, variance(B) / B.length];
    measured = va + vb;
    df = few < 2 ? 0 : measured > 0 ? measured ** 2 / (va ** 2 / (A.length - 1) + vb ** 2 / (B.length - 1)) : few - 1;
    perRun = Math.sqrt(
      (variance(A) * (A.length - 1) + variance(B) * (B.length - 1)) / Math.max(1, A.length + B.length - 2),
    );
    const squares = series.noise.map((x) => x * x);
    inside = mean(squares.slice(0, A.length)) / A.length + mean(squares.slice(A.length)) / B.length;
  }
  const observedSpread = few >= 2 ? perRun : undefined;
  if (spread !== undefined) {
    const stated = spread * spread * (1 / a.length + 1 / b.length) + inside;
    const against = assumedRuns === undefined ? EXCEEDED : UNLIKE_ASSUMED;
    const exceeded = few >= 2 && df > 0 && 1 - chiSquareCdf((df * measured) / stated, df) < against;
    if (!exceeded && assumedRuns !== undefined) {
      const prior = assumedRuns - 1;
      const moderated = Math.max(inside, (prior * stated + df * measured) / (prior + df));
      const effect = student(value, Math.sqrt(moderated), prior + df, few, level, paired, observedSpread, false);
      return { ...effect, method: `moderated ${effect.method}` };
    }
    if (!exceeded) {
      return normal(value, Math.sqrt(stated), level, 'spread', 'normal, between-run spread as stated', observedSpread);
    }
    return student(value, Math.sqrt(measured), df, few, level, paired, observedSpread, true);
  }
  if (few >= 2)
    return student(value, Math.sqrt(Math.max(measured, inside)), df, few, level, paired, observedSpread, false);
  const method = paired ? 'paired block bootstrap within the runs' : 'block bootstrap within the runs';
  return normal(value, Math.sqrt(inside), level, 'single', method, observedSpread);
}

function normal(
  value: number,
  error: number,
  level: number,
  grounds: Grounds,
  method: string,
  observedSpread: number | undefined,
): Effect {
  const half = normalQuantile((1 + level) / 2) * error;
  return {
    value,
    low: value - half,
    high: value + half,
    p: error > 0 ? 2 * normalCdf(-Math.abs(value) / error) : value === 0 ? 1 : 0,
    grounds: error > 0 ? grounds : 'single',
    method,
    observedSpread,
    spreadExceeded: false,
  };
}

function student(
  value: number,
  error: number,
  df: number,
  few: number,
  level: number,
  paired: boolean,
  observedSpread: number | undefined,
  spreadExceeded: boolean,
): Effect {
  const half = error > 0 ? studentQuantile((1 + level) / 2, df) * error : 0;
  return {
    value,
    low: value - half,
    high: value + half,
    p: error > 0 ? 2 * studentCdf(-Math.abs(value) / error, df) : value === 0 ? 1 : 0,
    // Runs that agree to the last digit show no spread, and conclude nothing.
    grounds: few >= FEWEST_RUNS && error > 0 ? 'runs' : 'single',
    method: paired ? 'paired t over runs' : 'Welch t over runs',
    observedSpread,
    spreadExceeded,
  };
}

/**
 * Holm's step-down procedure with weights (Holm 1979, section 3): adjusted p-values that keep the chance of any false claim
 * at the level they are compared with, under any dependence; a figure of twice the weight gets twice the share of it.
 */
export function weightedHolm(tests: readonly { readonly p: number; readonly weight: number }[]): number[] {
  const order = tests.map((_, i) => i).sort((x, y) => tests[x]!.p / tests[x]!.weight - tests[y]!.p / tests[y]!.weight);
  const adjusted = new Array<number>(tests.length);
  let left = tests.reduce((sum, t) => sum + t.weight, 0);
  let least = 0;
  for (const i of order) {
    const { p, weight } = tests[i]!;
    least = Math.max(least, Math.min(1, (p * left) / weight));
    adjusted[i] = least;
    left -= weight;
  }
  return adjusted;
}

/** A sample as its ascending values and how often each is in it. */
export interface Counted {
  readonly sorted: Float64Array;
  readonly counts: Uint32Array;
  /** Sum of the counts. */
  readonly n: number;
}

/** Several statistics of one sample. */
export type Statistics = (sample: Counted) => readonly number[];

export function counted(values: Float64Array): Counted {
  const sorted = values.slice().sort();
  return { sorted, counts: new Uint32Array(sorted.length).fill(1), n: sorted.length };
}

/** The mean of the finite values, then the type-7 quantile at each of `ps`, which ascend; in one pass. */
export function meanAndQuantiles(ps: readonly number[]): Statistics {
  return ({ sorted, counts, n }) => {
    const out = new Array<number>(ps.length + 1);
    let sum = 0;
    let finite = 0;
    let upTo = 0;
    let k = 0;
    let from = Math.floor(ps.length > 0 ? (n - 1) * ps[0]! : n);
    // The quantile whose lower order statistic has been met waits here for the upper one.
    let low = Number.NaN;
    let previous = Number.NaN;
    for (let i = 0; i < sorted.length && (k < ps.length || upTo < n); i++) {
      const c = counts[i]!;
      if (c === 0) continue;
      const x = sorted[i]!;
      if (x !== Number.POSITIVE_INFINITY) {
        sum += c * x;
        finite += c;
      }
      upTo += c;
      while (k < ps.length) {
        const h = (n - 1) * ps[k]!;
        if (Number.isNaN(low)) {
          if (upTo <= from) break;
          // Two quantiles may lie between the same two values.
          low = from < upTo - c ? previous : x;
        }
        const above = h - from;
        if (above > 0 && upTo <= from + 1) break;
        out[k + 1] = above === 0 || x === low ? low : low + above * (x - low);
        low = Number.NaN;
        k++;
        if (k < ps.length) from = Math.floor((n - 1) * ps[k]!);
      }
      previous = x;
    }
    out[0] = sum / finite;
    return out;
  };
}

export interface NoiseOptions {
  readonly seed: number;
  readonly scale: 'relative' | 'absolute';
  /** Default 200: a standard error is asked for, not a tail. */
  readonly resamples?: number;
}

/**
 * Standard errors of statistics inside one run, or of their differences between two paired ones, by circular block
 * bootstrap (Politis & Romano 1992): neighbours share a queue. +∞ where more than a tenth of the resamples have no number.
 * A resample is a count of each value: nothing is sorted again.
 */
export function noiseOf(
  sides: readonly Float64Array[],
  statistics: Statistics,
  { seed, scale, resamples = 200 }: NoiseOptions,
): number[] {
  const n = sides[0]!.length;
  if (n < 2) return statistics(counted(sides[0]!)).map(() => Number.POSITIVE_INFINITY);
  const uniform = keyed(seed, 'compare-noise');
  const block = blockOf(sides);
  const samples = sides.map((side) => {
    const sorted = side.slice().sort();
    return { n, sorted, counts: new Uint32Array(n), places: placesIn(sorted, side) };
  });
  const on = scale === 'relative' ? Math.log : (x: number): number => x;
  let sums: { n: number; mean: number; squares: number }[] | undefined;
  for (let r = 0; r < resamples; r++) {
    for (const { counts } of samples) counts.fill(0);
    for (let filled = 0; filled < n; filled += block) {
      const start = Math.floor(uniform() * n);
      const length = Math.min(block, n - filled);
      for (const { counts, places } of samples) {
        for (let i = 0; i < length; i++) counts[places[start + i < n ? start + i : start + i - n]!]!++;
      }
    }
    const first = statistics(samples[0]!);
    const second = samples.length > 1 ? statistics(samples[1]!) : undefined;
    sums ??= first.map(() => ({ n: 0, mean: 0, squares: 0 }));
    for (let k = 0; k < first.length; k++) {
      const x = second ? on(second[k]!) - on(first[k]!) : on(first[k]!);
      if (!Number.isFinite(x)) continue;
      const s = sums[k]!;
      s.n++;
      const delta = x - s.mean;
      s.mean += delta / s.n;
      s.squares += delta * (x - s.mean);
    }
  }
  return (sums ?? []).map((s) =>
    s.n < 0.9 * resamples || s.n < 2 ? Number.POSITIVE_INFINITY : Math.sqrt(s.squares / (s.n - 1)),
  );
}

/** Where each value stands among the ascending ones; equal values stand together at their first place. */
function placesIn(sorted: Float64Array, values: Float64Array): Uint32Array {
  return Uint32Array.from(values, (x) => {
    let low = 0;
    let high = sorted.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (sorted[middle]! < x) low = middle + 1;
      else high = middle;
    }
    return low;
  });
}

/** Three autocorrelation times of the ranks (of the differences', paired), at least ∛n, at most a tenth of n. */
function blockOf(sides: readonly Float64Array[]): number {
  const [a, b] = sides as [Float64Array, Float64Array?];
  const n = a.length;
  const series = b ? a.map((x, i) => (x === b[i] ? 0 : b[i]! - x)) : a;
  const time = autocorrelationTime(uniformRanks(series)) ?? 1;
  return Math.min(n, Math.ceil(Math.max(Math.cbrt(n), Math.min(3 * time, n / 10))));
}

function mean(x: readonly number[]): number {
  return x.reduce((sum, v) => sum + v, 0) / x.length;
}

/** 0 for a single value. */
function variance(x: readonly number[]): number {
  if (x.length < 2) return 0;
  const m = mean(x);
  const v = x.reduce((sum, y) => sum + (y - m) ** 2, 0) / (x.length - 1);
  // Equal values leave rounding, not spread.
  return v > 1e-24 * m * m ? v : 0;
}
