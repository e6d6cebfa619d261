import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { keyed } from '../base/random.ts';
import {
  effectOfPairedRuns,
  effectOfRuns,
  holm,
  pairedDifference,
  proportionDifference,
  quantileStatistic,
  unpairedDifference,
} from './compare.ts';

const INF = Number.POSITIVE_INFINITY;

describe('Holm', () => {
  test('a textbook case', () => {
    const got = holm([0.01, 0.04, 0.03, 0.005]);
    expect(got.map((p) => p.toFixed(12))).toEqual([0.03, 0.06, 0.06, 0.02].map((p) => p.toFixed(12)));
    expect(holm([])).toEqual([]);
  });

  test('never below the p-value, the least as Bonferroni, in the same order', () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 12 }), (ps) => {
        const got = holm(ps);
        ps.forEach((p, i) => {
          expect(got[i]).toBeGreaterThanOrEqual(p);
          expect(got[i]).toBeLessThanOrEqual(1);
          ps.forEach((q, j) => {
            if (p < q) expect(got[i]).toBeLessThanOrEqual(got[j]!);
          });
        });
        const least = Math.min(...ps);
        if (ps.length > 0) expect(Math.min(...got)).toBeCloseTo(Math.min(1, least * ps.length), 12);
      }),
    );
  });
});

describe('differences of two samples', () => {
  const u = keyed(1, 'compare');
  const base = Float64Array.from({ length: 400 }, () => 100 - 50 * Math.log(1 - u()));

  test('pairing cancels what the two sides share', () => {
    const slower = base.map((x) => x * 1.02);
    const paired = pairedDifference(base, slower, { seed: 1, resamples: 500 });
    const unpaired = unpairedDifference(base, slower, { seed: 1, resamples: 500 });
    expect(paired.value).toBeCloseTo(unpaired.value, 9);
    expect(paired.low).toBeGreaterThan(0);
    expect(unpaired.low).toBeLessThan(0);
    expect(unpaired.high - unpaired.low).toBeGreaterThan(4 * (paired.high - paired.low));
  });

  test('is seeded', () => {
    const other = base.map((x) => x + 1);
    expect(unpairedDifference(base, other, { seed: 3, resamples: 200 })).toEqual(
      unpairedDifference(base, other, { seed: 3, resamples: 200 }),
    );
    expect(unpairedDifference(base, other, { seed: 3, resamples: 200 })).not.toEqual(
      unpairedDifference(base, other, { seed: 4, resamples: 200 }),
    );
  });

  test('a constant shift, paired, is known exactly; input is left as it was', () => {
    const copy = base.slice();
    const got = pairedDifference(
      base,
      base.map((x) => x + 5),
      { seed: 1, resamples: 100, statistic: quantileStatistic(0.9) },
    );
    expect([got.value, got.low, got.high].map((x) => x.toFixed(9))).toEqual([
      '5.000000000',
      '5.000000000',
      '5.000000000',
    ]);
    expect(base).toEqual(copy);
  });

  test('failures as +∞: equal infinities do not differ, one-sided ones differ infinitely', () => {
    const failing = base.map((x, i) => (i % 3 === 0 ? INF : x));
    const p90 = { seed: 1, resamples: 100, statistic: quantileStatistic(0.9) };
    expect(pairedDifference(failing, failing, p90)).toMatchObject({ value: 0, low: 0, high: 0 });
    expect(pairedDifference(base, failing, p90)).toMatchObject({ value: INF, low: INF, high: INF });
  });

  test('blocks widen the interval of a sample with memory', () => {
    let x = 0;
    const v = keyed(2, 'memory');
    const slow = Float64Array.from({ length: 2000 }, () => (x = 0.95 * x + v() - 0.5));
    const flat = new Float64Array(2000);
    const width = (block: number): number => {
      const { low, high } = unpairedDifference(flat, slow, { seed: 1, resamples: 300, block });
      return high - low;
    };
    expect(width(100)).toBeGreaterThan(3 * width(1));
    expect(unpairedDifference(flat, slow, { seed: 1, resamples: 300 }).high).toBeGreaterThan(
      2 * unpairedDifference(flat, slow, { seed: 1, resamples: 300, block: 1 }).high,
    ); // by default too
  });

  test('refuses what cannot be compared', () => {
    expect(() => pairedDifference([1, 2], [1, 2, 3], { seed: 1 })).toThrow(/2 and 3 operations cannot be paired/);
    expect(() => unpairedDifference([1], [1, 2], { seed: 1 })).toThrow(/fewer than 2/);
  });

  test('covers the truth of independent samples about as often as it says', () => {
    const v = keyed(5, 'coverage');
    let covered = 0;
    for (let run = 0; run < 200; run++) {
      const a = Float64Array.from({ length: 60 }, v);
      const b = Float64Array.from({ length: 80 }, () => v() + 0.2);
      const { low, high } = unpairedDifference(a, b, { seed: run, resamples: 200, block: 1 });
      if (low <= 0.2 && 0.2 <= high) covered++;
    }
    expect(covered).toBeGreaterThanOrEqual(178);
    expect(covered).toBeLessThanOrEqual(199);
  });
});

