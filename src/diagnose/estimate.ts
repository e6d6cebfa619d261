/** A figure with its standard error, its population and where it comes from. */
import { autocorrelationTime, firstOrderTime, uniformRanks } from '../stats/autocorrelation.ts';
import { batchMeans } from '../stats/batches.ts';
import { normalCdf } from '../stats/normal.ts';
import { quantile } from '../stats/quantile.ts';

/** Where a figure comes from, best first: what both sides have decides which is used. */
export const SOURCES = ['requests', 'server-per-request', 'server-metrics', 'told'] as const;
export type Source = (typeof SOURCES)[number];

export const SOURCE_TEXT: Readonly<Record<Source, string>> = {
  requests: "the client's records",
  'server-per-request': "the server's times in the client's records",
  'server-metrics': 'server metrics',
  told: 'told figures',
};

export interface Estimate {
  readonly value: number;
  /** Standard error, in the value's unit. */
  readonly se: number;
  /** Observations, 0 when not known. */
  readonly n: number;
  readonly source: Source;
  /** `completed requests`, `scrapes` … */
  readonly population: string;
}

/**
 * The mean of an arrival-ordered series. Neighbours share a queue, so the error is that of n/τ values, τ the larger of two
 * estimates; a short series, whose τ cannot be known, is also held against the spread of its ten batches.
 */
export function meanEstimate(values: ArrayLike<number>, source: Source, population: string): Estimate | undefined {
  const n = values.length;
  if (n === 0) return undefined;
  let sum = 0;
  for (let i = 0; i < n; i++) sum += values[i]!;
  const value = sum / n;
  if (n < 8) return { value, se: Math.abs(value) * 0.5, n, source, population };
  let squares = 0;
  for (let i = 0; i < n; i++) squares += (values[i]! - value) ** 2;
  const variance = squares / (n - 1);
  const ranks = uniformRanks(values);
  const order = firstOrderTime(ranks) ?? 1;
  const tau = Math.min(n / 3, Math.max(1, autocorrelationTime(ranks) ?? 1, Number.isFinite(order) ? order : n / 3));
  const batches = batchMeans(values, Math.min(12, n));
  let spread = 0;
  for (const b of batches) spread += (b - value) ** 2;
  const batched = spread / (batches.length * (batches.length - 1));
  return { value, se: Math.sqrt(Math.max((variance * tau) / n, batched)), n, source, population };
}

/** A quantile, its error from the spread of batches' quantiles and from order statistics, whichever is larger. */
export function quantileEstimate(
  values: ArrayLike<number>,
  p: number,
  source: Source,
  population: string,
): Estimate | undefined {
  const n = values.length;
  if (n < 20) return undefined;
  const sorted = Float64Array.from(values).sort();
  const value = quantile(sorted, p)!;
  const ranks = uniformRanks(values);
  const tau = Math.min(n / 10, Math.max(1, autocorrelationTime(ranks) ?? 1));
  const half = Math.sqrt((p * (1 - p) * tau) / n);
  const low = quantile(sorted, Math.max(0, p - half))!;
  const high = quantile(sorted, Math.min(1, p + half))!;
  return { value, se: Math.max((high - low) / 2, 1e-9), n, source, population };
}

/** P(x < bound) of a value with standard error `se`. */
export function below(x: number, se: number, bound: number): number {
  if (!(se > 0)) return x < bound ? 1 : x > bound ? 0 : 0.5;
  return normalCdf((bound - x) / se);
}

/** ln(b/a) with its error by the delta method; undefined unless both are positive. */
export function logRatio(a: Estimate, b: Estimate): { readonly value: number; readonly se: number } | undefined {
  if (!(a.value > 0 && b.value > 0)) return undefined;
  return { value: Math.log(b.value / a.value), se: Math.hypot(a.se / a.value, b.se / b.value) };
}
