/** The gaps that are long enough to have a colour. Pure. */
import { type Rows, signed } from './rows.ts';

/** Ticks that end a stall: of row r `at[end[r − 1] … end[r])`. Found once; it changes with the threshold, not with the view. */
export interface Stalls {
  readonly end: Uint32Array;
  readonly at: Uint32Array;
}

/** @param stall in ms. */
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