describe('effect of runs', () => {
  test('Welch, as SciPy computes it', () => {
    const got = effectOfRuns([10, 11.2, 10.4], [12, 14, 13, 12.5]);
    expect(got.value).toBeCloseTo(2.3416666667, 9);
    expect(got.p).toBeCloseTo(0.00826597867, 9);
    expect(got.low).toBeCloseTo(0.9179236591, 8);
    expect(got.high).toBeCloseTo(3.7654096743, 8);
    expect(got.conclusive).toBe(true);
  });

  test('pairs find what their common seed would hide: differences 1, 1.2, 0.8 give 1 ± 4.3027 · 0.2/√3', () => {
    const got = effectOfPairedRuns([10, 50, 90], [11, 51.2, 90.8]);
    expect(got.value).toBeCloseTo(1, 9);
    expect(got.high - got.value).toBeCloseTo((4.30265273 * 0.2) / Math.sqrt(3), 7);
    expect(got).toMatchObject({ conclusive: true, runsA: 3, runsB: 3 });
    expect(got.low).toBeGreaterThan(0);
    expect(effectOfRuns([10, 50, 90], [11, 51.2, 90.8]).low).toBeLessThan(0);
    expect(() => effectOfPairedRuns([1, 2], [1, 2, 3])).toThrow(/no pairs/);
    expect(() => effectOfPairedRuns([1], [2])).toThrow(/1 pair/);
    expect(() => effectOfPairedRuns([1, INF], [2, 3])).toThrow(/no finite figure/);
  });

  test('two runs a side conclude nothing, nor do runs without spread; one run is refused', () => {
    expect(effectOfRuns([1, 2], [3, 4, 5]).conclusive).toBe(false);
    expect(effectOfRuns([1, 1, 1], [2, 2, 2])).toMatchObject({ conclusive: false, value: 1 });
    expect(effectOfRuns([1, 1, 1], [1, 1, 1])).toMatchObject({ p: 1, value: 0 });
    expect(() => effectOfRuns([1], [2, 3])).toThrow(/1 and 2 runs/);
    expect(() => effectOfRuns([1, INF], [2, 3])).toThrow(/no finite figure/);
  });
});

describe('difference of proportions', () => {
  test('Newcombe 1998, table II (a): 56/70 against 48/80 gives 0.0524 to 0.3339', () => {
    const got = proportionDifference({ share: 48 / 80, n: 80 }, { share: 56 / 70, n: 70 });
    expect(got.value).toBeCloseTo(0.2, 12);
    expect(got.low).toBeCloseTo(0.0524, 4);
    expect(got.high).toBeCloseTo(0.3339, 4);
  });

  test('antisymmetric, within [−1, 1], and not empty at 100 % against 100 %', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 200 }),
        fc.integer({ min: 1, max: 200 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (n, m, s) => {
          const a = { share: Math.round(s * n) / n, n };
          const b = { share: Math.round((1 - s) * m) / m, n: m };
          const ab = proportionDifference(a, b);
          const ba = proportionDifference(b, a);
          expect(ab.low).toBeCloseTo(-ba.high, 12);
          expect(ab.low).toBeGreaterThanOrEqual(-1);
          expect(ab.low).toBeLessThanOrEqual(ab.value);
          expect(ab.high).toBeGreaterThanOrEqual(ab.value);
        },
      ),
    );
    const equal = proportionDifference({ share: 1, n: 50 }, { share: 1, n: 50 });
    expect(equal.low).toBeLessThan(-0.05);
    expect(equal.high).toBeGreaterThan(0.05);
  });
});
