import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { incompleteBeta, inverseIncompleteBeta } from './beta.ts';
import { binomialCdf, clopperPearson, wilson } from './binomial.ts';
import { chiSquareCdf, gammaP, gammaQ, logGamma } from './gamma.ts';
import { normalCdf, normalQuantile, studentCdf, studentQuantile } from './normal.ts';

/** Equal to `digits` significant digits. */
function near(got: number, want: number, digits = 11): void {
  expect(Math.abs(got - want), `${got} against ${want}`).toBeLessThanOrEqual(10 ** -digits * Math.abs(want));
}

// Reference values to 16 digits by arbitrary-precision arithmetic (mpmath at 30 digits); t, χ² and intervals by SciPy.
describe('gamma', () => {
  test.each([
    [0.1, 2.252712651734206],
    [0.5, 0.5723649429247001],
    [2.5, 0.2846828704729192],
    [10, 12.80182748008147],
    [123.456, 469.6055471299295],
    [1e6, 12815504.56914761],
  ])('ln Γ(%d)', (x, want) => near(logGamma(x), want, 13));

  test.each([
    [0.5, 0.2, 0.4729107431344619, 0.5270892568655381],
    [3, 2, 0.3233235838169365, 0.6766764161830635],
    [10, 20, 0.9950045876916924, 0.004995412308307587],
    [100, 90, 0.1582209891864302, 0.8417790108135698],
    [2.5, 40, 0.9999999999999992, 8.39182511483161e-16],
  ])('P and Q(%d, %d)', (a, x, p, q) => {
    near(gammaP(a, x), p);
    near(gammaQ(a, x), q);
  });

  test('edges', () => {
    expect([gammaP(2, 0), gammaQ(2, 0), gammaP(2, Number.POSITIVE_INFINITY)]).toEqual([0, 1, 1]);
    expect([logGamma(0), gammaP(0, 1), gammaP(1, -1)]).toEqual([Number.NaN, Number.NaN, Number.NaN]);
  });

  test.each([
    [3.841458820694124, 1, 0.95],
    [10, 5, 0.92476475385349],
    [80, 100, 0.070335066659395],
  ])('χ² cdf of %d, %d', (x, df, want) => near(chiSquareCdf(x, df), want));
});

describe('beta', () => {
  test.each([
    [0.5, 2, 3, 0.6875],
    [0.1, 0.5, 5, 0.6833570849799878],
    [0.9, 30, 4, 0.576943664125693],
    [0.02, 1, 100, 0.8673804441052468],
    [0.3, 200, 450.5, 0.3435058089916861],
  ])('I(%d; %d, %d)', (x, a, b, want) => near(incompleteBeta(x, a, b), want));

  test('the inverse inverts', () => {
    const parameter = fc.oneof(
      fc.double({ min: 0.3, max: 5, noNaN: true }),
      fc.double({ min: 5, max: 5000, noNaN: true }),
    );
    fc.assert(
      fc.property(fc.double({ min: 1e-6, max: 1 - 1e-6, noNaN: true }), parameter, parameter, (p, a, b) => {
        const x = inverseIncompleteBeta(p, a, b);
        // Near 1 a float64 x cannot carry p any better than its own spacing times the density.
        const slack = Math.abs(
          incompleteBeta(Math.min(1, x + 2e-16), a, b) - incompleteBeta(Math.max(0, x - 2e-16), a, b),
        );
        expect(Math.abs(incompleteBeta(x, a, b) - p)).toBeLessThanOrEqual(1e-9 * p + 2 * slack);
      }),
      { numRuns: 500 },
    );
  });

  test('the inverse is as near as a float64 can be where the density has no bound', () => {
    const [p, a, b] = [0.9999983670643308, 1.8061762775813859, 0.37989385069328346];
    const x = inverseIncompleteBeta(p, a, b);
    const ulp = Number.EPSILON / 2;
    const spacing = incompleteBeta(x + ulp, a, b) - incompleteBeta(x - ulp, a, b);
    expect(Math.abs(incompleteBeta(x, a, b) - p)).toBeLessThanOrEqual(spacing);
  });

  test('edges', () => {
    expect([
      incompleteBeta(0, 2, 3),
      incompleteBeta(1, 2, 3),
      inverseIncompleteBeta(0, 2, 3),
      inverseIncompleteBeta(1, 2, 3),
    ]).toEqual([0, 1, 0, 1]);
    expect(incompleteBeta(0.5, 0, 1)).toBeNaN();
  });
});

