import { quantile } from '../stats/quantile.ts';

/** A type-7 quantile of a few unsorted numbers, NaN of none. */
export function quantileOfUnsorted(values: readonly number[], p: number): number {
  return quantile(Float64Array.from(values).sort(), p) ?? Number.NaN;
}
