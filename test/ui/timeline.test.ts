/** The painter of the timeline, against one that draws every tick of every row. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { rgba } from '../../ui/pixels.ts';
import { type Lines, linesOf } from '../../ui/timeline/lines.ts';
import { type Painted, type Palette, paint, type Scene } from '../../ui/timeline/paint.ts';
import type { Rows } from '../../ui/timeline/rows.ts';
import { findStalls } from '../../ui/timeline/stalls.ts';

const palette: Palette = { background: 1, unsent: 2, waiting: 3, streaming: 4, tick: 5, stall: 6, selected: 7 };
const OUTCOME = 9;

interface View {
  readonly width: number;
  readonly height: number;
  readonly from: number;
  readonly to: number;
  /** The shortest stall, ms. */
  readonly stall: number;
}

function draw(rows: Rows, { width, height, from, to, stall }: View, lines: Lines = linesOf(rows, height)) {
  const pixels = new Uint32Array(width * height);
  const painted: Painted = { stalled: new Uint32Array(width), streaming: new Uint32Array(width) };
  const outcome = new Uint32Array(rows.scheduled.length).fill(OUTCOME);
  const scene: Scene = { width, from, to, outcome, selected: -1 };
  paint(pixels, lines, findStalls(rows, stall), scene, palette, painted);
  return { pixels, painted, line: (y: number) => [...pixels.subarray(y * width, (y + 1) * width)] };
}

/** One pixel at a time, the plain way: of all that falls on it the uppermost layer. */
function plainly(rows: Rows, { width, height, from, to, stall }: View): Uint32Array {
  const n = rows.scheduled.length;
  const count = Math.min(n, height);
  const layer = new Uint8Array(width * height);
  const out = new Uint32Array(width * height).fill(palette.background);
  const scale = width / (to - from);
  const colors = [palette.background, palette.unsent, palette.waiting, palette.streaming, OUTCOME, palette.tick, 6];
  const put = (y: number, x: number, k: number): void => {
    if (x >= 0 && x < width && k >= layer[y * width + x]!) layer[y * width + x] = k;
  };
  const span = (y: number, a: number, b: number, k: number): void => {
    for (let x = Math.max(0, Math.floor(a)); x < Math.min(width, Math.floor(b)); x++) put(y, x, k);
  };
  for (let r = 0; r < n; r++) {
    const line = n <= height ? r : Math.floor((r * height) / n);
    const y = Math.floor((line * height) / count);
    const at = (t: number): number => (t - from) * scale;
    const known = (x: number, or: number): number => (Number.isNaN(x) ? or : x);
    const [due, ended] = [rows.scheduled[r]!, rows.ended[r]!];
    const sent = known(rows.sent[r]!, ended);
    const first = known(rows.first[r]!, ended);
    span(y, at(due), at(sent), 1);
    span(y, at(sent), at(first), 2);
    span(y, at(first), at(ended), 3);
    if (at(ended) >= 0) span(y, at(ended), Math.floor(at(ended)) + 4, 4);
    const tick = (i: number): number => at(due + rows.us[i]! / 1000);
    for (let i = rows.start[r]!; i < rows.end[r]!; i++) {
      put(y, Math.floor(tick(i)), 5);
      if (i > rows.start[r]! && rows.us[i]! - rows.us[i - 1]! >= 1000 * stall && tick(i) >= 0) {
        const a = Math.max(0, Math.floor(tick(i - 1)));
        span(y, a, Math.max(a + 1, Math.floor(tick(i))), 6);
      }
    }
  }
  for (let l = 0; l < count; l++) {
    const [y0, y1] = [Math.floor((l * height) / count), Math.floor(((l + 1) * height) / count)];
    for (let y = y0; y < (y1 - y0 >= 4 ? y1 - 1 : y1); y++) {
      for (let x = 0; x < width; x++) out[y * width + x] = colors[layer[y0 * width + x]!]!;
    }
  }
  return out;
}

