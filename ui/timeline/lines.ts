/**
 * Rows laid on lines of pixels. Where there are more rows than lines, several share one: what they are doing is joined,
 * once, so that a paint costs by lines and not by rows. It changes with the rows and the height, not with the time in view.
 * Pure.
 */
import { type Levels, levelsOf } from './levels.ts';
import type { Rows } from './rows.ts';

/** Spans of time, joined where they touch: line l holds `[from[i], to[i])` for i in `end[l − 1] … end[l]`, ms. */
export interface Spans {
  readonly end: Uint32Array;
  readonly from: Float64Array;
  readonly to: Float64Array;
}

export interface Lines {
  readonly rows: Rows;
  readonly height: number;
  readonly count: number;
  /** Line l holds the rows `first[l] … first[l + 1]`. */
  readonly first: Uint32Array;
  /** Of each line, the least `scheduled` of its rows, ms. */
  readonly origin: Float64Array;
  /** And the greatest `ended`. */
  readonly last: Float64Array;
  /** Of each row, `scheduled` since its line's origin, whole µs. */
  readonly offset: Float64Array;
  readonly unsent: Spans;
  readonly waiting: Spans;
  readonly streaming: Spans;
  readonly ticks: Levels;
}

export function linesOf(rows: Rows, height: number): Lines {
  const n = rows.scheduled.length;
  const count = Math.min(n, height);
  const first = Uint32Array.from({ length: count + 1 }, (_, l) => Math.ceil((l * n) / Math.max(1, count)));
  const origin = new Float64Array(count);
  const last = new Float64Array(count);
  const offset = new Float64Array(n);
  for (let l = 0; l < count; l++) {
    let least = Number.POSITIVE_INFINITY;
    let most = Number.NEGATIVE_INFINITY;
    for (let r = first[l]!; r < first[l + 1]!; r++) {
      least = Math.min(least, rows.scheduled[r]!);
      most = Math.max(most, rows.ended[r]!);
    }
    origin[l] = least;
    last[l] = most;
    for (let r = first[l]!; r < first[l + 1]!; r++) offset[r] = Math.round((rows.scheduled[r]! - least) * 1000);
  }
  const { scheduled, sent, ended } = rows;
  const known = (x: number, otherwise: number): number => (Number.isNaN(x) ? otherwise : x);
  const sentOf = (r: number): number => known(sent[r]!, ended[r]!);
  const firstOf = (r: number): number => known(rows.first[r]!, ended[r]!);
  return {
    rows,
    height,
    count,
    first,
    origin,
    last,
    offset,
    unsent: spansOf(first, (r) => scheduled[r]!, sentOf),
    waiting: spansOf(first, sentOf, firstOf),
    streaming: spansOf(first, firstOf, (r) => ended[r]!),
    ticks: levelsOf(rows, first, offset),
  };
}

function spansOf(first: Uint32Array, from: (r: number) => number, to: (r: number) => number): Spans {
  const end = new Uint32Array(first.length - 1);
  const a: number[] = [];
  const b: number[] = [];
  for (let l = 0; l + 1 < first.length; l++) {
    const some: (readonly [number, number])[] = [];
    for (let r = first[l]!; r < first[l + 1]!; r++) if (to(r) > from(r)) some.push([from(r), to(r)]);
    if (some.length > 1) some.sort((x, y) => x[0] - y[0]);
    for (const [f, t] of some) {
      const i = a.length - 1;
      if (a.length > (l === 0 ? 0 : end[l - 1]!) && f <= b[i]!) b[i] = Math.max(b[i]!, t);
      else {
        a.push(f);
        b.push(t);
      }
    }
    end[l] = a.length;
  }
  return { end, from: Float64Array.from(a), to: Float64Array.from(b) };
}
