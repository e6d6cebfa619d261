/** Columns to what charts draw. Pure; a million rows at a time. */

import { LIMIT_NAMES } from '../src/core/contract.ts';
import { LEDGER } from '../src/core/judge.ts';
import { IN_COHORT, type Judged, type Packed } from '../src/dashboard/packed/index.ts';

export interface Span {
  readonly from: number;
  readonly to: number;
}

/** From the first arrival to the last, and to the last end. */
export function spanOf(p: Packed): { readonly arrivals: Span; readonly whole: Span } {
  let from = Number.POSITIVE_INFINITY;
  let last = Number.NEGATIVE_INFINITY;
  let to = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < p.rows; i++) {
    const at = p.scheduled[i]!;
    if (at < from) from = at;
    if (at > last) last = at;
    const e = p.e2e[i]!;
    const end = at + (Number.isNaN(e) ? 0 : e);
    if (end > to) to = end;
  }
  if (p.rows === 0) return { arrivals: { from: 0, to: 1 }, whole: { from: 0, to: 1 } };
  return { arrivals: { from, to: Math.max(last, from + 1) }, whole: { from, to: Math.max(to, from + 1) } };
}

export interface Bins {
  readonly from: number;
  readonly width: number;
  /** For each class of the ledger, a count a bin. */
  readonly counts: readonly Float64Array[];
}

/** Operations by arrival and by what became of them, warm-up and cool-down included. */
export function outcomesOverArrival(p: Packed, judged: Judged, bins: number): Bins {
  const { from, to } = spanOf(p).arrivals;
  const width = (to - from) / bins;
  const counts = LEDGER.map(() => new Float64Array(bins));
  for (let i = 0; i < p.rows; i++) {
    const b = Math.min(bins - 1, Math.floor((p.scheduled[i]! - from) / width));
    counts[judged.class[i]!]![b]!++;
  }
  return { from, width, counts };
}

/** How many operations were where, sampled at `points` moments. */
export interface Load {
  readonly at: Float64Array;
  /** Scheduled and not yet sent, sent and without output, streaming. */
  readonly unsent: Float64Array;
  readonly waiting: Float64Array;
  readonly streaming: Float64Array;
  /** Output tokens a second, each stream's spread evenly from its first to its last. */
  readonly tokens: Float64Array;
}

export function loadOverTime(p: Packed, points: number): Load {
  const { from, to } = spanOf(p).whole;
  const width = (to - from) / points;
  const step = [0, 0, 0].map(() => new Float64Array(points + 2)) as [Float64Array, Float64Array, Float64Array];
  const flow = new Float64Array(points + 2);
  const bin = (t: number): number => Math.max(0, Math.min(points, Math.floor((t - from) / width + 0.5)));
  const count = (k: 0 | 1 | 2, a: number, b: number): void => {
    step[k][bin(a)]!++;
    step[k][bin(b)]!--;
  };
  for (let i = 0; i < p.rows; i++) {
    const at = p.scheduled[i]!;
    const e = p.e2e[i]!;
    const end = at + (Number.isNaN(e) ? to - at : e);
    const lag = p.lag[i]!;
    const sent = Number.isNaN(lag) ? end : at + lag;
    const first = at + p.ttft[i]!;
    const last = at + p.latency[i]!;
    if (sent > at) count(0, at, sent);
    if (Number.isNaN(first)) count(1, sent, end);
    else {
      count(1, sent, first);
      count(2, first, Number.isNaN(last) ? end : last);
    }
    const n = p.tokens[i]!;
    if (!Number.isNaN(n) && !Number.isNaN(first) && !Number.isNaN(last)) {
      // The density of a stream as a difference array; a stream within one bin is that bin's alone.
      const a = Math.min(points - 1, Math.floor((first - from) / width));
      const b = Math.max(a + 1, Math.min(points, Math.ceil((last - from) / width)));
      flow[a]! += n / (b - a);
      flow[b]! -= n / (b - a);
    }
  }
  const total = (x: Float64Array): Float64Array => {
    const out = new Float64Array(points);
    let sum = 0;
    for (let b = 0; b < points; b++) {
      sum += x[b]!;
      out[b] = Math.max(0, sum);
    }
    return out;
  };
  return {
    at: Float64Array.from({ length: points }, (_, b) => from + b * width),
    unsent: total(step[0]),
    waiting: total(step[1]),
    streaming: total(step[2]),
    tokens: total(flow).map((x) => (1000 * x) / width),
  };
}

