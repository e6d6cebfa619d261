import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { bootstrapReplications, replicationInterval, shareFromReplications, splitLevel } from './replications.ts';

describe('replications', () => {
  test('Student: means 1, 2, 3, 4, 5 give 3 ± 2.776445 · √0.5', () => {
    const got = replicationInterval([1, 2, 3, 4, 5]);
    expect(got).toMatchObject({ value: 3, runs: 5, method: 't', level: 0.95 });
    expect(got.high - 3).toBeCloseTo(2.7764451052 * Math.SQRT1_2, 8);
    expect(3 - got.low).toBeCloseTo(2.7764451052 * Math.SQRT1_2, 8);
    expect(got.spread).toBeCloseTo(Math.sqrt(2.5), 12);
  });

  test('points share the error', () => {
    expect(splitLevel(0.95, 5)).toBeCloseTo(0.99, 12);
    expect(splitLevel(0.95, 0)).toBe(0.95);
    const one = replicationInterval([1, 2, 3]);
    const many = replicationInterval([1, 2, 3], { points: 4 });
    expect(many.level).toBeCloseTo(0.9875, 12);
    expect(many.high).toBeGreaterThan(one.high);
  });

  test('runs that agree by luck do not make the interval empty', () => {
    expect(shareFromReplications([1, 1, 1, 1, 1])).toMatchObject({ value: 1, high: 1, method: 'score' });
    expect(shareFromReplications([1, 1, 1, 1, 1]).low).toBeLessThan(0.6);
    const known = shareFromReplications([1, 1, 1, 1, 1], { effectiveN: 500 });
    expect(known.low).toBeGreaterThan(0.99);
    expect(known.low).toBeLessThan(0.995);
  });

  test('never narrower than the score interval on the effective operations', () => {
    const lucky = shareFromReplications([1, 1, 0.999], { effectiveN: 40 });
    expect(lucky.method).toBe('t-and-score');
    expect(lucky.low).toBeLessThan(0.93);
  });

  test('a share stays in [0, 1] and in its interval', () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 2, maxLength: 12 }),
        fc.boolean(),
        (xs, known) => {
          const got = shareFromReplications(xs, known ? { effectiveN: 30 } : {});
          expect(got.low).toBeGreaterThanOrEqual(0);
          expect(got.high).toBeLessThanOrEqual(1);
          expect(got.low).toBeLessThanOrEqual(got.value);
          expect(got.high).toBeGreaterThanOrEqual(got.value - 1e-12);
        },
      ),
    );
  });

  test('the bootstrap is seeded, and lies within the extremes', () => {
    const xs = [0.9, 0.92, 0.87, 0.95, 0.91];
    const got = bootstrapReplications(xs, 1);
    expect(bootstrapReplications(xs, 1)).toEqual(got);
    expect(bootstrapReplications(xs, 2)).not.toEqual(got);
    expect(got.low).toBeGreaterThanOrEqual(0.87);
    expect(got.high).toBeLessThanOrEqual(0.95);
    expect(got.low).toBeLessThan(got.value);
  });

  test('one run has no spread', () => {
    expect(() => replicationInterval([1])).toThrow(/1 run has no spread/);
    expect(() => bootstrapReplications([], 1)).toThrow(/0 run/);
  });
});