describe('normal and Student', () => {
  test.each([
    [-8, 6.22096057427174e-16],
    [-3, 0.00134989803163009],
    [-1, 0.158655253931457],
    [0, 0.5],
    [0.5, 0.691462461274013],
    [2.5, 0.993790334674224],
  ])('Φ(%d)', (z, want) => near(normalCdf(z), want, 12));

  test.each([
    [1e-10, -6.361340902404056],
    [0.001, -3.090232306167813],
    [0.02, -2.053748910631823],
    [0.1, -1.2815515655446],
    [0.5, 0],
    [0.975, 1.959963984540054],
    [0.9999, 3.719016485455709],
  ])('Φ⁻¹(%d)', (p, want) => near(normalQuantile(p), want, 12));

  test.each([
    [0.975, 1, 12.7062047362],
    [0.975, 2, 4.30265272975],
    [0.975, 5, 2.57058183564],
    [0.975, 10, 2.22813885199],
    [0.995, 30, 2.74999565357],
    [0.6, 4, 0.270722294708],
    [0.9, 2.5, 1.73025092881],
    [0.001, 3, -10.2145318524],
    [0.95, 1000, 1.64637881729],
  ])('t quantile at %d with %d degrees', (p, df, want) => near(studentQuantile(p, df), want));

  test.each([
    [0.3, 3, 0.60811835398],
    [2, 7, 0.957190335719],
    [-4, 2.5, 0.0195064879207],
    [1.5, 200, 0.932404339386],
  ])('t cdf of %d with %d degrees', (t, df, want) => near(studentCdf(t, df), want, 11));

  test('t quantile and cdf are inverse; infinitely many degrees are the normal', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 1e-4, max: 1 - 1e-4, noNaN: true }),
        fc.double({ min: 0.5, max: 1e4, noNaN: true }),
        (p, df) => {
          expect(Math.abs(studentCdf(studentQuantile(p, df), df) - p)).toBeLessThanOrEqual(1e-10);
        },
      ),
    );
    expect(studentQuantile(0.975, Number.POSITIVE_INFINITY)).toBe(normalQuantile(0.975));
    expect([normalQuantile(0), normalQuantile(1), studentQuantile(0, 3)]).toEqual([
      Number.NEGATIVE_INFINITY,
      Number.POSITIVE_INFINITY,
      Number.NEGATIVE_INFINITY,
    ]);
  });
});

describe('binomial', () => {
  test.each([
    [3, 10, 0.3, 0.6496107184],
    [90, 100, 0.95, 0.028188294163416],
    [39, 40, 0.99, 0.33102824143032],
    [4990, 5000, 0.998, 0.54219553757246],
  ])('P(X ≤ %d) of %d', (k, n, p, want) => near(binomialCdf(k, n, p), want, 10));

  test.each([
    [0, 20, 0, 0.16843347098308548, 0, 0.16112515805281935],
    [9, 10, 0.5549838829718047, 0.9974714214555375, 0.5958499732047615, 0.9821237869049271],
    [80, 100, 0.7081573109113719, 0.873344447898044, 0.711170834406841, 0.8666330666689674],
    [20, 20, 0.8315665290169145, 1, 0.8388748419471808, 1],
    [1797, 2000, 0.8844253027040637, 0.9113935731693774, 0.8844916613108397, 0.910980452006002],
  ])('intervals of %d in %d', (k, n, exactLow, exactHigh, scoreLow, scoreHigh) => {
    const exact = clopperPearson(k, n);
    const score = wilson(k / n, n);
    near(exact.low, exactLow, 10);
    near(exact.high, exactHigh, 10);
    near(score.low, scoreLow, 10);
    near(score.high, scoreHigh, 10);
  });

  test('an interval holds its estimate and stays in [0, 1]', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1e6 }), fc.double({ min: 0, max: 1, noNaN: true }), (n, u) => {
        const k = Math.round(u * n);
        for (const { low, high } of [clopperPearson(k, n), wilson(k / n, n), wilson(k / n, Math.sqrt(n))]) {
          expect(low).toBeGreaterThanOrEqual(0);
          expect(low).toBeLessThanOrEqual(k / n);
          expect(high).toBeGreaterThanOrEqual(k / n);
          expect(high).toBeLessThanOrEqual(1);
        }
      }),
    );
    expect(wilson(0.5, 0)).toEqual({ low: 0, high: 1 });
  });
});
