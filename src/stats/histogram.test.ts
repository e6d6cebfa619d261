import fc from 'fast-check';
import { Histogram as PromHistogram, Registry } from 'prom-client';
import { describe, expect, test } from 'vitest';
import {
  counterIncrease,
  type Histogram,
  histogram,
  histogramQuantile,
  histogramShare,
  jointShare,
  meanOf,
  mergeHistograms,
  totalOf,
  windowOf,
} from './histogram.ts';
import { quantile, sortedCopy } from './quantile.ts';

const INF = Number.POSITIVE_INFINITY;
const BOUNDS = [0.1, 0.25, 0.5, 1, 2, 5];
const of = (values: readonly number[], bounds = BOUNDS): Histogram => {
  const all = [...bounds, INF];
  const sum = values.reduce((a, b) => a + b, 0);
  return histogram(
    all,
    all.map((b) => values.filter((v) => v <= b).length),
    sum,
    'test',
    values.length,
  );
};
const values = fc.array(fc.double({ min: 0, max: 8, noNaN: true }), { maxLength: 60 });
const some = fc.array(fc.double({ min: 0, max: 8, noNaN: true }), { minLength: 1, maxLength: 60 });
const subset = fc.subarray(BOUNDS, { minLength: 1 });

describe('histogram', () => {
  test('says what is wrong, and where', () => {
    const at = 'line 12';
    expect(() => histogram([1, 2, INF], [1, 0, 5], 1, at)).toThrow(
      /line 12: bucket le=2 counts 0, fewer than the 1 of le=1/,
    );
    expect(() => histogram([1, INF], [1, 5], 1, at, 6)).toThrow(/_count is 6 but bucket le=\+Inf counts 5/);
    expect(() => histogram([1, 2], [1, 5], 1, at)).toThrow(/no bucket le=\+Inf/);
    expect(() => histogram([2, 1, INF], [1, 1, 1], 1, at)).toThrow(/bound 1 does not exceed 2/);
    expect(() => histogram([1, INF], [1], 1, at)).toThrow(/2 bounds and 1 counts/);
    expect(() => histogram([1, INF], [-1, 1], 1, at)).toThrow(/le=1 counts -1/);
    expect(() => histogram([], [], 0, at)).toThrow(/0 bounds/);
  });

  test('agrees with prom-client on what falls in a bucket', async () => {
    const xs = [0.05, 0.1, 0.3, 0.5, 0.9, 3, 7];
    const registry = new Registry();
    const prom = new PromHistogram({ name: 'x', help: 'x', buckets: BOUNDS, registers: [registry] });
    for (const x of xs) prom.observe(x);
    const text = await registry.metrics();
    const counts = [...text.matchAll(/x_bucket\{le="[^"]+"\} (\d+)/g)].map((m) => Number(m[1]));
    expect(of(xs).counts).toEqual(counts);
  });

  test('a quantile interval holds the exact type-7 quantile, one bucket or two wide', () => {
    fc.assert(
      fc.property(some, fc.double({ min: 0, max: 1, noNaN: true }), (xs, p) => {
        const { low, high } = histogramQuantile(of(xs), p)!;
        const exact = quantile(sortedCopy(xs), p)!;
        expect(low).toBeLessThanOrEqual(exact * (1 + 1e-12));
        expect(high).toBeGreaterThanOrEqual(exact * (1 - 1e-12));
      }),
      { numRuns: 500 },
    );
    expect(histogramQuantile(of([9, 9, 9]), 0.5)).toEqual({ low: 5, high: INF });
    expect(histogramQuantile(of([0.2, 0.2, 0.2]), 0.5)).toEqual({ low: 0.1, high: 0.25 });
    expect(histogramQuantile(of([]), 0.5)).toBeUndefined();
    expect(() => histogramQuantile(of([1]), 99)).toThrow(/0.99/);
  });

  test('a share is exact at a bound and an interval between', () => {
    fc.assert(
      fc.property(some, fc.oneof(fc.constantFrom(...BOUNDS), fc.double({ min: 0, max: 9, noNaN: true })), (xs, x) => {
        const { low, high } = histogramShare(of(xs), x)!;
        const truth = xs.filter((v) => v <= x).length / xs.length;
        expect(low).toBeLessThanOrEqual(truth);
        expect(high).toBeGreaterThanOrEqual(truth);
        if (BOUNDS.includes(x)) expect(low).toBe(high);
      }),
    );
    expect(histogramShare(of([]), 1)).toBeUndefined();
    expect(histogramShare(of([0.2, 9]), 100)).toEqual({ low: 0.5, high: 1 });
  });
});

describe('replicas', () => {
  const named = (xs: readonly number[], name: string, bounds = BOUNDS) => ({ name, histogram: of(xs, bounds) });

  test('the sum of replicas is the histogram of all their observations', () => {
    fc.assert(
      fc.property(values, values, (a, b) => {
        const merged = mergeHistograms([named(a, 'a'), named(b, 'b')]);
        const whole = of([...a, ...b]);
        expect(merged.counts).toEqual(whole.counts);
        expect(merged.bounds).toEqual(whole.bounds);
        expect(merged.coarsened).toBe(false);
        expect(merged.sum).toBeCloseTo(whole.sum, 9);
      }),
    );
  });

  test('different bounds coarsen to the common ones, exactly', () => {
    fc.assert(
      fc.property(values, subset, values, subset, (a, boundsA, b, boundsB) => {
        const common = boundsA.filter((x) => boundsB.includes(x));
        const merge = () => mergeHistograms([named(a, 'one', boundsA), named(b, 'two', boundsB)]);
        if (common.length === 0) expect(merge).toThrow(/one and two have no finite bucket bound/);
        else {
          expect(merge().counts).toEqual(of([...a, ...b], common).counts);
          expect(merge().coarsened).toBe(common.length < boundsA.length || common.length < boundsB.length);
        }
      }),
    );
    expect(() => mergeHistograms([])).toThrow(/nothing/);
  });
});

describe('windows', () => {
  test('the difference of two scrapes is what was observed between them', () => {
    fc.assert(
      fc.property(values, values, (a, b) => {
        const got = windowOf(of(a), of([...a, ...b]), 'replica 1');
        expect(got.counts).toEqual(of(b).counts);
        expect(got.sum).toBeCloseTo(of(b).sum, 9);
        expect(got.reset).toBe(false);
      }),
    );
  });

  test('a restart is seen in a bucket even when the total grew, and starts the window', () => {
    const before = of([0.2, 0.2, 3]);
    const after = of([0.2, 0.3, 0.4, 0.4]);
    expect(windowOf(before, after, 'replica 1')).toEqual({ ...after, reset: true });
    expect(totalOf(windowOf(before, of([]), 'replica 1'))).toBe(0);
    expect(() => windowOf(of([]), of([], [1]), 'replica 1')).toThrow(/replica 1: the buckets changed/);
  });

  test('counters', () => {
    expect(counterIncrease(5, 9)).toEqual({ increase: 4, reset: false });
    expect(counterIncrease(5, 2)).toEqual({ increase: 2, reset: true });
    expect([meanOf(of([1, 3])), meanOf(of([]))]).toEqual([2, undefined]);
  });
});

test('joint attainment from marginals: the worked 90 % and 90 % give 80 to 90 %', () => {
  const { low, high } = jointShare(0.9, 0.9);
  expect(low).toBeCloseTo(0.8, 12);
  expect(high).toBe(0.9);
  expect(jointShare(0.3, 0.4)).toEqual({ low: 0, high: 0.3 });
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.boolean(), fc.boolean()), { minLength: 1 }), (rows) => {
      const share = (f: (row: [boolean, boolean]) => boolean): number => rows.filter(f).length / rows.length;
      const bounds = jointShare(
        share(([a]) => a),
        share(([, b]) => b),
      );
      const joint = share(([a, b]) => a && b);
      expect(joint).toBeGreaterThanOrEqual(bounds.low - 1e-12);
      expect(joint).toBeLessThanOrEqual(bounds.high + 1e-12);
    }),
  );
});
