import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { keyed } from '../base/random.ts';
import { batchBounds, batchMeans, batchMedians, mser5 } from './batches.ts';
import { driftTest, mannKendall, theilSen } from './trend.ts';

const INF = Number.POSITIVE_INFINITY;

describe('batches', () => {
  test('cover the series once, in order, in nearly equal parts', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 500 }), fc.integer({ min: 1, max: 60 }), (n, count) => {
        const bounds = batchBounds(n, count);
        expect(bounds.length).toBe(Math.min(n, count));
        expect(bounds[0]![0]).toBe(0);
        expect(bounds.at(-1)![1]).toBe(n);
        bounds.forEach(([from, to], i) => {
          expect(to - from).toBeGreaterThanOrEqual(Math.floor(n / bounds.length));
          expect(to - from).toBeLessThanOrEqual(Math.ceil(n / bounds.length));
          if (i > 0) expect(from).toBe(bounds[i - 1]![1]);
        });
      }),
    );
  });

  test('means and medians, +∞ allowed', () => {
    expect([...batchMeans([1, 3, 5, 7], 2)]).toEqual([2, 6]);
    expect([...batchMedians([1, INF, 3, INF, INF, 4], 2)]).toEqual([3, INF]);
    expect([...batchMedians([], 5)]).toEqual([]);
    expect(() => batchMeans([1], 0)).toThrow(/0 is not/);
  });
});

describe('MSER-5', () => {
  const noisy = (n: number, level: (i: number) => number): Float64Array => {
    const u = keyed(1, 'mser');
    return Float64Array.from({ length: n }, (_, i) => level(i) + u());
  };

  test('finds a warm-up of 100, decaying', () => {
    const { drop, settled } = mser5(noisy(2000, (i) => 20 * Math.exp(-i / 30)));
    expect(settled).toBe(true);
    expect(drop).toBeGreaterThanOrEqual(60);
    expect(drop).toBeLessThanOrEqual(200);
  });

  test('cuts little of a steady series, and knows one that never settles', () => {
    expect(mser5(noisy(2000, () => 5)).drop).toBeLessThan(400);
    expect(mser5(noisy(2000, (i) => i)).settled).toBe(false);
    expect(mser5([1, 2, 3])).toEqual({ drop: 0, settled: false });
  });

  test('failures in the warm-up count as its worst values', () => {
    const series = noisy(2000, () => 5);
    for (let i = 0; i < 50; i++) series[i] = INF;
    expect(mser5(series)).toEqual({ drop: expect.any(Number), settled: true });
    expect(mser5(series).drop).toBeGreaterThanOrEqual(50);
  });

  test('agrees with the definition', () => {
    const series = noisy(200, (i) => (i < 40 ? 3 : 0));
    const k = 40;
    const means = Array.from({ length: k }, (_, b) => series.slice(5 * b, 5 * b + 5).reduce((a, x) => a + x, 0) / 5);
    const score = (d: number): number => {
      const rest = means.slice(d);
      const mean = rest.reduce((a, x) => a + x, 0) / rest.length;
      return rest.reduce((a, x) => a + (x - mean) ** 2, 0) / rest.length ** 2;
    };
    const best = Array.from({ length: 21 }, (_, d) => d).reduce((a, d) => (score(d) < score(a) ? d : a), 0);
    expect(mser5(series).drop).toBe(5 * best);
  });
});

