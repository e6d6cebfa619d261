import fc from 'fast-check';
import { build } from 'hdr-histogram-js';
import { describe, expect, test } from 'vitest';
import { keyed } from '../base/random.ts';
import { LogSketch } from './sketch.ts';

const exact = (values: readonly number[], p: number): number => {
  const s = Float64Array.from(values).sort();
  const h = (s.length - 1) * p;
  const lo = Math.floor(h);
  const hi = Math.min(lo + 1, s.length - 1);
  return s[hi] === s[lo] || h === lo ? s[lo]! : s[lo]! + (h - lo) * (s[hi]! - s[lo]!);
};
const sketchOf = (values: readonly number[], options = {}): LogSketch => {
  const s = new LogSketch(options);
  for (const v of values) s.add(v);
  return s;
};
const withoutSum = (s: LogSketch): object => ({ ...s.toJSON(), sum: 0 });
const value = fc.oneof(
  fc.constant(0),
  fc.double({ min: 1e-6, max: 1e7, noNaN: true }),
  fc.integer({ min: 0, max: 50 }),
);
const values = fc.array(value, { minLength: 1, maxLength: 200 });

describe('LogSketch', () => {
  test('a quantile is within the stated error of the exact type-7 quantile', () => {
    fc.assert(
      fc.property(
        values,
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.constantFrom(0.001, 0.005, 0.05),
        (xs, p, accuracy) => {
          const got = sketchOf(xs, { accuracy, maxBuckets: 1 << 16 }).quantile(p)!;
          const want = exact(xs, p);
          expect(Math.abs(got - want)).toBeLessThanOrEqual((accuracy + 1e-9) * want + 1e-300);
        },
      ),
      { numRuns: 500 },
    );
  });

  test('merged shards equal one sketch of everything, collapse included', () => {
    fc.assert(
      fc.property(values, values, fc.constantFrom(4, 64, 4096), (a, b, maxBuckets) => {
        const merged = sketchOf(a, { maxBuckets });
        merged.merge(sketchOf(b, { maxBuckets }));
        const whole = sketchOf([...a, ...b], { maxBuckets });
        expect(withoutSum(merged)).toEqual(withoutSum(whole));
        expect(merged.count).toBe(whole.count);
        expect(Math.abs(merged.sum - whole.sum)).toBeLessThanOrEqual(1e-12 * whole.sum);
        expect(merged.collapsed).toBe(whole.collapsed);
      }),
    );
  });

  test('the order of adding does not matter, and the store stays bounded', () => {
    fc.assert(
      fc.property(values, (xs) => {
        const up = sketchOf(
          [...xs].sort((a, b) => a - b),
          { maxBuckets: 32 },
        );
        const down = sketchOf(
          [...xs].sort((a, b) => b - a),
          { maxBuckets: 32 },
        );
        expect(withoutSum(up)).toEqual(withoutSum(down));
        expect(up.toJSON().counts.length).toBeLessThanOrEqual(32);
        let total = 0;
        for (const bucket of up.buckets()) total += bucket.count;
        expect(total).toBe(xs.length);
      }),
    );
  });

  test('collapsed, the upper quantiles keep their error', () => {
    const xs = Array.from({ length: 1000 }, (_, i) => 1.02 ** i);
    const s = sketchOf(xs, { maxBuckets: 400 });
    expect(s.collapsed).toBe(true);
    for (const p of [0.85, 0.9, 0.99, 1])
      expect(Math.abs(s.quantile(p)! / exact(xs, p) - 1)).toBeLessThanOrEqual(0.005);
    expect(s.min).toBe(1);
  });

  test('count, sum, extremes and mean are exact; +∞ ranks last', () => {
    const s = sketchOf([0, 0.1, 0.2, 0.3, 1000]);
    expect([s.count, s.min, s.max]).toEqual([5, 0, 1000]);
    expect(s.sum).toBe(1000.6);
    expect(s.mean).toBe(1000.6 / 5);
    s.add(Number.POSITIVE_INFINITY, 5);
    expect([s.count, s.infinite, s.mean]).toEqual([10, 5, Number.POSITIVE_INFINITY]);
    expect(s.quantile(0.99)).toBe(Number.POSITIVE_INFINITY);
    expect(s.quantile(4.5 / 9)).toBe(Number.POSITIVE_INFINITY); // between rank 4 and rank 5: touches +∞
    expect(s.quantile(4 / 9)).toBe(1000);
  });

  test('empty: nothing is defined', () => {
    const s = new LogSketch();
    expect([s.quantile(0.5), s.min, s.max, s.mean, s.shareAtMost(1)]).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
    expect(s.collapsed).toBe(false);
  });

  test('the share at most x is bounded from both sides', () => {
    fc.assert(
      fc.property(values, value, fc.constantFrom(8, 4096), (xs, x, maxBuckets) => {
        const { low, high } = sketchOf(xs, { maxBuckets }).shareAtMost(x)!;
        const truth = xs.filter((v) => v <= x).length / xs.length;
        expect(low).toBeLessThanOrEqual(truth);
        expect(high).toBeGreaterThanOrEqual(truth);
      }),
    );
  });

  test('survives JSON, and damaged data is refused', () => {
    fc.assert(
      fc.property(values, (xs) => {
        const s = sketchOf([...xs, Number.POSITIVE_INFINITY]);
        const back = LogSketch.from(JSON.parse(JSON.stringify(s)));
        expect(back.toJSON()).toEqual(s.toJSON());
        expect(back.quantile(0.7)).toBe(s.quantile(0.7));
      }),
    );
    const data = sketchOf([1, 2, 3]).toJSON();
    expect(() => LogSketch.from({ ...data, version: 2 as 1 })).toThrow(/version 2/);
    expect(() => LogSketch.from({ ...data, counts: [-1] })).toThrow(/counts\[0\] is not a count/);
    expect(() => LogSketch.from({ ...data, maxFinite: 99 })).toThrow(/highest bucket/);
    expect(() => LogSketch.from({ ...data, minPositive: null })).toThrow(/extremes/);
  });

  test('refuses what is no duration, and unequal sketches', () => {
    expect(() => new LogSketch().add(-1)).toThrow(/-1/);
    expect(() => new LogSketch().add(Number.NaN)).toThrow(/NaN/);
    expect(() => new LogSketch().merge(new LogSketch({ accuracy: 0.01 }))).toThrow(/same options/);
    expect(() => new LogSketch({ accuracy: 0 })).toThrow(/accuracy/);
  });

  test('a sketch merged into itself doubles', () => {
    const s = sketchOf([1, 2, 3]);
    s.merge(s);
    expect([s.count, s.sum, s.quantile(0.5)]).toEqual([6, 12, sketchOf([1, 1, 2, 2, 3, 3]).quantile(0.5)]);
  });

  test('agrees with an HDR histogram of three digits', () => {
    const u = keyed(7, 'sketch');
    const hdr = build({ lowestDiscernibleValue: 1, highestTrackableValue: 1e9, numberOfSignificantValueDigits: 3 });
    const s = new LogSketch();
    for (let i = 0; i < 50_000; i++) {
      const x = Math.ceil(Math.exp(10 + 2 * Math.sqrt(-2 * Math.log(1 - u())) * Math.cos(2 * Math.PI * u())));
      s.add(x);
      hdr.recordValue(x);
    }
    for (const p of [1, 10, 50, 90, 99, 99.9]) {
      expect(Math.abs(s.quantile(p / 100)! / hdr.getValueAtPercentile(p) - 1)).toBeLessThan(0.008);
    }
  });
});
