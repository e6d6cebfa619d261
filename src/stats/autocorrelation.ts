/**
 * How much the dependence of neighbours costs: the integrated autocorrelation time τ of a series, by which the variance of
 * its mean exceeds that of independent values. n/τ is the effective sample size.
 */

/** Longer series are averaged down to at most twice this many batches first: it bounds the work, and keeps τ. */
const BATCHES = 4096;

/**
 * τ ≥ 1 by Geyer's initial monotone sequence (1992): autocovariances summed in pairs while these stay positive and
 * falling. Undefined for a constant series or fewer than 4 values: such a series says nothing about its dependence.
 */
export function autocorrelationTime(series: ArrayLike<number>): number | undefined {
  const n = series.length;
  const size = Math.max(1, Math.floor(n / BATCHES));
  const total = centred(series, 1);
  const batches = size === 1 ? total : centred(series, size);
  const variance = covariance(total, 0);
  if (n < 4 || !(variance > 1e-24)) return undefined;
  let sum = -covariance(batches, 0);
  let last = Number.POSITIVE_INFINITY;
  for (let lag = 0; lag + 1 < batches.length / 2; lag += 2) {
    last = Math.min(last, covariance(batches, lag) + covariance(batches, lag + 1));
    if (!(last > 0)) break;
    sum += 2 * last;
  }
  return Math.max(1, (size * sum) / variance);
}

/**
 * τ of the first-order autoregression with the series' lag-1 correlation, that corrected for its bias downwards in short
 * samples (Kendall 1954: + (1 + 4r)/n). +∞ where a unit root fits: the run is too short to tell. Undefined as above.
 */
export function firstOrderTime(series: ArrayLike<number>): number | undefined {
  const x = centred(series, 1);
  const variance = covariance(x, 0);
  if (x.length < 4 || !(variance > 1e-24)) return undefined;
  const r = covariance(x, 1) / variance;
  const corrected = r + (1 + 4 * r) / x.length;
  return corrected >= 1 ? Number.POSITIVE_INFINITY : Math.max(1, (1 + corrected) / (1 - corrected));
}

/** Autocorrelations at lags 0…`lags` (biased estimator, so that they form a positive sequence); all 0 if constant. */
export function autocorrelations(series: ArrayLike<number>, lags: number): Float64Array {
  const x = centred(series, 1);
  const variance = covariance(x, 0);
  return Float64Array.from({ length: lags + 1 }, (_, k) => (variance > 0 ? covariance(x, k) / variance : 0));
}

/** Ranks scaled to (0, 1), ties at their middle: a series with +∞ in it, made finite and robust. */
export function uniformRanks(series: ArrayLike<number>): Float64Array {
  const n = series.length;
  // Numbers sort several times faster by themselves than indices by a comparator; each then looks its place up.
  const sorted = Float64Array.from(series).sort();
  const ranks = new Float64Array(n);
  for (let i = 0; i < n; i++) {
    const x = series[i]!;
    const from = firstNot(sorted, x, 0, false);
    ranks[i] = (from + firstNot(sorted, x, from, true)) / (2 * n);
  }
  return ranks;
}

/** The first index ≥ `from` of an ascending array whose value is not below x (`through`: is above x). */
function firstNot(sorted: Float64Array, x: number, from: number, through: boolean): number {
  if (through && (from + 1 === sorted.length || sorted[from + 1]! > x)) return from + 1;
  let [low, high] = [from, sorted.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle]! < x || (through && sorted[middle] === x)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Means of consecutive batches of `size`, less the overall mean; a remainder is left out. */
function centred(series: ArrayLike<number>, size: number): Float64Array {
  const batches = Math.floor(series.length / size);
  const means = new Float64Array(batches);
  let mean = 0;
  for (let b = 0; b < batches; b++) {
    let sum = 0;
    for (let i = b * size; i < (b + 1) * size; i++) sum += series[i]!;
    means[b] = sum / size;
    mean += means[b]! / batches;
  }
  for (let b = 0; b < batches; b++) means[b]! -= mean;
  return means;
}

function covariance(centredSeries: Float64Array, lag: number): number {
  const n = centredSeries.length;
  let sum = 0;
  for (let i = lag; i < n; i++) sum += centredSeries[i]! * centredSeries[i - lag]!;
  return n > 0 ? sum / n : 0;
}
