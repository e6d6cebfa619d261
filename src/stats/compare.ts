/**
 * Differences between two sides, "B less A". What two single runs differ by is a difference between these runs; only several
 * interleaved runs a side (`effectOfRuns`) speak of the systems.
 */
import { InputError } from '../base/errors.ts';
import { keyed } from '../base/random.ts';
import { autocorrelationTime, uniformRanks } from './autocorrelation.ts';
import { wilson } from './binomial.ts';
import { studentCdf, studentQuantile } from './normal.ts';
import { quantile } from './quantile.ts';

export interface Difference {
  /** B − A, in the unit of the values. */
  readonly value: number;
  readonly low: number;
  readonly high: number;
  readonly level: number;
  readonly method: string;
}

/** A statistic of one sample; the array it is given is scratch and may be sorted in place. */
export type Statistic = (values: Float64Array) => number;

export const meanStatistic: Statistic = (values) => {
  let sum = 0;
  for (const v of values) sum += v;
  return sum / values.length;
};

/** The type-7 quantile at p as a statistic; +∞ among the values is allowed. */
export function quantileStatistic(p: number): Statistic {
  return (values) => quantile(values.sort(), p)!;
}

/**
 * Holm's step-down adjustment (1979): p-values that keep the chance of any false claim among them at the level they are
 * compared with, under any dependence. In the order given.
 */
export function holm(ps: readonly number[]): number[] {
  const order = ps.map((_, i) => i).sort((a, b) => ps[a]! - ps[b]!);
  const adjusted = new Array<number>(ps.length);
  let least = 0;
  order.forEach((index, step) => {
    least = Math.max(least, Math.min(1, (ps.length - step) * ps[index]!));
    adjusted[index] = least;
  });
  return adjusted;
}

export interface BootstrapOptions {
  readonly seed: number;
  /** Default 0.95. */
  readonly level?: number;
  /** Default 2,000. */
  readonly resamples?: number;
  /**
   * Consecutive values drawn together (circular blocks: Künsch 1989, Politis & Romano 1992), since neighbours share a queue.
   * Default three autocorrelation times of the values' ranks (of their differences', paired), at least ∛n and at most a tenth
   * of n. 1 takes the values for independent.
   */
  readonly block?: number;
  readonly statistic?: Statistic;
}

/**
 * Interval of the difference of a statistic (default: the mean) between two arrival-ordered samples paired by operation:
 * both sides are resampled by the same indices, so what the shared seed has in common cancels. Values of +∞ are allowed
 * where the statistic takes them. @throws InputError when lengths differ or are below 2.
 */
export function pairedDifference(a: ArrayLike<number>, b: ArrayLike<number>, options: BootstrapOptions): Difference {
  if (a.length !== b.length) throw new InputError(`compare: ${a.length} and ${b.length} operations cannot be paired`);
  return bootstrap(a, b, true, options);
}

/** The same for unpaired samples, each resampled on its own. */
export function unpairedDifference(a: ArrayLike<number>, b: ArrayLike<number>, options: BootstrapOptions): Difference {
  return bootstrap(a, b, false, options);
}

function bootstrap(a: ArrayLike<number>, b: ArrayLike<number>, paired: boolean, options: BootstrapOptions): Difference {
  const { seed, level = 0.95, resamples = 2000, statistic = meanStatistic } = options;
  if (a.length < 2 || b.length < 2) throw new InputError('compare: a side has fewer than 2 operations; measure longer');
  const uniform = keyed(seed, 'bootstrap-difference');
  const [scratchA, scratchB] = [new Float64Array(a.length), new Float64Array(b.length)];
  const [blockA, blockB] = paired
    ? [
        blockOf(
          Float64Array.from(a, (x, i) => minus(b[i]!, x)),
          options.block,
        ),
        0,
      ]
    : [blockOf(a, options.block), blockOf(b, options.block)];
  const fill = (): void => {
    if (paired) resample([a, b], [scratchA, scratchB], blockA, uniform);
    else {
      resample([a], [scratchA], blockA, uniform);
      resample([b], [scratchB], blockB, uniform);
    }
  };
  const differences = Float64Array.from({ length: resamples }, () => {
    fill();
    return minus(statistic(scratchB), statistic(scratchA));
  }).sort();
  const alpha = (1 - level) / 2;
  return {
    value: minus(statistic(Float64Array.from(b)), statistic(Float64Array.from(a))),
    low: quantile(differences, alpha)!,
    high: quantile(differences, 1 - alpha)!,
    level,
    method: paired ? 'paired block bootstrap' : 'block bootstrap',
  };
}

function blockOf(values: ArrayLike<number>, asked: number | undefined): number {
  const n = values.length;
  if (asked !== undefined) return Math.min(n, Math.max(1, Math.floor(asked)));
  const time = autocorrelationTime(uniformRanks(values)) ?? 1;
  return Math.min(n, Math.ceil(Math.max(Math.cbrt(n), Math.min(3 * time, n / 10))));
}

