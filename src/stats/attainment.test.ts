import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { keyed, type Uniform } from '../base/random.ts';
import { attainmentInterval, latentAutocorrelationTime } from './attainment.ts';
import { autocorrelations, autocorrelationTime, firstOrderTime, uniformRanks } from './autocorrelation.ts';
import { wilson } from './binomial.ts';

const INF = Number.POSITIVE_INFINITY;

/** A first-order autoregression of correlation r: its autocorrelation time is (1 + r)/(1 − r). */
function autoregression(n: number, r: number, u: Uniform): Float64Array {
  const x = new Float64Array(n);
  let last = 0;
  for (let i = -200; i < n; i++) {
    const normal = Math.sqrt(-2 * Math.log(1 - u())) * Math.cos(2 * Math.PI * u());
    last = r * last + Math.sqrt(1 - r * r) * normal;
    if (i >= 0) x[i] = last;
  }
  return x;
}

/** Waits of a single-server queue in steady state: service rate 1, arrival rate `rho`. */
function waits(n: number, rho: number, u: Uniform): Float64Array {
  const exponential = (): number => -Math.log(1 - u());
  let wait = u() < 1 - rho ? 0 : exponential() / (1 - rho);
  return Float64Array.from({ length: n }, () => {
    const now = wait;
    wait = Math.max(0, wait + exponential() - exponential() / rho);
    return now;
  });
}

describe('autocorrelation time', () => {
  test.each([
    [0, 1],
    [0.5, 3],
    [0.9, 19],
  ])('of a first-order autoregression with r = %d is near %d', (r, want) => {
    const x = autoregression(60_000, r, keyed(3, 'ar'));
    expect(autocorrelationTime(x)! / want).toBeGreaterThan(0.85);
    expect(autocorrelationTime(x)! / want).toBeLessThan(1.2);
    expect(firstOrderTime(x)! / want).toBeGreaterThan(0.9);
    expect(firstOrderTime(x)! / want).toBeLessThan(1.1);
    expect(autocorrelations(x, 2)[1]).toBeCloseTo(r, 1);
  });

  test('a constant series has none; a drifting one is worth next to nothing', () => {
    expect(autocorrelationTime(new Float64Array(100).fill(0.1))).toBeUndefined();
    expect(firstOrderTime([1, 1, 1, 1, 1])).toBeUndefined();
    expect(autocorrelationTime(Float64Array.from({ length: 1000 }, (_, i) => i))!).toBeGreaterThan(200);
    expect(autocorrelationTime([1, 2])).toBeUndefined();
  });

  test('ranks: ties in the middle, +∞ last', () => {
    expect([...uniformRanks([INF, 5, 5, 1, INF])]).toEqual([0.8, 0.4, 0.4, 0.1, 0.8]);
  });
});

