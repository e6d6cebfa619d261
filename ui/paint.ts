/**
 * The timeline as pixels. Each request is a row, each chunk a tick, each stall a bar, written straight into a buffer:
 * two and a half million ticks are a few milliseconds, which rectangles would not be. Pure.
 */
export interface Rows {
  /** Rows to draw, top to bottom; stamps in ms since the run's epoch, NaN where missing. */
  readonly scheduled: Float64Array;
  readonly sent: Float64Array;
  readonly first: Float64Array;
  readonly ended: Float64Array;
  /** A colour a row for what became of it. */
  readonly color: Uint32Array;
  /** Ticks: row r holds `us[start[r] … end[r])`, µs since it was scheduled. Both 0 where they are not here (yet). */
  readonly start: Uint32Array;
  readonly end: Uint32Array;
  readonly us: Uint32Array;
}

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
  readonly height: number;
  /** The time at the left edge and at the right, ms. */
  readonly from: number;
  readonly to: number;
  /** Row that is pointed at, −1 for none. */
  readonly selected: number;
}

export interface Painted {
  /** For each column of pixels, how many streams were stalled then, and how many were streaming. */
  readonly stalled: Uint32Array;
  readonly streaming: Uint32Array;
}

/** Ticks that end a stall: of row r `at[end[r − 1] … end[r])`. Found once; it changes with the threshold, not with the view. */
export interface Stalls {
  readonly end: Uint32Array;
  readonly at: Uint32Array;
}

export function findStalls(rows: Rows, stall: number): Stalls {
  const us = signed(rows.us);
  const n = rows.start.length;
  const end = new Uint32Array(n);
  const least = Math.round(stall * 1000);
  const at: number[] = [];
  for (let r = 0; r < n; r++) {
    for (let i = rows.start[r]! + 1; i < rows.end[r]!; i++) if (us[i]! - us[i - 1]! >= least) at.push(i);
    end[r] = at.length;
  }
  return { end, at: Uint32Array.from(at) };
}

/** Receipts stay below 2^31 µs (`ChunksBuilder`): read as signed they are the engine's small integers. */
const signed = (us: Uint32Array): Int32Array => new Int32Array(us.buffer, us.byteOffset, us.length);

/** Draws into `pixels`, width × height. */
export function paint(
  pixels: Uint32Array,
  rows: Rows,
  stalls: Stalls,
  scene: Scene,
  palette: Palette,
  into: Painted,
): void {
  const { width, height, from, to } = scene;
  const n = rows.scheduled.length;
  pixels.fill(palette.background);
  into.stalled.fill(0);
  into.streaming.fill(0);
  if (n === 0 || !(to > from)) return;
  const scale = width / (to - from);
  const perUs = scale / 1000;
  const usPerPixel = 1 / perUs;
  const rowHeight = height / n;
  const markWidth = 4; // of the outcome, at the end of its row
  const clamp = (x: number): number => (x < 0 ? 0 : x > width ? width : x | 0);
  const us = signed(rows.us);

  for (let r = 0; r < n; r++) {
    const y0 = (r * rowHeight) | 0;
    const y1 = Math.max(y0 + 1, ((r + 1) * rowHeight) | 0);
    // From 4 pixels a row on, one is left between rows.
    const bottom = y1 - y0 >= 4 ? y1 - 1 : y1;
    const due = rows.scheduled[r]!;
    const end = rows.ended[r]!;
    if (due > to || end < from) continue;
    const sent = rows.sent[r]!;
    const first = rows.first[r]!;
    const left = (due - from) * scale;
    const xs = clamp(left);
    const xd = Number.isNaN(sent) ? clamp((end - from) * scale) : clamp((sent - from) * scale);
    const xe = Math.max(clamp((end - from) * scale), xs + 1);
    const xf = Number.isNaN(first) ? xe : clamp((first - from) * scale);
    const top = y0 * width;
    if (xd > xs) pixels.fill(palette.unsent, top + xs, top + xd);
    if (xf > xd) pixels.fill(palette.waiting, top + xd, top + xf);
    if (xe > xf) pixels.fill(palette.streaming, top + xf, Math.min(top + xe, top + width));
    if (!Number.isNaN(first)) {
      into.streaming[Math.min(width - 1, xf)]!++;
      if (xe < width) into.streaming[xe]!--;
    }
    const a = rows.start[r]!;
    const b = rows.end[r]!;
    const tick = r === scene.selected ? palette.selected : palette.tick;
    // Most ticks fall on a pixel that has one: these cost a comparison. `next` is where the next pixel begins, in µs.
    let next = -1;
    for (let i = a; i < b; i++) {
      const now = us[i]!;
      if (now < next) continue;
      const at = left + now * perUs;
      if (at >= width) break;
      const x = at >= 0 ? at | 0 : -1;
      if (x >= 0) pixels[top + x] = tick;
      const edge = (x + 1 - left) * usPerPixel;
      next = edge | 0;
      if (next < edge) next++;
      if (next <= now) next = now + 1;
    }
    for (let k = r === 0 ? 0 : stalls.end[r - 1]!; k < stalls.end[r]!; k++) {
      const i = stalls.at[k]!;
      const sa = clamp(left + us[i - 1]! * perUs);
      const sb = clamp(left + us[i]! * perUs);
      if (sb <= sa) continue;
      pixels.fill(palette.stall, top + sa, top + sb);
      into.stalled[sa]!++;
      if (sb < width) into.stalled[sb]!--;
    }
    const mark = xe > xs + markWidth ? xe - markWidth : xs;
    if (xe <= width && xe > 0) pixels.fill(rows.color[r]!, top + mark, top + Math.min(xe, width));
    for (let y = y0 + 1; y < bottom; y++) pixels.copyWithin(y * width, top, top + width);
    if (y1 - y0 >= 4) pixels.fill(palette.background, bottom * width, bottom * width + width);
  }
  // Differences to counts.
  let stalled = 0;
  let streaming = 0;
  for (let x = 0; x < width; x++) {
    stalled += into.stalled[x]!;
    streaming += into.streaming[x]!;
    into.stalled[x] = stalled;
    into.streaming[x] = streaming;
  }
}

/** Uint32 of a `#rrggbb` or `#rgb` colour, as a little-endian ImageData holds it. */
export function rgba(hex: string, alpha = 255): number {
  const digits = hex.replace('#', '');
  const n = Number.parseInt(digits.length === 3 ? digits.replace(/./g, '$&$&') : digits, 16);
  return ((alpha << 24) | ((n & 0xff) << 16) | (n & 0xff00) | (n >> 16)) >>> 0;
}