describe('Mann–Kendall and Theil–Sen', () => {
  test('a textbook case: s, its variance and p', () => {
    // n = 10 without ties: Var = 10·9·25/18 = 125.
    const got = mannKendall([1, 3, 2, 5, 4, 7, 6, 9, 8, 10])!;
    expect(got.s).toBe(37);
    expect(got.tau).toBeCloseTo(37 / 45, 12);
    expect(got.deviation).toBeCloseTo(Math.sqrt(125 * got.inflation), 12);
    expect(got.p).toBeLessThan(0.01);
  });

  test('ties lower the variance; all equal is no trend; three values tell nothing', () => {
    expect(mannKendall([1, 1, 1, 1, 1, 1])).toMatchObject({ s: 0, p: 1 });
    expect(mannKendall([1, 2, 3])).toBeUndefined();
    // Two pairs of ties of ten: 125 − 2·(2·1·9)/18 = 123.
    const tied = mannKendall([1, 1, 2, 2, 3, 4, 5, 6, 7, 8])!;
    expect(tied.deviation).toBeCloseTo(Math.sqrt(123 * tied.inflation), 12);
  });

  test('depends on ranks alone, +∞ the highest; reversing turns the sign', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 50 }), { minLength: 4, maxLength: 40 }), (xs) => {
        const plain = mannKendall(xs)!;
        const ranked = mannKendall(xs.map((x) => (x === 50 ? INF : x ** 3)))!;
        expect(ranked).toEqual(plain);
        expect(mannKendall([...xs].reverse())!.s).toBe(-plain.s || 0);
        expect(plain.p).toBeGreaterThanOrEqual(0);
        expect(plain.p).toBeLessThanOrEqual(1);
        expect(plain.inflation).toBeGreaterThanOrEqual(1);
      }),
    );
  });

  test('the slope of a line is its slope, whatever a few outliers say', () => {
    const line = Array.from({ length: 20 }, (_, i) => 3 * i + 1);
    line[4] = 1e6;
    line[11] = -1e6;
    const got = theilSen(line, mannKendall(line)!.deviation)!;
    expect(got.slope).toBeCloseTo(3, 9);
    expect(got.low).toBeLessThanOrEqual(3);
    expect(got.high).toBeGreaterThanOrEqual(3);
    expect(theilSen([2, 4, 8], 0, 0.95, [0, 1, 3])!.slope).toBeCloseTo(2, 12);
    expect(theilSen([5], 1)).toBeUndefined();
  });

  test('refuses NaN and too many values', () => {
    expect(() => mannKendall([1, 2, Number.NaN, 3])).toThrow(/value 2 is not a number/);
    expect(() => mannKendall(new Float64Array(2001))).toThrow(/at most 2000 batches/);
  });
});

describe('drift', () => {
  test('batches that go to +∞ drift up; the slope is then infinite', () => {
    const got = driftTest([1, 2, 4, 9, 20, 50, 90, INF, INF, INF, INF, INF, INF, INF, INF, INF]);
    expect(got.direction).toBe('up');
    expect(got.slope!.high).toBe(INF);
    expect(driftTest(new Float64Array(16).fill(INF))).toMatchObject({ direction: 'none', slope: { slope: 0 } });
  });

  test('few batches are unknown, falling ones down', () => {
    expect(driftTest([1, 2, 3, 4, 5, 6, 7]).direction).toBe('unknown');
    expect(driftTest([9, 8, 7, 6, 5, 4, 3, 2, 1, 0.5, 0.4, 0.3]).direction).toBe('down');
  });

  test('independent batches seldom drift: at most as often as alpha', () => {
    const u = keyed(2, 'drift');
    let alarms = 0;
    for (let run = 0; run < 400; run++)
      if (driftTest(Float64Array.from({ length: 20 }, u)).direction !== 'none') alarms++;
    expect(alarms).toBeLessThanOrEqual(30); // 20 expected at most; two standard errors are 9
  });

  test('a slow swing is less often called a drift than without the correction', () => {
    const u = keyed(3, 'swing');
    let corrected = 0;
    let plain = 0;
    for (let run = 0; run < 200; run++) {
      let x = 0;
      const series = Float64Array.from({ length: 40 }, () => (x = 0.8 * x + u() - 0.5));
      const got = mannKendall(series)!;
      if (Math.abs(got.s) / (got.deviation / Math.sqrt(got.inflation)) > 1.96) plain++;
      if (driftTest(series).direction !== 'none') corrected++;
    }
    expect(plain).toBeGreaterThan(60);
    expect(corrected).toBeLessThan(plain / 2);
  });
});
