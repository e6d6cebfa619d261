/** Histograms of several replicas as one figure: by count and sum, its error from their own spread. */
import type { Observed, ReplicaEvidence } from '../core/evidence.ts';
import { type Histogram, histogramQuantile, mergeHistograms, totalOf } from '../stats/histogram.ts';
import type { Estimate } from './estimate.ts';
import type { QuantityId } from './quantities.ts';
import { type Measures, put } from './table.ts';

/** Fewest observations that say anything. */
export const FEWEST = 20;

export function collect(
  replicas: readonly ReplicaEvidence[],
  of: (r: ReplicaEvidence) => Observed | undefined,
): Observed[] {
  // Where some replicas expose it and others do not, the pool's figure would be one of the few.
  const all = replicas.map(of);
  const there = all.filter((o) => o !== undefined);
  return there.length < all.length * 0.75 ? [] : there;
}

/** Σ sum / Σ count, its error from the histograms' own spread where there are buckets, else from `spread` times the mean. */
export function meanOf(
  parts: readonly Observed[],
  scale: number,
  dependence: number,
  spread = 1,
): Estimate | undefined {
  let n = 0;
  let sum = 0;
  let squares = 0;
  for (const { count, sum: s, histogram } of parts) {
    if (s === undefined) return undefined;
    n += count;
    sum += s;
    squares += histogram ? spreadOf(histogram, 0.1 * spread ** 2) : count > 0 ? (spread * (s / count)) ** 2 * count : 0;
  }
  if (n < FEWEST) return undefined;
  const sd = Math.sqrt(squares / n);
  return {
    value: (scale * sum) / n,
    se: scale * sd * Math.sqrt(dependence / n),
    n,
    source: 'server-metrics',
    population: `${n} observations`,
  };
}

/** Σ (x − mean)² with each observation at its bucket's middle, and at least `least` times what an exponential of that mean has. */
function spreadOf(h: Histogram, least: number): number {
  const n = totalOf(h);
  if (n === 0) return 0;
  const mean = h.sum / n;
  let squares = 0;
  for (let i = 0; i < h.bounds.length; i++) {
    const own = h.counts[i]! - (i > 0 ? h.counts[i - 1]! : 0);
    if (own === 0) continue;
    const low = i > 0 ? h.bounds[i - 1]! : 0;
    const high = Number.isFinite(h.bounds[i]!) ? h.bounds[i]! : 2 * Math.max(low, mean);
    // All in one wide bucket: its middle says nothing, the mean does.
    const x = own > 0.9 * n ? mean : (low + high) / 2;
    squares += own * (x - mean) ** 2;
  }
  return Math.max(squares, least * n * mean * mean);
}

export function tail(into: Measures, id: QuantityId, parts: readonly Observed[], scale: number): void {
  const histograms = parts.flatMap((p, i) =>
    p.histogram ? [{ name: `replica ${i + 1}`, histogram: p.histogram }] : [],
  );
  if (histograms.length === 0 || histograms.length < parts.length) return;
  let merged: Histogram;
  try {
    merged = mergeHistograms(histograms);
  } catch {
    return; // no common bounds: the evidence's notes say so
  }
  if (totalOf(merged) < 200) return;
  const q = histogramQuantile(merged, 0.99);
  if (!q || !Number.isFinite(q.high)) return;
  put(into, id, {
    value: (scale * (q.low + q.high)) / 2,
    se: (scale * (q.high - q.low)) / 3,
    n: totalOf(merged),
    source: 'server-metrics',
    population: `p99 within a bucket, of ${totalOf(merged)}`,
  });
}

/** Σ tokens² / Σ tokens: the size of the step a token finds itself in. A few large steps hold most prompt tokens. */
export function stepOfToken(into: Measures, parts: readonly Observed[]): void {
  let tokens = 0;
  let squares = 0;
  let n = 0;
  for (const { histogram: h } of parts) {
    if (!h) return;
    for (let i = 0; i < h.bounds.length; i++) {
      const own = h.counts[i]! - (i > 0 ? h.counts[i - 1]! : 0);
      if (own === 0) continue;
      const high = Number.isFinite(h.bounds[i]!) ? h.bounds[i]! : 2 * (h.bounds[i - 1] ?? 1);
      const middle = Math.sqrt(Math.max(1, i > 0 ? h.bounds[i - 1]! : 1) * high);
      tokens += own * middle;
      squares += own * middle * middle;
      n += own;
    }
  }
  if (n < 200) return;
  const value = squares / tokens;
  put(into, 'step_tail', { value, se: 0.12 * value, n, source: 'server-metrics', population: `${n} steps` });
}