/** Rows on a grid of whole ms that is a power of two wide: positions are exact, and both painters round alike. */
const rowsArb = fc
  .array(
    fc.record({
      due: fc.integer({ min: 0, max: 3000 }),
      sent: fc.option(fc.integer({ min: 0, max: 50 }), { nil: undefined }),
      gaps: fc.array(
        fc.oneof({ weight: 8, arbitrary: fc.integer({ min: 0, max: 8 }) }, fc.integer({ min: 0, max: 900 })),
        {
          maxLength: 60,
        },
      ),
      tail: fc.integer({ min: 0, max: 100 }),
    }),
    { maxLength: 30 },
  )
  .map((list): Rows => {
    const us: number[] = [];
    const start: number[] = [];
    const end: number[] = [];
    const ended: number[] = [];
    const first: number[] = [];
    for (const { due, gaps, tail, sent } of list) {
      start.push(us.length);
      let t = sent ?? 0;
      for (const g of sent === undefined ? [] : gaps) us.push(1000 * (t += g));
      end.push(us.length);
      first.push(us.length > start.at(-1)! ? due + us[start.at(-1)!]! / 1000 : Number.NaN);
      ended.push(due + t + tail);
    }
    return {
      scheduled: Float64Array.from(list, (r) => r.due),
      sent: Float64Array.from(list, (r) => (r.sent === undefined ? Number.NaN : r.due + r.sent)),
      first: Float64Array.from(first),
      ended: Float64Array.from(ended),
      start: Uint32Array.from(start),
      end: Uint32Array.from(end),
      us: Uint32Array.from(us),
    };
  });

const viewArb = fc
  .record({
    width: fc.constantFrom(1, 64, 128, 256),
    height: fc.integer({ min: 1, max: 40 }),
    from: fc.integer({ min: -500, max: 4000 }),
    span: fc.constantFrom(64, 256, 1024, 4096, 16_384),
    stall: fc.constantFrom(5, 40, 200),
  })
  .map(({ span, ...v }): View => ({ ...v, to: v.from + span }));

