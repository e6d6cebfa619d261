/**
 * The timeline as pixels: written straight into a buffer, since two and a half million rectangles would take seconds.
 * From below to above a line shows what its requests wait for, their outcomes, ticks, and stalls: whatever shares a
 * pixel, a stall is seen. Pure, and without an allocation.
 */
import type { Lines, Spans } from './lines.ts';
import { signed } from './rows.ts';
import type { Stalls } from './stalls.ts';

export interface Palette {
  readonly background: number;
  readonly unsent: number;
  readonly waiting: number;
  readonly streaming: number;
  readonly tick: number;
  readonly stall: number;
  readonly selected: number;
}

export interface Scene {
  readonly width: number;
  /** The time at the left edge and at the right, ms. */
  readonly from: number;
  readonly to: number;
  /** Of each row, the colour of what became of it. */
  readonly outcome: Uint32Array;
  /** Row that is pointed at, −1 for none. */
  readonly selected: number;
}

export interface Painted {
  /** For each column of pixels, how many streams were stalled then, and how many were streaming. */
  readonly stalled: Uint32Array;
  readonly streaming: Uint32Array;
}

/** Of the outcome's mark, behind the end of a row; pixels. */
const MARK = 4;

/** Draws into `pixels`, `scene.width` × `lines.height`. */
export function paint(
  pixels: Uint32Array,
  lines: Lines,
  stalls: Stalls,
  scene: Scene,
  palette: Palette,
  into: Painted,
): void {
  const { width, from, to, selected, outcome } = scene;
  const { rows, count, height } = lines;
  pixels.fill(palette.background);
  into.stalled.fill(0);
  into.streaming.fill(0);
  if (count === 0 || !(to > from)) return;
  const scale = width / (to - from);
  const us = signed(rows.us);
  const clamp = (x: number): number => (x < 0 ? 0 : x > width ? width : x | 0);
  const count1 = (of: Uint32Array, a: number, b: number): void => {
    of[a]!++;
    if (b < width) of[b]!--;
  };

  for (let l = 0; l < count; l++) {
    const y0 = ((l * height) / count) | 0;
    const y1 = (((l + 1) * height) / count) | 0;
    const top = y0 * width;
    const r0 = lines.first[l]!;
    const r1 = lines.first[l + 1]!;
    // What is out of view costs nothing; a mark reaches a few pixels beyond the end.
    if (lines.origin[l]! > to || (lines.last[l]! - from) * scale < -MARK) continue;
    fillSpans(pixels, top, lines.unsent, l, scene, scale, palette.unsent);
    fillSpans(pixels, top, lines.waiting, l, scene, scale, palette.waiting);
    fillSpans(pixels, top, lines.streaming, l, scene, scale, palette.streaming);
    for (let r = r0; r < r1; r++) {
      const x = (rows.ended[r]! - from) * scale;
      if (x >= 0 && x < width) {
        const b = Math.min(width, (x | 0) + MARK);
        for (let i = x | 0; i < b; i++) pixels[top + i] = outcome[r]!;
      }
      // NaN, where nothing streamed, is in no view.
      if (rows.first[r]! <= to && rows.ended[r]! >= from) {
        const a = Math.min(width - 1, clamp((rows.first[r]! - from) * scale));
        count1(into.streaming, a, Math.max(a + 1, clamp((rows.ended[r]! - from) * scale)));
      }
    }
    const left = (lines.origin[l]! - from) * scale;
    drawTicks(pixels, top, lines, us, l, left, scale / 1000, width, palette.tick);
    if (selected >= r0 && selected < r1) {
      const [a, b] = [rows.start[selected]!, rows.end[selected]!];
      drawRange(pixels, top, us, a, b, lines.offset[selected]!, left, scale / 1000, width, palette.selected);
    }
    for (let r = r0; r < r1; r++) {
      for (let k = r === 0 ? 0 : stalls.end[r - 1]!; k < stalls.end[r]!; k++) {
        const i = stalls.at[k]!;
        const a = left + (lines.offset[r]! + us[i - 1]!) * (scale / 1000);
        const b = left + (lines.offset[r]! + us[i]!) * (scale / 1000);
        if (b < 0 || a >= width) continue;
        const x = clamp(a);
        // However short on this scale, it has a pixel.
        const end = Math.max(x + 1, clamp(b));
        for (let p = x; p < end; p++) pixels[top + p] = palette.stall;
        count1(into.stalled, x, end);
      }
    }
    // From 4 pixels a row on, one is left between rows.
    const bottom = y1 - y0 >= 4 ? y1 - 1 : y1;
    for (let y = y0 + 1; y < bottom; y++) pixels.copyWithin(y * width, top, top + width);
  }
  sum(into.stalled);
  sum(into.streaming);
}

/** Differences to counts. */
function sum(of: Uint32Array): void {
  for (let x = 1; x < of.length; x++) of[x]! += of[x - 1]!;
}

function fillSpans(
  pixels: Uint32Array,
  top: number,
  spans: Spans,
  line: number,
  { width, from, to }: Scene,
  scale: number,
  color: number,
): void {
  for (let i = line === 0 ? 0 : spans.end[line - 1]!; i < spans.end[line]!; i++) {
    if (spans.to[i]! < from || spans.from[i]! > to) continue;
    const a = (spans.from[i]! - from) * scale;
    const b = (spans.to[i]! - from) * scale;
    pixels.fill(color, top + (a < 0 ? 0 : a | 0), top + (b > width ? width : b | 0));
  }
}

/** All ticks of a line: from the level whose bins are no wider than a pixel, or, close up, each. */
function drawTicks(
  pixels: Uint32Array,
  top: number,
  { rows, first, offset, ticks }: Lines,
  us: Int32Array,
  line: number,
  left: number,
  perUs: number,
  width: number,
  color: number,
): void {
  const shift = ticks.shift[line]!;
  const k = shift < 0 ? -1 : Math.min(ticks.levels.length - 1, Math.floor(-Math.log2(perUs)) - shift);
  const level = ticks.levels[k];
  if (level) {
    const start = line === 0 ? 0 : level.end[line - 1]!;
    drawRange(pixels, top, level.at, start, level.end[line]!, 0, left, perUs, width, color);
    return;
  }
  for (let r = first[line]!; r < first[line + 1]!; r++) {
    drawRange(pixels, top, us, rows.start[r]!, rows.end[r]!, offset[r]!, left, perUs, width, color);
  }
}

/** Ticks `at[start … end)`, ascending, that fall within the width. */
function drawRange(
  pixels: Uint32Array,
  top: number,
  at: Int32Array,
  start: number,
  end: number,
  offset: number,
  left: number,
  perUs: number,
  width: number,
  color: number,
): void {
  let i = start;
  // The first tick at or right of the left edge.
  for (let high = end; i < high; ) {
    const middle = (i + high) >>> 1;
    if (left + (offset + at[middle]!) * perUs < 0) i = middle + 1;
    else high = middle;
  }
  for (; i < end; i++) {
    const x = left + (offset + at[i]!) * perUs;
    if (x >= width) break;
    pixels[top + (x | 0)] = color;
  }
}
