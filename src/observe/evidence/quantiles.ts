/** What a histogram says of quantiles and shares, and what must be said beside it. */
import type { Meaning } from '../../core/evidence.ts';
import { type Histogram, histogramQuantile, totalOf } from '../../stats/histogram.ts';

export const QUANTILES = { p50: 0.5, p90: 0.9, p95: 0.95, p99: 0.99 } as const;
export type QuantileName = keyof typeof QUANTILES;

/** In the unit of the concept. */
export interface QuantileInterval {
  readonly low: number;
  /** null: above the last finite bound, so nothing is known but `> low`. */
  readonly high: number | null;
  /** What PromQL's histogram_quantile prints: interpolated within the bucket, and the last finite bound where there is none. */
  readonly promql: number;
}

export type Quantiles = Readonly<Record<QuantileName, QuantileInterval>>;

/** Undefined when nothing was observed, or there is no finite bucket. */
export function quantilesOf(h: Histogram): Quantiles | undefined {
  if (totalOf(h) === 0 || h.bounds.length < 2) return undefined;
  const of = (p: number): QuantileInterval => {
    const { low, high } = histogramQuantile(h, p)!;
    return {
      low: Number.isFinite(low) ? low : h.bounds[0]!,
      high: Number.isFinite(high) ? high : null,
      promql: promqlQuantile(h, p),
    };
  };
  return { p50: of(QUANTILES.p50), p90: of(QUANTILES.p90), p95: of(QUANTILES.p95), p99: of(QUANTILES.p99) };
}

/** `histogram_quantile` of Prometheus over classic buckets: linear within the bucket that holds rank p·n. */
export function promqlQuantile(h: Histogram, p: number): number {
  const rank = p * totalOf(h);
  const at = h.counts.findIndex((c) => c >= rank);
  if (at >= h.bounds.length - 1) return h.bounds.at(-2)!;
  const end = h.bounds[at]!;
  if (at === 0 && end <= 0) return end;
  const start = at === 0 ? 0 : h.bounds[at - 1]!;
  const below = at === 0 ? 0 : h.counts[at - 1]!;
  const own = h.counts[at]! - below;
  return own === 0 ? end : start + ((end - start) * (rank - below)) / own;
}

/** Where buckets mislead: quantiles without an upper end, in a bucket of hopeless width, or all in the first. */
export function bucketNotes(h: Histogram, quantiles: Quantiles | undefined, { unit }: Meaning): string[] {
  if (quantiles === undefined) return [];
  const notes: string[] = [];
  const u = unit === 'seconds' ? ' s' : ` ${unit}`;
  const names = Object.keys(QUANTILES) as QuantileName[];
  const open = names.filter((name) => quantiles[name].high === null);
  const last = h.bounds.at(-2)!;
  if (open.length > 0) {
    const share = h.counts.at(-2)! / totalOf(h);
    notes.push(
      `${open.join(', ')}: above the last finite bound of ${last}${u}, which only ${percent(share)} of the observations are within; histogram_quantile would print ${last}`,
    );
  }
  const wide = names.filter((name) => {
    const { low, high } = quantiles[name];
    return high !== null && low > 0 && high / low > 10;
  });
  for (const name of wide) {
    const { low, high, promql } = quantiles[name];
    notes.push(
      `${name} lies somewhere from ${low} to ${high}${u}: the ${Number(promql.toPrecision(4))} that histogram_quantile prints is made of the bucket's width, not measured`,
    );
  }
  const first = h.counts[0]! / totalOf(h);
  if (first >= 0.9 && h.bounds[0]! > 0) {
    notes.push(
      `${percent(first)} lie in the first bucket (≤ ${h.bounds[0]}${u}): a change within it shows in the mean alone`,
    );
  }
  return notes;
}

export function percent(share: number): string {
  return `${Number((share * 100).toPrecision(3))} %`;
}