describe('attainment interval', () => {
  const outcomes = (n: number, p: number, u: Uniform): Uint8Array =>
    Uint8Array.from({ length: n }, () => (u() < p ? 1 : 0));

  test('holds its value, lies in [0, 1], and is no narrower than if all were independent', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.tuple(fc.constantFrom(0, 1, 1, 2), fc.oneof(fc.double({ min: 0, max: 9, noNaN: true }), fc.constant(INF))),
          {
            minLength: 1,
            maxLength: 300,
          },
        ),
        fc.boolean(),
        (rows, withLatent) => {
          const got = attainmentInterval(
            rows.map(([x]) => x),
            withLatent ? rows.map(([, y]) => y) : undefined,
          )!;
          expect(got.low).toBeGreaterThanOrEqual(0);
          expect(got.high).toBeLessThanOrEqual(1);
          expect(got.low).toBeLessThanOrEqual(got.value);
          expect(got.high).toBeGreaterThanOrEqual(got.valueHigh);
          expect(got.effectiveN).toBeGreaterThanOrEqual(1);
          expect(got.effectiveN).toBeLessThanOrEqual(rows.length);
          const naive = wilson(got.value, rows.length);
          expect(got.low).toBeLessThanOrEqual(naive.low + 1e-9);
        },
      ),
    );
  });

  test('undecided operations widen it to the pair', () => {
    const got = attainmentInterval([1, 1, 0, 2, 1, 1, 2, 1, 1, 1])!;
    expect([got.value, got.valueHigh]).toEqual([0.7, 0.9]);
    expect(got.low).toBeLessThan(0.7);
    expect(got.high).toBeGreaterThan(0.9);
  });

  test('all good is not certainty: without a latent series √n batches, with one its memory', () => {
    const good = new Uint8Array(2500).fill(1);
    const bare = attainmentInterval(good)!;
    expect(bare).toMatchObject({ value: 1, high: 1, effectiveN: 50, method: 'conservative-batches' });
    expect(bare.low).toBeGreaterThan(0.9);
    expect(bare.low).toBeLessThan(0.93);
    expect(bare.note).toMatch(/too few misses/);
    const queue = attainmentInterval(good, waits(2500, 0.9, keyed(1, 'good')))!;
    expect(queue.effectiveN).toBeLessThan(100);
    expect(queue.low).toBeLessThan(0.96);
    const independent = attainmentInterval(good, Float64Array.from({ length: 2500 }, keyed(2, 'good')))!;
    expect(independent.effectiveN).toBeGreaterThan(1200);
    expect(independent.low).toBeGreaterThan(0.995);
  });

  test('independent outcomes give about the binomial interval', () => {
    const u = keyed(4, 'independent');
    const latent = Float64Array.from({ length: 4000 }, u);
    const got = attainmentInterval(
      latent.map((x) => (x < 0.9 ? 1 : 0)),
      latent,
    )!;
    const naive = wilson(got.value, 4000);
    expect((got.high - got.low) / (naive.high - naive.low)).toBeLessThan(1.3);
    expect(got.note).toBeUndefined();
  });

  test('a drifting run is worth a few operations, and the note says to measure longer', () => {
    const latent = Float64Array.from({ length: 1000 }, (_, i) => i);
    const got = attainmentInterval(
      latent.map((x) => (x < 700 ? 1 : 0)),
      latent,
    )!;
    expect(got.effectiveN).toBeLessThan(5);
    expect(got.high - got.low).toBeGreaterThan(0.7);
    expect(got.note).toMatch(/repeat with other seeds/);
  });

  test('no operations, no interval; one operation, hardly any', () => {
    expect(attainmentInterval([])).toBeUndefined();
    expect(attainmentInterval([1])!.low).toBeLessThan(0.05);
    expect(attainmentInterval(outcomes(50, 0.5, keyed(1, 'few')), [1, 2, 3])!.method).not.toBe(
      'latent-autocorrelation',
    );
  });

  test('covers the truth on a queue at 70 % where the binomial interval does not', () => {
    const u = keyed(5, 'coverage');
    const [rho, p] = [0.7, 0.8];
    const limit = -Math.log((1 - p) / rho) / (1 - rho);
    let covered = 0;
    let naively = 0;
    for (let run = 0; run < 100; run++) {
      const latent = waits(1000, rho, u);
      const good = Uint8Array.from(latent, (w) => (w <= limit ? 1 : 0));
      const got = attainmentInterval(good, latent)!;
      const naive = wilson(got.value, 1000);
      if (got.low <= p && p <= got.high) covered++;
      if (naive.low <= p && p <= naive.high) naively++;
    }
    expect(covered).toBeGreaterThanOrEqual(85);
    expect(naively).toBeLessThan(50);
  });

  test('takes a known autocorrelation time for the series', () => {
    const latent = waits(2000, 0.7, keyed(9, 'known'));
    const good = Uint8Array.from(latent, (w) => (w <= 4 ? 1 : 0));
    const time = latentAutocorrelationTime(latent)!;
    expect(attainmentInterval(good, undefined, 0.95, time)).toEqual(attainmentInterval(good, latent));
    expect(attainmentInterval(good, undefined, 0.95, 4 * time)!.low).toBeLessThan(
      attainmentInterval(good, latent)!.low,
    );
  });

  test('bounded work: a drifting million', () => {
    const latent = Float64Array.from({ length: 1_000_000 }, (_, i) => (i % 3000) ^ (i >> 4));
    expect(attainmentInterval(new Uint8Array(1_000_000).fill(1), latent)!.effectiveN).toBeGreaterThanOrEqual(1);
  });
});
