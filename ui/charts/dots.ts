/** The dots of TTFT against TPOT, added up in a pixel buffer. Where each falls is worked out once, its colour with every verdict. */
import type { Limits } from '../../src/core/contract.ts';
import type { Packed } from '../../src/dashboard/packed/index.ts';
import { rgba } from '../pixels.ts';
import { pointKind } from '../series.ts';
import type { Judgement } from '../state.ts';
import { color } from '../theme.ts';

/** Of `pointKind`. */
const KINDS = ['--c-good', '--c-miss-ttft', '--c-miss-tpot', '--c-miss-both', '--c-late'] as const;

type Span = readonly [number, number];

export interface Range {
  readonly x: Span;
  readonly y: Span;
}

const ranges = new WeakMap<Packed, Range>();

/** From the data alone, so that it stands still while limits move; stretched where a limit lies outside. */
export function rangeOf(p: Packed, { ttft, tpot }: Limits): Range {
  let kept = ranges.get(p);
  if (!kept) {
    let [x0, x1, y0, y1] = [Number.POSITIVE_INFINITY, 0, Number.POSITIVE_INFINITY, 0];
    for (let i = 0; i < p.rows; i++) {
      const [x, y] = [p.ttft[i]!, p.tpot[i]!];
      if (Number.isNaN(x) || Number.isNaN(y)) continue;
      if (x > 0 && x < x0) x0 = x;
      if (x > x1) x1 = x;
      if (y > 0 && y < y0) y0 = y;
      if (y > y1) y1 = y;
    }
    if (!(x1 > 0)) [x0, x1] = [1, 1000];
    if (!(y1 > 0)) [y0, y1] = [1, 100];
    kept = { x: [x0, x1], y: [y0, y1] };
    ranges.set(p, kept);
  }
  // In steps, or every move of a limit out there would place all dots anew.
  const step = Math.log(1.5);
  const wide = ([a, b]: Span, limit: number | undefined): Span => {
    const low = limit !== undefined && limit > 0 && limit < a ? Math.exp(Math.floor(Math.log(limit) / step) * step) : a;
    const high = limit !== undefined && limit > b ? Math.exp(Math.ceil(Math.log(limit) / step) * step) : b;
    return [low / 1.25, high * 1.25];
  };
  return { x: wide(kept.x, ttft), y: wide(kept.y, tpot) };
}

/** Where dots stand, for one size and range: the index of each row's pixel, −1 where it has none. */
export interface Dots {
  readonly key: string;
  readonly of: Packed;
  readonly at: Int32Array;
  readonly image: ImageData;
}

function place(p: Packed, range: Range, w: number, h: number, dot: number): Int32Array {
  const [x0, y0] = [Math.log(range.x[0]), Math.log(range.y[0])];
  const sx = w / (Math.log(range.x[1]) - x0);
  const sy = h / (Math.log(range.y[1]) - y0);
  const at = new Int32Array(p.rows);
  for (let i = 0; i < p.rows; i++) {
    const [tx, ty] = [p.ttft[i]!, p.tpot[i]!];
    const x = ((Math.log(Math.max(tx, 1e-3)) - x0) * sx) | 0;
    const y = (h - (Math.log(Math.max(ty, 1e-4)) - y0) * sy) | 0;
    const inside = !Number.isNaN(tx) && !Number.isNaN(ty) && x >= 0 && y >= 0 && x <= w - dot && y <= h - dot;
    at[i] = inside ? y * w + x : -1;
  }
  return at;
}

/** @param kept what the last call gave back. */
export function drawDots(
  g: CanvasRenderingContext2D,
  { packed: p, judged }: Judgement,
  range: Range,
  w: number,
  h: number,
  dot: number,
  kept: Dots | undefined,
): Dots {
  const key = [w, h, dot, ...range.x, ...range.y].join();
  const dots =
    kept?.key === key && kept.of === p
      ? kept
      : { key, of: p, at: place(p, range, w, h, dot), image: g.createImageData(w, h) };
  const pixels = new Uint32Array(dots.image.data.buffer);
  const alpha = p.rows > 50_000 ? 150 : p.rows > 5000 ? 190 : 230;
  const colors = KINDS.map((name) => rgba(color(name), alpha));
  pixels.fill(0);
  // Good ones first, so that misses are seen.
  for (const pass of [0, 1]) {
    for (let i = 0; i < p.rows; i++) {
      const at = dots.at[i]!;
      if (at < 0) continue;
      const kind = pointKind(p, judged, i);
      if (kind === 255 || (kind === 0) !== (pass === 0)) continue;
      const c = colors[kind]!;
      for (let dy = 0; dy < dot; dy++) for (let dx = 0; dx < dot; dx++) pixels[at + dy * w + dx] = c;
    }
  }
  g.putImageData(dots.image, 0, 0);
  return dots;
}
