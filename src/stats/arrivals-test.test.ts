import { describe, expect, test } from 'vitest';
import { keyed, type Uniform } from '../base/random.ts';
import {
  chiSquareQuantile,
  countTest,
  dispersion,
  interArrivalTest,
  kolmogorovSmirnov,
  type PlannedArrivals,
  squaredVariation,
} from './arrivals-test.ts';

const poisson: PlannedArrivals = { process: 'poisson' };
const constant: PlannedArrivals = { process: 'constant' };
const exponential = (u: Uniform): number => -Math.log(1 - u());
/** Arrivals whose gap is the mean of k exponentials: gamma of shape k at rate 1. */
const arrivals = (n: number, k: number, u: Uniform): Float64Array => {
  let t = 0;
  return Float64Array.from({ length: n }, () => {
    for (let i = 0; i < k; i++) t += exponential(u) / k;
    return t;
  });
};

describe('counts', () => {
  test('z by the variation of the process', () => {
    expect(countTest(120, 10, 10, poisson)).toMatchObject({ expected: 100, z: 2 });
    expect(countTest(120, 10, 10, poisson).p).toBeCloseTo(0.0455002639, 9);
    expect(countTest(120, 10, 10, { process: 'gamma', shape: 0.25 }).z).toBe(1);
    expect(squaredVariation({ process: 'gamma', shape: 4 })).toBe(0.25);
  });

  test('a constant process may be off by one', () => {
    expect(countTest(101, 10, 10, constant).p).toBe(1);
    expect(countTest(98, 10, 10, constant).p).toBe(0);
    expect(() => countTest(0, 0, 10, poisson)).toThrow(/expects no arrival/);
  });
});

describe('dispersion', () => {
  test('chi-square quantiles, as tabled', () => {
    expect(chiSquareQuantile(0.025, 9)).toBeCloseTo(2.7003895, 6);
    expect(chiSquareQuantile(0.975, 9)).toBeCloseTo(19.0227678, 6);
  });

  test('by hand: counts 1, 3, 2 have index 0.5', () => {
    const got = dispersion([0.5, 1.1, 1.2, 1.3, 2.1, 2.9], 0, 3, 3)!;
    expect(got).toMatchObject({ index: 0.5, windows: 3, meanCount: 2 });
    expect(got.low).toBeCloseTo(1 / chiSquareQuantile(0.975, 2), 10);
  });

  test('Poisson covers 1, regular lies below, bursty above', () => {
    const u = keyed(1, 'dispersion');
    let covered = 0;
    for (let run = 0; run < 200; run++) {
      const { low, high } = dispersion(arrivals(1000, 1, u), 0, 900, 90)!;
      if (low <= 1 && 1 <= high) covered++;
    }
    expect(covered).toBeGreaterThanOrEqual(180);
    expect(covered).toBeLessThan(200);
    const even = dispersion(
      Float64Array.from({ length: 900 }, (_, i) => i),
      0,
      900,
      90,
    )!;
    expect(even.index).toBe(0);
    expect(even.pPoisson).toBeLessThan(1e-9);
    const bursty = dispersion(
      Float64Array.from({ length: 900 }, (_, i) => 100 * Math.floor(i / 100)),
      0,
      900,
      90,
    )!;
    expect(bursty.low).toBeGreaterThan(10);
  });

  test('nothing to say of no arrivals or one window', () => {
    expect(dispersion([], 0, 10, 5)).toBeUndefined();
    expect(dispersion([1, 2], 0, 10, 1)).toBeUndefined();
    expect(() => dispersion([1], 5, 5, 2)).toThrow(/empty/);
  });
});

describe('inter-arrivals', () => {
  test('Kolmogorov–Smirnov on ten values: SciPy gives D = 0.1065696597, p = 0.99896', () => {
    const xs = [0.1, 0.4, 0.7, 1.2, 2.5, 0.05, 0.9, 0.33, 0.61, 1.9].sort((a, b) => a - b);
    const got = kolmogorovSmirnov(xs, (x) => 1 - Math.exp(-x));
    expect(got.distance).toBeCloseTo(0.1065696597, 9);
    expect(got.p).toBeCloseTo(0.99896, 2);
  });

  test('p-values of known distances: exact 0.158663 at n = 500, 0.157969 at n = 30', () => {
    const at = (distance: number, n: number): number =>
      kolmogorovSmirnov(
        Float64Array.from({ length: n }, (_, i) => (i + 0.5) / n),
        (x) => Math.min(1, Math.max(0, x - (distance - 0.5 / n))),
      ).p;
    expect(at(0.05, 500)).toBeCloseTo(0.158663, 2);
    expect(at(0.2, 30)).toBeCloseTo(0.157969, 2);
  });

  test('the planned process passes about as often as it should, another does not', () => {
    const u = keyed(2, 'ks');
    let rejected = 0;
    for (let run = 0; run < 300; run++) if (interArrivalTest(arrivals(300, 1, u), 1, poisson)!.p < 0.05) rejected++;
    expect(rejected).toBeLessThanOrEqual(27); // 15 expected; three standard errors are 11
    expect(rejected).toBeGreaterThanOrEqual(4);
    expect(interArrivalTest(arrivals(2000, 3, u), 1, { process: 'gamma', shape: 3 })!.p).toBeGreaterThan(0.01);
    expect(interArrivalTest(arrivals(2000, 3, u), 1, poisson)!.p).toBeLessThan(1e-6);
    expect(interArrivalTest(arrivals(2000, 1, u), 1.2, poisson)!.p).toBeLessThan(1e-3);
  });

  test('a constant process is exact or not', () => {
    const even = Float64Array.from({ length: 100 }, (_, i) => i / 10);
    expect(interArrivalTest(even, 10, constant)).toEqual({ distance: 0, p: 1, n: 99 });
    even[50]! += 0.05;
    expect(interArrivalTest(even, 10, constant)).toEqual({ distance: 2 / 99, p: 0, n: 99 });
    expect(interArrivalTest([1], 10, constant)).toBeUndefined();
  });
});
