import type { Spread } from '../core/index.ts';
import { quantile } from '../stats/index.ts';

/** Median, p99 and maximum of ascending values; undefined without any. */
export function spreadOf(sorted: Float64Array): Spread | undefined {
  const p50 = quantile(sorted, 0.5);
  const p99 = quantile(sorted, 0.99);
  const max = sorted.at(-1);
  return p50 === undefined || p99 === undefined || max === undefined ? undefined : { p50, p99, max };
}
