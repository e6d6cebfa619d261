/**
 * Intervals from independent replications (other seeds, each warmed up): the means of the runs are independent whatever
 * happens inside a run, so this is what a capacity may be decided on (Law, Simulation Modeling and Analysis, 9.4).
 */
import { InputError } from '../base/errors.ts';
import { keyed } from '../base/random.ts';
import { wilson } from './binomial.ts';
import { studentQuantile } from './normal.ts';
import { quantile } from './quantile.ts';

export interface ReplicationInterval {
  readonly value: number;
  readonly low: number;
  readonly high: number;
  /** Two-sided confidence of this one interval, after splitting the error. */
  readonly level: number;
  readonly runs: number;
  /** Standard deviation between the runs. */
  readonly spread: number;
  readonly method: 't' | 't-and-score' | 'score' | 'bootstrap';
}

/** The level of each of `points` intervals so that all hold at once with `level`: the error is split (Bonferroni). */
export function splitLevel(level: number, points: number): number {
  return 1 - (1 - level) / Math.max(1, points);
}

export interface ReplicationOptions {
  /** Joint confidence, default 0.95. */
  readonly level?: number;
  /** How many points this level is shared over, default 1. */
  readonly points?: number;
}

/** Student's interval of the mean of ≥ 2 run means, any unit. @throws InputError for fewer. */
export function replicationInterval(means: ArrayLike<number>, options: ReplicationOptions = {}): ReplicationInterval {
  const level = splitLevel(options.level ?? 0.95, options.points ?? 1);
  const { mean, spread, runs } = summary(means);
  const half = studentQuantile((1 + level) / 2, runs - 1) * (spread / Math.sqrt(runs));
  return { value: mean, low: mean - half, high: mean + half, level, runs, spread, method: 't' };
}

/**
 * The interval of a share from ≥ 2 runs' shares, in [0, 1]. Runs that agree by luck, all at 100 % say, do not make it empty:
 * it is never narrower than the score interval on `effectiveN` independent operations over all runs (the sum of the runs'
 * own; their number where it is not known, which is very cautious).
 */
export function shareFromReplications(
  shares: ArrayLike<number>,
  options: ReplicationOptions & { readonly effectiveN?: number } = {},
): ReplicationInterval {
  const t = replicationInterval(shares, options);
  if (t.spread > 0 && options.effectiveN === undefined) {
    return { ...t, low: Math.max(0, t.low), high: Math.min(1, t.high) };
  }
  const score = wilson(t.value, Math.max(1, options.effectiveN ?? t.runs), t.level);
  return {
    ...t,
    low: Math.max(0, Math.min(t.low, score.low)),
    high: Math.min(1, Math.max(t.high, score.high)),
    method: t.spread > 0 ? 't-and-score' : 'score',
  };
}

/**
 * Percentile bootstrap over the runs, 2,000 seeded resamples. With fewer than about ten runs it is too narrow by a factor
 * of about √((k−1)/k) and more; the t interval is the one to prefer then.
 */
export function bootstrapReplications(
  means: ArrayLike<number>,
  seed: number,
  options: ReplicationOptions = {},
): ReplicationInterval {
  const level = splitLevel(options.level ?? 0.95, options.points ?? 1);
  const { mean, spread, runs } = summary(means);
  const uniform = keyed(seed, 'bootstrap-replications');
  const resampled = Float64Array.from({ length: 2000 }, () => {
    let sum = 0;
    for (let i = 0; i < runs; i++) sum += means[Math.floor(uniform() * runs)]!;
    return sum / runs;
  }).sort();
  const alpha = (1 - level) / 2;
  return {
    value: mean,
    low: quantile(resampled, alpha)!,
    high: quantile(resampled, 1 - alpha)!,
    level,
    runs,
    spread,
    method: 'bootstrap',
  };
}

function summary(means: ArrayLike<number>): { mean: number; spread: number; runs: number } {
  const runs = means.length;
  if (runs < 2) throw new InputError(`replications: ${runs} run has no spread; repeat with at least one other seed`);
  let mean = 0;
  for (let i = 0; i < runs; i++) mean += means[i]! / runs;
  let squares = 0;
  for (let i = 0; i < runs; i++) squares += (means[i]! - mean) ** 2;
  // Equal means leave rounding, not spread.
  const spread = Math.sqrt(squares / (runs - 1));
  return { mean, spread: spread > 1e-12 * Math.abs(mean) ? spread : 0, runs };
}