/** Finite values of the cohort, ascending. */
export function sortedCohort(p: Packed, values: Float64Array): Float64Array {
  const kept = new Float64Array(p.rows);
  let n = 0;
  for (let i = 0; i < p.rows; i++) {
    const x = values[i]!;
    if ((p.flags[i]! & IN_COHORT) !== 0 && !Number.isNaN(x)) kept[n++] = x;
  }
  return kept.subarray(0, n).sort();
}

/** The empirical distribution at no more than `points` values, its ends and tail always among them. */
export function ecdf(sorted: Float64Array, points = 600): { readonly x: Float64Array; readonly share: Float64Array } {
  const n = sorted.length;
  if (n <= points) {
    return { x: Float64Array.from(sorted), share: Float64Array.from({ length: n }, (_, i) => (i + 1) / n) };
  }
  // Two thirds evenly by rank, a third geometrically into the tail.
  const ranks = new Set<number>([0, n - 1]);
  const even = Math.floor((2 * points) / 3);
  for (let k = 0; k < even; k++) ranks.add(Math.floor((k * (n - 1)) / even));
  for (let k = 0; k < points - even; k++) ranks.add(n - 1 - Math.floor(n ** (k / (points - even)) - 1));
  const list = [...ranks].filter((r) => r >= 0 && r < n).sort((a, b) => a - b);
  return {
    x: Float64Array.from(list, (r) => sorted[r]!),
    share: Float64Array.from(list, (r) => (r + 1) / n),
  };
}

const [TTFT, TPOT] = [1 << LIMIT_NAMES.indexOf('ttft'), 1 << LIMIT_NAMES.indexOf('tpot')];
const GOOD = LEDGER.indexOf('good');
const LATE = LEDGER.indexOf('late');

/** Completed, valid operations by which of two limits they met: what two marginals cannot tell. */
export interface Quadrants {
  readonly both: number;
  readonly ttftOnly: number;
  readonly tpotOnly: number;
  readonly neither: number;
  /** Of those that met both, late by another limit. */
  readonly otherwise: number;
  /** Without a measured TTFT or TPOT, or not completed: not on the chart. */
  readonly absent: number;
}

export function quadrants(p: Packed, judged: Judged): Quadrants {
  const n = [0, 0, 0, 0];
  let otherwise = 0;
  let absent = 0;
  for (let i = 0; i < p.rows; i++) {
    if ((p.flags[i]! & IN_COHORT) === 0) continue;
    const c = judged.class[i]!;
    if ((c !== GOOD && c !== LATE) || Number.isNaN(p.ttft[i]!) || Number.isNaN(p.tpot[i]!)) {
      absent++;
      continue;
    }
    const missed = judged.missed[i]!;
    n[(missed & TTFT ? 1 : 0) + (missed & TPOT ? 2 : 0)]!++;
    if ((missed & (TTFT | TPOT)) === 0 && c === LATE) otherwise++;
  }
  return { both: n[0]!, tpotOnly: n[1]!, ttftOnly: n[2]!, neither: n[3]!, otherwise, absent };
}

/** 0 good, 1 missed TTFT, 2 missed TPOT, 3 both, 4 late by another limit; 255 not on the chart. */
export function pointKind(p: Packed, judged: Judged, i: number): number {
  const c = judged.class[i]!;
  if ((p.flags[i]! & IN_COHORT) === 0 || (c !== GOOD && c !== LATE)) return 255;
  const missed = judged.missed[i]!;
  const k = (missed & TTFT ? 1 : 0) + (missed & TPOT ? 2 : 0);
  return k === 0 && c === LATE ? 4 : k;
}