/** Fills each scratch with the same circular blocks of its source. */
function resample(from: ArrayLike<number>[], to: Float64Array[], block: number, uniform: () => number): void {
  const n = from[0]!.length;
  for (let filled = 0; filled < n; filled += block) {
    const start = Math.floor(uniform() * n);
    for (let i = filled; i < Math.min(n, filled + block); i++) {
      const at = (start + i - filled) % n;
      for (let side = 0; side < from.length; side++) to[side]![i] = from[side]![at]!;
    }
  }
}

/** Two infinite figures do not differ. */
function minus(x: number, y: number): number {
  return x === y ? 0 : x - y;
}

export interface RunsEffect extends Difference {
  /** Two-sided p-value of "no difference". */
  readonly p: number;
  readonly runsA: number;
  readonly runsB: number;
  /** True with at least three runs a side and some spread between them: only then may a side be called better or worse. */
  readonly conclusive: boolean;
}

/** Fewest runs a side that support "better" or "worse". */
export const FEWEST_RUNS = 3;

/**
 * The effect between two systems from one figure a run, of interleaved runs on each: Welch's t over runs, which carries
 * the between-run spread that single runs cannot show. Runs that all agree show none, and conclude nothing. @throws InputError for fewer than 2 runs a side, or a figure not finite.
 */
export function effectOfRuns(a: readonly number[], b: readonly number[], level = 0.95): RunsEffect {
  if (a.length < 2 || b.length < 2) {
    throw new InputError(
      `compare: ${a.length} and ${b.length} runs; between-run spread needs 2 a side, a verdict ${FEWEST_RUNS}`,
    );
  }
  if (![...a, ...b].every(Number.isFinite))
    throw new InputError('compare: a run has no finite figure; compare attainment instead');
  const [A, B] = [moments(a), moments(b)];
  const [va, vb] = [A.variance / a.length, B.variance / b.length];
  const value = B.mean - A.mean;
  const error = Math.sqrt(va + vb);
  // Welch–Satterthwaite; without any spread one run less than the smaller side.
  const df =
    error > 0
      ? (va + vb) ** 2 / (va ** 2 / (a.length - 1) + vb ** 2 / (b.length - 1))
      : Math.min(a.length, b.length) - 1;
  const half = error > 0 ? studentQuantile((1 + level) / 2, df) * error : 0;
  return {
    value,
    low: value - half,
    high: value + half,
    level,
    p: error > 0 ? 2 * studentCdf(-Math.abs(value) / error, df) : value === 0 ? 1 : 0,
    runsA: a.length,
    runsB: b.length,
    conclusive: error > 0 && Math.min(a.length, b.length) >= FEWEST_RUNS,
    method: 'Welch t over runs',
  };
}

/**
 * The same of runs made in pairs, A and B with one seed each (the same arrivals and requests): t over the differences, so
 * that what a pair shares cancels. Finds small effects that `effectOfRuns` cannot. @throws InputError as there, and for
 * unequal numbers.
 */
export function effectOfPairedRuns(a: readonly number[], b: readonly number[], level = 0.95): RunsEffect {
  if (a.length !== b.length)
    throw new InputError(`compare: ${a.length} and ${b.length} runs are no pairs; use the same seeds on both sides`);
  if (a.length < 2)
    throw new InputError(`compare: ${a.length} pair of runs has no spread; a verdict needs ${FEWEST_RUNS}`);
  if (![...a, ...b].every(Number.isFinite))
    throw new InputError('compare: a run has no finite figure; compare attainment instead');
  const { mean, variance } = moments(a.map((x, i) => b[i]! - x));
  const error = Math.sqrt(variance / a.length);
  const half = error > 0 ? studentQuantile((1 + level) / 2, a.length - 1) * error : 0;
  return {
    value: mean,
    low: mean - half,
    high: mean + half,
    level,
    p: error > 0 ? 2 * studentCdf(-Math.abs(mean) / error, a.length - 1) : mean === 0 ? 1 : 0,
    runsA: a.length,
    runsB: b.length,
    conclusive: error > 0 && a.length >= FEWEST_RUNS,
    method: 'paired t over runs',
  };
}

function moments(x: readonly number[]): { mean: number; variance: number } {
  const mean = x.reduce((sum, v) => sum + v, 0) / x.length;
  return { mean, variance: x.reduce((sum, v) => sum + (v - mean) ** 2, 0) / (x.length - 1) };
}

export interface Proportion {
  /** In [0, 1]. */
  readonly share: number;
  /** Trials; the effective number for dependent operations (`attainmentInterval`'s `effectiveN`). */
  readonly n: number;
}

/** Newcombe's hybrid score interval of a difference of two independent proportions (1998, method 10). */
export function proportionDifference(a: Proportion, b: Proportion, level = 0.95): Difference {
  const [A, B] = [wilson(a.share, a.n, level), wilson(b.share, b.n, level)];
  const value = b.share - a.share;
  return {
    value,
    low: Math.max(-1, value - Math.hypot(b.share - B.low, A.high - a.share)),
    high: Math.min(1, value + Math.hypot(B.high - b.share, a.share - A.low)),
    level,
    method: 'Newcombe score',
  };
}
