/** The binomial distribution and intervals of a proportion of *independent* trials. */
import { incompleteBeta, inverseIncompleteBeta } from './beta.ts';
import { normalQuantile } from './normal.ts';

export interface Interval {
  readonly low: number;
  readonly high: number;
}

/**
 * P(X ≤ k) of k successes in n trials of probability p. By I_{1−p}(n−k, k+1), which extends it to real n and k (an
 * effective sample size).
 */
export function binomialCdf(k: number, n: number, p: number): number {
  if (k <= -1) return 0;
  if (k >= n) return 1;
  return incompleteBeta(1 - p, n - k, k + 1);
}

/** The exact interval of Clopper & Pearson (1934): coverage at least `level`, conservative. `n` > 0 may be fractional. */
export function clopperPearson(successes: number, n: number, level = 0.95): Interval {
  const alpha = (1 - level) / 2;
  return {
    low: successes <= 0 ? 0 : inverseIncompleteBeta(alpha, successes, n - successes + 1),
    high: successes >= n ? 1 : inverseIncompleteBeta(1 - alpha, successes + 1, n - successes),
  };
}

/**
 * Wilson's score interval (1927) of a proportion `share` seen in `n` > 0 trials; `critical` replaces the normal quantile
 * (a Student one, when the variance is itself estimated). Never empty, never outside [0, 1].
 */
export function wilson(share: number, n: number, level = 0.95, critical = normalQuantile((1 + level) / 2)): Interval {
  const z2 = (critical * critical) / n;
  if (!Number.isFinite(z2)) return { low: 0, high: 1 };
  const centre = (share + z2 / 2) / (1 + z2);
  const half = (critical / (1 + z2)) * Math.sqrt((share * (1 - share)) / n + z2 / (4 * n));
  return {
    low: share <= 0 ? 0 : Math.max(0, Math.min(share, centre - half)),
    high: share >= 1 ? 1 : Math.min(1, Math.max(share, centre + half)),
  };
}
