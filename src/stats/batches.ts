/** Consecutive batches of an arrival-ordered series, and where its warm-up ends. */
import { InputError } from '../base/errors.ts';
import { uniformRanks } from './autocorrelation.ts';
import { quantile } from './quantile.ts';

/** Bounds of `count` consecutive batches as equal as can be, together the whole series: [from, to) each. */
export function batchBounds(length: number, count: number): readonly (readonly [number, number])[] {
  if (!(Number.isInteger(count) && count >= 1))
    throw new InputError(`batches: ${count} is not a whole number of batches`);
  const batches = Math.min(count, length);
  return Array.from({ length: batches }, (_, b) => [
    Math.floor((b * length) / batches),
    Math.floor(((b + 1) * length) / batches),
  ]);
}

/** The mean of each batch. A batch that holds +∞ has mean +∞. Fewer batches than asked when the series is shorter. */
export function batchMeans(series: ArrayLike<number>, count: number): Float64Array {
  return Float64Array.from(batchBounds(series.length, count), ([from, to]) => {
    let sum = 0;
    for (let i = from; i < to; i++) sum += series[i]!;
    return sum / (to - from);
  });
}

/** The median of each batch; +∞ when half of it is: what a drift test of latencies with failures takes. */
export function batchMedians(series: ArrayLike<number>, count: number): Float64Array {
  return Float64Array.from(batchBounds(series.length, count), ([from, to]) => {
    const batch = new Float64Array(to - from);
    for (let i = from; i < to; i++) batch[i - from] = series[i]!;
    return quantile(batch.sort(), 0.5)!;
  });
}

export interface Truncation {
  /** Observations to leave out at the start. */
  readonly drop: number;
  /** False when the best cut lies at the end of the range searched: the series had not settled by half its length. */
  readonly settled: boolean;
}

/**
 * MSER-5 (White 1997; White, Cobb & Spratt 2000): means of batches of five; the cut that minimises the standard error of
 * what remains, Σ(Y − Ȳ)² / (k − d)², sought in the first half. A series that holds +∞ is replaced by its ranks. A proposal:
 * a level shift in mid-run looks the same, and the user's minimum still holds. Fewer than 50 observations never settle.
 */
export function mser5(series: ArrayLike<number>): Truncation {
  const k = Math.floor(series.length / 5);
  if (k < 10) return { drop: 0, settled: false };
  let finite = true;
  for (let i = 0; i < series.length && finite; i++) finite = Number.isFinite(series[i]!);
  const means = batchesOfFive(finite ? series : uniformRanks(series), k);
  // From the end: running mean and squares of what remains after each cut (Welford), so nothing cancels.
  let mean = 0;
  let squares = 0;
  let best = Number.POSITIVE_INFINITY;
  let cut = 0;
  const half = Math.floor(k / 2);
  for (let d = k - 1; d >= 0; d--) {
    const kept = k - d;
    const delta = means[d]! - mean;
    mean += delta / kept;
    squares += delta * (means[d]! - mean);
    const error = squares / (kept * kept);
    if (d <= half && error <= best) {
      best = error;
      cut = d;
    }
  }
  return { drop: 5 * cut, settled: cut < half };
}

function batchesOfFive(series: ArrayLike<number>, k: number): Float64Array {
  return Float64Array.from({ length: k }, (_, b) => {
    let sum = 0;
    for (let i = 5 * b; i < 5 * b + 5; i++) sum += series[i]!;
    return sum / 5;
  });
}
