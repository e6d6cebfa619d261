import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { keyed } from '../base/random.ts';
import { conditioning, Normal, nonNegative } from './least-squares.ts';

describe('nonNegative', () => {
  it('finds coefficients that made the data', () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: 0, max: 10, noNaN: true }), { minLength: 1, maxLength: 6 }),
        fc.nat(1000),
        (truth, seed) => {
          const normal = new Normal(truth.length);
          const u = keyed(seed, 'rows');
          for (let r = 0; r < 60; r++) {
            const x = truth.map(() => u());
            normal.add(
              x,
              x.reduce((sum, v, i) => sum + v * truth[i]!, 0),
              1,
            );
          }
          const fit = nonNegative(normal);
          truth.forEach((c, i) => {
            expect(fit[i]).toBeCloseTo(c, 4);
          });
        },
      ),
      { numRuns: 50 },
    );
  });

  it('holds the conditions of a minimum under the bound', () => {
    fc.assert(
      fc.property(fc.nat(10_000), fc.integer({ min: 2, max: 6 }), (seed, n) => {
        const normal = new Normal(n);
        const u = keyed(seed, 'rows');
        for (let r = 0; r < 40; r++) {
          normal.add(
            Array.from({ length: n }, () => u() - 0.3),
            u() - 0.5,
            0.5 + u(),
          );
        }
        const x = nonNegative(normal);
        for (let i = 0; i < n; i++) {
          let g = normal.rhs[i]!;
          for (let j = 0; j < n; j++) g -= normal.gram[i * n + j]! * x[j]!;
          expect(x[i]).toBeGreaterThanOrEqual(0);
          // Descent is possible nowhere: the gradient is 0 inside, and points outward on the bound.
          if (x[i]! > 0) expect(Math.abs(g)).toBeLessThan(1e-6);
          else expect(g).toBeLessThan(1e-6);
        }
      }),
      { numRuns: 100 },
    );
  });
});

describe('conditioning', () => {
  it('is 1 for orthogonal columns and names the collinear ones', () => {
    const straight = new Normal(3);
    straight.add([1, 0, 0], 0, 1);
    straight.add([0, 7, 0], 0, 1);
    straight.add([0, 0, 3], 0, 1);
    expect(conditioning(straight, [true, true, true]).number).toBeCloseTo(1, 9);

    const twins = new Normal(3);
    for (let i = 1; i <= 20; i++) twins.add([i, 500 * i + (i % 2) * 1e-3, i % 3], 0, 1);
    const { number, weakest } = conditioning(twins, [true, true, true]);
    expect(number).toBeGreaterThan(1e4);
    expect(Math.abs(weakest[0]!)).toBeCloseTo(Math.SQRT1_2, 3);
    expect(Math.abs(weakest[1]!)).toBeCloseTo(Math.SQRT1_2, 3);
    expect(Math.abs(weakest[2]!)).toBeLessThan(0.01);
  });
});
