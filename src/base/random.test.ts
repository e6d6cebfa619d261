import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { keyed, keyedSource } from './random.ts';

describe('keyed randomness', () => {
  it('gives the streams it always gave', () => {
    // Recorded before keyedSource was added: stored runs are compared by seed, so these may never change.
    const u = keyed(1, 'arrival', 0);
    expect([u(), u(), u()]).toEqual([0.6651833907971674, 0.7767038722180724, 0.40806106519711305]);
  });

  it('keyedSource gives the same streams, in any order, also beyond 32 bits', () => {
    fc.assert(
      fc.property(
        fc.maxSafeNat(),
        fc.string({ maxLength: 12 }),
        fc.array(fc.maxSafeNat(), { minLength: 1, maxLength: 8 }),
        (seed, purpose, operations) => {
          const source = keyedSource(seed, purpose);
          for (const operation of operations) {
            const one = keyed(seed, purpose, operation);
            const other = source(operation);
            for (let i = 0; i < 5; i++) expect(other()).toBe(one());
          }
        },
      ),
    );
  });

  it('is uniform over operations and independent over purposes', () => {
    const n = 20_000;
    const a = keyedSource(3, 'a');
    const b = keyedSource(3, 'b');
    let sum = 0;
    let product = 0;
    for (let k = 0; k < n; k++) {
      const x = a(k)() - 0.5;
      sum += x;
      product += x * (b(k)() - 0.5);
    }
    expect(Math.abs(sum / n)).toBeLessThan(5 * Math.sqrt(1 / 12 / n));
    expect(Math.abs(product / n)).toBeLessThan(5 * (1 / 12 / Math.sqrt(n)));
  });
});
