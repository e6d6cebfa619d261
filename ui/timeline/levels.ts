/**
 * A line's ticks at every zoom. Level k keeps, of each bin of 2^k times the finest width, the first tick and the last.
 * Where a bin is no wider than a pixel that gives the very pixels which all ticks would: a bin then touches two pixels
 * at most, and if it has ticks in the left one its first lies there, if in the right one its last. So nothing is
 * approximated, and a paint costs a few ticks a pixel however many there are. Pure.
 */
import { type Rows, signed } from './rows.ts';

/** Bins of the finest level, a line, at most: below a pixel of that width few ticks are in view, and all are drawn. */
const BINS = 2048;
/** Above, a line's ticks are in no level. */
const MOST_US = 2 ** 30;

interface Level {
  /** Line l holds `at[end[l − 1] … end[l])`, ascending, µs since the line's origin. */
  readonly end: Uint32Array;
  readonly at: Int32Array;
}

export interface Levels {
  readonly levels: readonly Level[];
  /** The finest bin is 2^shift µs wide; −1 where a line has no levels. */
  readonly shift: Int8Array;
}

/**
 * @param first line l holds the rows `first[l] … first[l + 1]`.
 * @param offset of each row's scheduled time from its line's origin, whole µs.
 */
export function levelsOf(rows: Rows, first: Uint32Array, offset: Float64Array): Levels {
  const us = signed(rows.us);
  const lines = first.length - 1;
  const shift = new Int8Array(lines).fill(-1);
  const low = new Int32Array(BINS + 1);
  const high = new Int32Array(BINS + 1);
  const end = new Uint32Array(lines);
  const base = new Growing();
  for (let l = 0; l < lines; l++) {
    end[l] = base.length;
    let last = -1;
    for (let r = first[l]!; r < first[l + 1]!; r++) {
      if (rows.end[r]! > rows.start[r]!) last = Math.max(last, offset[r]! + us[rows.end[r]! - 1]!);
    }
    if (last < 0 || last > MOST_US) continue;
    let s = 0;
    while (last >> s >= BINS) s++;
    shift[l] = s;
    const bins = (last >> s) + 1;
    low.fill(-1, 0, bins);
    for (let r = first[l]!; r < first[l + 1]!; r++) {
      const off = offset[r]! | 0;
      for (let i = rows.start[r]!; i < rows.end[r]!; i++) {
        const at = off + us[i]!;
        const b = at >> s;
        if (low[b]! < 0) low[b] = high[b] = at;
        else if (at < low[b]!) low[b] = at;
        else if (at > high[b]!) high[b] = at;
      }
    }
    for (let b = 0; b < bins; b++) {
      if (low[b]! < 0) continue;
      base.push(low[b]!);
      if (high[b]! > low[b]!) base.push(high[b]!);
    }
    end[l] = base.length;
  }
  const levels: Level[] = [{ end, at: base.finish() }];
  for (let k = 1; 1 << k <= BINS; k++) levels.push(coarser(levels[k - 1]!, shift, k));
  return { levels, shift };
}

/** The first and last tick of each bin of 2^(shift + k) µs. */
function coarser({ end, at }: Level, shift: Int8Array, k: number): Level {
  const out = new Int32Array(at.length);
  const ends = new Uint32Array(end.length);
  let n = 0;
  for (let l = 0; l < end.length; l++) {
    const s = shift[l]! + k;
    let bin = -1;
    let kept = -1;
    let last = -1;
    for (let i = l === 0 ? 0 : end[l - 1]!; i < end[l]!; i++) {
      const t = at[i]!;
      if (t >> s !== bin) {
        if (last > kept) out[n++] = last;
        bin = t >> s;
        kept = out[n++] = t;
      }
      last = t;
    }
    if (last > kept) out[n++] = last;
    ends[l] = n;
  }
  return { end: ends, at: out.slice(0, n) };
}

class Growing {
  #at = new Int32Array(1 << 16);
  length = 0;

  push(x: number): void {
    if (this.length === this.#at.length) {
      const more = new Int32Array(2 * this.length);
      more.set(this.#at);
      this.#at = more;
    }
    this.#at[this.length++] = x;
  }

  finish(): Int32Array {
    return this.#at.slice(0, this.length);
  }
}