describe('the timeline', () => {
  const one: Rows = {
    scheduled: Float64Array.of(0),
    sent: Float64Array.of(10),
    first: Float64Array.of(20),
    ended: Float64Array.of(80),
    start: Uint32Array.of(0),
    end: Uint32Array.of(4),
    us: Uint32Array.of(20_000, 30_000, 70_000, 80_000),
  };

  it('draws what was not sent, waiting, ticks, the stall between two ticks, and the outcome behind the end', () => {
    const view = { width: 12, height: 1, from: 0, to: 120, stall: 40 };
    expect(draw(one, view).line(0)).toEqual([2, 3, 5, 6, 6, 6, 6, 5, 5, 9, 9, 9]);
  });

  it('draws the pixels that every tick of every row would, at any zoom and however many rows share a line', () => {
    fc.assert(
      fc.property(rowsArb, viewArb, (rows, view) => {
        expect([...draw(rows, view).pixels]).toEqual([...plainly(rows, view)]);
      }),
      { numRuns: 400 },
    );
  });

  it('draws from its levels what it would from all ticks, where these are thousands', () => {
    const n = 9000;
    let seed = 7;
    const random = (): number => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647;
    let t = 0;
    const us = Uint32Array.from({ length: n }, () => (t += Math.floor(random() * 3) * 1000));
    const half = n / 2;
    const rows: Rows = {
      scheduled: Float64Array.of(0, 512),
      sent: Float64Array.of(0, 512),
      first: Float64Array.of(us[0]! / 1000, 512 + us[half]! / 1000),
      ended: Float64Array.of(us[half - 1]! / 1000, 512 + us[n - 1]! / 1000),
      start: Uint32Array.of(0, half),
      end: Uint32Array.of(half, n),
      us,
    };
    const lines = linesOf(rows, 1);
    expect(lines.ticks.levels[0]!.at.length).toBeLessThan(n);
    for (const span of [32, 256, 1024, 4096, 16_384, 65_536]) {
      for (const from of [0, 37, 4000]) {
        const view = { width: 256, height: 1, from, to: from + span, stall: 1e9 };
        expect([...draw(rows, view, lines).pixels], `span ${span} from ${from}`).toEqual([...plainly(rows, view)]);
      }
    }
  });

  it('shows every stall in view, at any zoom, whatever else falls on its pixels', () => {
    fc.assert(
      fc.property(rowsArb, viewArb, (rows, view) => {
        const { pixels } = draw(rows, view);
        const n = rows.scheduled.length;
        const scale = view.width / (view.to - view.from);
        for (let r = 0; r < n; r++) {
          const line = n <= view.height ? r : Math.floor((r * view.height) / n);
          const y = Math.floor((line * view.height) / Math.min(n, view.height));
          for (let i = rows.start[r]! + 1; i < rows.end[r]!; i++) {
            if (rows.us[i]! - rows.us[i - 1]! < 1000 * view.stall) continue;
            const a = (rows.scheduled[r]! + rows.us[i - 1]! / 1000 - view.from) * scale;
            const b = (rows.scheduled[r]! + rows.us[i]! / 1000 - view.from) * scale;
            if (b < 0 || a >= view.width) continue;
            expect(pixels[y * view.width + Math.max(0, Math.floor(a))]).toBe(palette.stall);
          }
        }
      }),
      { numRuns: 200 },
    );
  });

  it('leaves a blank where a lone stream stood still for more than two pixels, at every level', () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.integer({ min: 0, max: 4 }), fc.integer({ min: 100, max: 2000 })), {
          minLength: 3,
          maxLength: 400,
        }),
        fc.constantFrom(64, 200, 500),
        (gaps, width) => {
          let t = 0;
          const us = Uint32Array.from(gaps, (g) => 1000 * (t += g));
          const rows: Rows = { ...one, ended: Float64Array.of(t + 1), end: Uint32Array.of(us.length), us };
          const view = { width, height: 1, from: 0, to: t + 1, stall: 1e9 };
          const line = draw(rows, view).line(0);
          const scale = width / view.to;
          for (let i = 1; i < us.length; i++) {
            if (((us[i]! - us[i - 1]!) / 1000) * scale < 2.001) continue;
            const between = line.slice(
              Math.floor((us[i - 1]! / 1000) * scale) + 1,
              Math.floor((us[i]! / 1000) * scale),
            );
            expect(between.every((p) => p !== palette.tick)).toBe(true);
            expect(between.length).toBeGreaterThan(0);
          }
        },
      ),
      { numRuns: 200 },
    );
  });

  it('counts who stands still when: a stall that all share is a full band', () => {
    const n = 50;
    const fill = (x: number): Float64Array => new Float64Array(n).fill(x);
    const rows: Rows = {
      scheduled: fill(0),
      sent: fill(0),
      first: fill(10),
      ended: fill(100),
      start: Uint32Array.from({ length: n }, (_, r) => 2 * r),
      end: Uint32Array.from({ length: n }, (_, r) => 2 * r + 2),
      us: Uint32Array.from({ length: 2 * n }, (_, i) => (i % 2 === 0 ? 20_000 : 60_000)),
    };
    const { painted } = draw(rows, { width: 100, height: 20, from: 0, to: 100, stall: 40 });
    expect([...painted.stalled.subarray(20, 60)].every((s) => s === n)).toBe(true);
    expect(painted.stalled[19]).toBe(0);
    expect(painted.stalled[60]).toBe(0);
    expect(painted.streaming[50]).toBe(n);
  });

  it('stays inside its buffer, whatever is asked', () => {
    const any = fc.double({ min: -1e6, max: 1e6, noNaN: true });
    fc.assert(
      fc.property(
        fc.array(fc.tuple(any, fc.array(fc.integer({ min: 0, max: 0x7fffffff }), { maxLength: 5 })), { maxLength: 12 }),
        fc.integer({ min: 1, max: 40 }),
        fc.integer({ min: 1, max: 30 }),
        any,
        fc.double({ min: 1e-3, max: 1e6, noNaN: true }),
        (list, width, height, from, span) => {
          const us = list.flatMap(([, t]) => [...t].sort((a, b) => a - b));
          let at = 0;
          const ends = list.map(([, t]) => (at += t.length));
          const rows: Rows = {
            scheduled: Float64Array.from(list, ([t]) => t),
            sent: Float64Array.from(list, ([t], i) => (i % 3 === 0 ? Number.NaN : t + 1)),
            first: Float64Array.from(list, ([t, c]) => (c.length > 0 ? t + Math.min(...c) / 1000 : Number.NaN)),
            ended: Float64Array.from(list, ([t]) => t + 1500),
            start: Uint32Array.from(ends, (e, i) => e - (list[i]?.[1].length ?? 0)),
            end: Uint32Array.from(ends),
            us: Uint32Array.from(us),
          };
          const { pixels } = draw(rows, { width, height, from, to: from + span, stall: 100 });
          expect(pixels.every((p) => p >= 1 && p <= 9)).toBe(true);
        },
      ),
      { numRuns: 200 },
    );
  });

  it('takes colours as the style sheet gives them', () => {
    expect(rgba('#fff')).toBe(0xffffffff);
    expect(rgba('#112233')).toBe(0xff332211);
  });
});
