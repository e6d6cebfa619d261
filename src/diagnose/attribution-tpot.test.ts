import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { attributeTpot, TPOT_PARTS } from './attribution-tpot.ts';
import { measuresOf } from './measures.ts';
import type { RequestRow, Side } from './side.ts';
import { readTold } from './told.ts';

const wave = (i: number): number => 1 + 0.1 * Math.sin(i * 12.9898);

interface Shape {
  readonly step: number;
  /** Time a request's longer gaps took, ms. */
  readonly prefill?: number;
  readonly joint?: number;
  readonly alone?: number;
  readonly running?: number;
  readonly tokensPerStep?: number;
  readonly preemptions?: number;
}

const TOKENS = 101;

/** Requests whose later tokens take `step` each, and whose longer gaps took what they are told to. */
function side({ step, prefill = 0, joint = 0, alone = 0, ...figures }: Shape, n = 300): Side {
  const told: Record<string, number> = {};
  if (figures.running !== undefined) told.running = figures.running;
  if (figures.tokensPerStep !== undefined) told.acceptance_length = figures.tokensPerStep;
  if (figures.preemptions !== undefined) told.preemptions = figures.preemptions;
  return {
    name: 'x',
    notes: [],
    told: readTold({ figures: told }, 'x'),
    requests: {
      rows: Array.from({ length: n }, (_, i): RequestRow => {
        const own = step * wave(i);
        const paused = prefill + joint + alone;
        return {
          at: i * 100,
          class: 'c',
          ok: true,
          attempts: 1,
          ttft: 100,
          tpot: own + paused / (TOKENS - 1),
          middle: own,
          step: own,
          steps: TOKENS - 1,
          latency: 100 + own * (TOKENS - 1) + paused,
          output: TOKENS,
          chunks: TOKENS,
          bunched: 0,
          ...(paused > 0 && { paused: { prefill, joint, alone } }),
        };
      }),
      stalls: [],
      span: n / 10,
      dropped: 0,
    },
  };
}

const split = (a: Side, b: Side) => attributeTpot(a, b, measuresOf(a), measuresOf(b));

describe('the split of ΔTPOT', () => {
  it('adds up to the change of the mean, whatever moved', () => {
    const shape = fc.record({
      step: fc.double({ min: 2, max: 80, noNaN: true }),
      prefill: fc.double({ min: 0, max: 2000, noNaN: true }),
      joint: fc.double({ min: 0, max: 2000, noNaN: true }),
      alone: fc.double({ min: 0, max: 2000, noNaN: true }),
      running: fc.option(fc.double({ min: 1, max: 200, noNaN: true }), { nil: undefined }),
      tokensPerStep: fc.option(fc.double({ min: 1, max: 5, noNaN: true }), { nil: undefined }),
      preemptions: fc.option(fc.double({ min: 0, max: 3, noNaN: true }), { nil: undefined }),
    });
    fc.assert(
      fc.property(shape, shape, (x, y) => {
        const given = (s: typeof x): Shape =>
          Object.fromEntries(Object.entries(s).filter(([, v]) => v !== undefined)) as never;
        const { total, parts, residual } = split(side(given(x), 60), side(given(y), 60));
        const sum = TPOT_PARTS.reduce((s, p) => s + (parts[p]?.value ?? 0), residual?.value ?? 0);
        expect(sum).toBeCloseTo(total!.value, 6);
        for (const part of [...Object.values(parts), residual!]) {
          expect(part.low).toBeLessThanOrEqual(part.value + 1e-9);
          expect(part.high).toBeGreaterThanOrEqual(part.value - 1e-9);
        }
      }),
      { numRuns: 40 },
    );
  });

  it('stalls of all streams, prompts in the steps and preemption each to their own', () => {
    const before = side({ step: 20, running: 10, preemptions: 0 });
    const stalled = split(before, side({ step: 20, joint: 500, running: 10, preemptions: 0 }));
    expect(stalled.parts.stalls?.value).toBeCloseTo(5, 6);
    expect(stalled.parts.interference?.value).toBeCloseTo(0, 6);
    const mixed = split(before, side({ step: 20, prefill: 500, running: 10, preemptions: 0 }));
    expect(mixed.parts.interference?.value).toBeCloseTo(5, 6);
    expect(mixed.parts.stalls?.value).toBeCloseTo(0, 6);
    const preempted = split(before, side({ step: 20, alone: 500, running: 10, preemptions: 1 }));
    expect(preempted.parts.preemption?.value).toBeCloseTo(5, 6);
    expect(Math.abs(preempted.residual!.value)).toBeLessThan(0.3);
  });

  it('pauses of single streams are preemption only where preemptions were counted', () => {
    const found = split(side({ step: 20 }), side({ step: 20, alone: 500 }));
    expect(found.parts.preemption).toBeUndefined();
    expect(found.residual?.value).toBeCloseTo(5, 0);
    expect(found.notes.join(' ')).toMatch(/single streams .* preemption or the way to the client, not told apart/);
  });

  it('without records of the streams, a batch explains between nothing and its proportion', () => {
    const told = (figures: Record<string, number>): Side => ({
      name: 'x',
      notes: [],
      told: readTold({ figures }, 'x'),
    });
    const found = split(told({ tpot: 20, itl_p50: 20, running: 10 }), told({ tpot: 50, itl_p50: 50, running: 15 }));
    expect(found.parts.batch?.value).toBeCloseTo(5, 6);
    expect(found.parts.batch!.low).toBeLessThanOrEqual(0);
    expect(found.parts.batch!.high).toBeGreaterThanOrEqual(10);
    // The same batch: a slower step is no growth of it.
    const same = split(told({ tpot: 20, itl_p50: 20, running: 10 }), told({ tpot: 30, itl_p50: 30, running: 10 }));
    expect(same.parts.batch?.value).toBeCloseTo(0, 6);
    const unknown = split(told({ tpot: 20, itl_p50: 20 }), told({ tpot: 30, itl_p50: 30 }));
    expect(unknown.parts.batch).toBeUndefined();
    expect(unknown.notes.join(' ')).toMatch(/not told apart without the requests running/);
  });

  it('fewer tokens a step: the midpoint rule', () => {
    // A step of 30 ms: at three tokens 10 ms each, at one and a half 20.
    const found = split(
      side({ step: 10, tokensPerStep: 3, running: 8 }),
      side({ step: 20, tokensPerStep: 1.5, running: 8 }),
    );
    expect(found.parts.speculation?.value).toBeCloseTo(10, 0);
  });

  it('told figures: the middle step beside the mean, and what cannot be separated said', () => {
    const told = (figures: Record<string, number>): Side => ({
      name: 'x',
      notes: [],
      told: readTold({ figures }, 'x'),
    });
    const [a, b] = [told({ tpot: 22, itl_p50: 20 }), told({ tpot: 40, itl_p50: 21 })];
    const found = split(a, b);
    expect(found.notes.join(' ')).toMatch(/beyond the middle step \+17 ms a token: .* not told apart/);
    const none = split(
      told({ tpot: 22, itl_p50: 20, preemptions: 0 }),
      told({ tpot: 40, itl_p50: 21, preemptions: 0 }),
    );
    expect(none.parts.interference?.value).toBeCloseTo(17, 6);
    expect(split(told({ ttft: 1 }), told({ ttft: 2 })).total).toBeUndefined();
  });
});
