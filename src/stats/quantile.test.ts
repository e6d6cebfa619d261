import fc from 'fast-check';
import { quantileSorted } from 'simple-statistics';
import { describe, expect, test } from 'vitest';
import { keyed } from '../base/random.ts';
import { offeredQuantile, quantile, quantileInterval, quantiles, sortedCopy } from './quantile.ts';

const INF = Number.POSITIVE_INFINITY;
const values = fc.array(fc.double({ min: 0, max: 1e6, noNaN: true }), { minLength: 1, maxLength: 60 });
const share = fc.double({ min: 0, max: 1, noNaN: true });

describe('quantile', () => {
  test('type 7: numpy.quantile([1, 2, 4, 8], …)', () => {
    expect(quantiles([1, 2, 4, 8], [0, 0.25, 0.5, 0.9, 1])).toEqual([1, 1.75, 3, 4 + (2.7 - 2) * 4, 8]);
    expect(quantile([7], 0.99)).toBe(7);
    expect(quantile([], 0.5)).toBeUndefined();
  });

  test('agrees with simple-statistics on finite values', () => {
    fc.assert(
      fc.property(values, share, (xs, p) => {
        const sorted = sortedCopy(xs);
        const want = quantileSorted([...sorted], p);
        expect(Math.abs(quantile(sorted, p)! - want)).toBeLessThanOrEqual(1e-9 * want + 1e-300);
      }),
    );
  });

  test('rises with p and stays within the extremes', () => {
    fc.assert(
      fc.property(values, share, share, (xs, p, q) => {
        const sorted = sortedCopy(xs);
        const [a, b] = [quantile(sorted, Math.min(p, q))!, quantile(sorted, Math.max(p, q))!];
        expect(a).toBeLessThanOrEqual(b * (1 + 1e-12));
        expect(a).toBeGreaterThanOrEqual(sorted[0]!);
        expect(b).toBeLessThanOrEqual(sorted.at(-1)!);
      }),
    );
  });

  test('refuses a p outside [0, 1] and values that are not numbers', () => {
    expect(() => quantile([1], 99)).toThrow(/p99 as 0.99/);
    expect(() => sortedCopy([1, Number.NaN])).toThrow(/not a number/);
  });
});

describe('offered quantile', () => {
  test('failures rank as +∞, and what touches them is infinite', () => {
    const sorted = Float64Array.from({ length: 90 }, (_, i) => i + 1);
    expect(offeredQuantile(sorted, 10, 0.5)).toEqual({ value: 50.5, censoredAbove: null });
    expect(offeredQuantile(sorted, 11, 0.89)).toEqual({ value: 90, censoredAbove: null }); // rank 89 exactly
    expect(offeredQuantile(sorted, 11, 0.8901)).toEqual({ value: null, censoredAbove: 90 }); // between 89 and +∞
    expect(offeredQuantile(sorted, 10, 0.99, 30_000)).toEqual({ value: null, censoredAbove: 30_000 });
    expect(offeredQuantile([], 5, 0.5)).toEqual({ value: null, censoredAbove: 0 });
    expect(offeredQuantile([], 0, 0.5)).toBeUndefined();
  });

  test('equals the quantile of the values with +∞ appended, and is never below the survivors’', () => {
    fc.assert(
      fc.property(values, fc.integer({ min: 0, max: 30 }), share, (xs, censored, p) => {
        const sorted = sortedCopy(xs);
        const appended = quantile(sortedCopy([...xs, ...new Array<number>(censored).fill(INF)]), p);
        const offered = offeredQuantile(sorted, censored, p)!;
        expect(offered.value ?? INF).toBe(appended);
        expect(offered.value ?? INF).toBeGreaterThanOrEqual(quantile(sorted, p)! * (1 - 1e-12));
      }),
    );
  });
});

describe('interval of a quantile', () => {
  test('the median of 10: the 2nd and 9th value, as tabled', () => {
    const sorted = Array.from({ length: 10 }, (_, i) => i + 1);
    expect(quantileInterval(sorted, 0.5)).toEqual({ low: 2, high: 9, level: 0.95, effectiveN: 10, supported: true });
  });

  test('p99 of 40 has no upper bound and says so; of 368 it has one', () => {
    const of = (n: number) =>
      quantileInterval(
        Float64Array.from({ length: n }, (_, i) => i + 1),
        0.99,
      )!;
    expect(of(40)).toMatchObject({ high: null, supported: false });
    expect(of(367)).toMatchObject({ high: null, supported: false });
    expect(of(368)).toMatchObject({ high: 368, supported: true });
  });

  test('a bound among the failures is +∞, not missing', () => {
    const sorted = Float64Array.from({ length: 960 }, (_, i) => i + 1);
    expect(quantileInterval(sorted, 0.95, { censored: 40 })).toMatchObject({ high: INF, supported: true });
    expect(quantileInterval(sorted, 0.5, { censored: 40 })!.high).toBeLessThan(540);
  });

  test('fewer effective values never narrow it', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 400 }),
        fc.double({ min: 0.01, max: 0.99, noNaN: true }),
        share,
        (n, p, u) => {
          const sorted = Float64Array.from({ length: n }, (_, i) => i);
          const full = quantileInterval(sorted, p)!;
          const less = quantileInterval(sorted, p, { effectiveN: 1 + u * (n - 1) })!;
          expect(less.low ?? -1).toBeLessThanOrEqual(full.low ?? -1);
          expect(less.high ?? INF).toBeGreaterThanOrEqual(full.high ?? INF);
        },
      ),
    );
  });

  test('covers the true quantile of independent values as often as it says', () => {
    const u = keyed(1, 'quantile-coverage');
    for (const p of [0.5, 0.9]) {
      let covered = 0;
      for (let run = 0; run < 1000; run++) {
        const { low, high } = quantileInterval(Float64Array.from({ length: 100 }, u).sort(), p)!;
        if ((low ?? 0) <= p && p <= (high ?? 1)) covered++;
      }
      expect(covered).toBeGreaterThanOrEqual(935); // 950 expected at least; three standard errors are 20
    }
  });
});
