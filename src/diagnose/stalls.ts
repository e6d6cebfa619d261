/**
 * Silences of all streams at once. One late step, a garbage collection or a blocked event loop holds every stream of a
 * process; a slow request holds only its own.
 */
import type { Millis } from '../base/units.ts';
import type { JointStall, RequestRow } from './side.ts';

/** A gap of one stream that is long for it. */
export interface Silence {
  readonly start: Millis;
  readonly end: Millis;
  readonly released: number;
}

/** Silences that end within this of each other end together. */
const TOGETHER: Millis = 4;
/** Joint: at least three streams, and this share of those that were under way. */
const SHARE = 0.6;
const FEWEST = 3;

/** Of all streams as a prompt was computed or gave its first token, of all without one, or of one stream alone. */
export type PauseKind = 'prefill' | 'joint' | 'alone';

export function jointStalls<S extends Silence>(
  silences: readonly S[],
  rows: readonly RequestRow[],
  each: (silence: S, kind: PauseKind) => void = () => {},
): JointStall[] {
  const firsts: Millis[] = [];
  // Where the server told how long a prefill took: when it began.
  const begun: Millis[] = [];
  const ended: Millis[] = [];
  const lasts: Millis[] = [];
  for (const row of rows) {
    if (row.ttft === undefined || row.latency === undefined) continue;
    firsts.push(row.at + row.ttft);
    if (row.prefill !== undefined && row.prefill > TOGETHER) {
      begun.push(row.at + row.ttft - row.prefill);
      ended.push(row.at + row.ttft);
    }
    lasts.push(row.at + row.latency);
  }
  for (const list of [firsts, begun, ended]) list.sort((a, b) => a - b);
  lasts.sort((a, b) => a - b);
  const sorted = [...silences].sort((a, b) => a.end - b.end);
  const found: JointStall[] = [];
  for (let i = 0; i < sorted.length; ) {
    const end = sorted[i]!.end;
    let j = i;
    let released = 0;
    let start = sorted[i]!.start;
    while (j < sorted.length && sorted[j]!.end <= end + TOGETHER) {
      start = Math.max(start, sorted[j]!.start);
      released += sorted[j]!.released;
      j++;
    }
    const streams = j - i;
    const active = atMost(firsts, start) - atMost(lasts, start);
    const near = atMost(firsts, end + TOGETHER) - atMost(firsts, end - TOGETHER);
    const middle = (start + end) / 2;
    const computing = near > 0 || atMost(begun, middle) > atMost(ended, middle);
    // With one or two streams under way nothing can be joint.
    let kind: PauseKind = active < FEWEST && computing ? 'prefill' : 'alone';
    if (streams >= FEWEST && streams >= SHARE * active) {
      found.push({ start, end, streams, active, withFirst: near > 0, released: released / streams });
      kind = computing ? 'prefill' : 'joint';
    }
    for (let k = i; k < j; k++) each(sorted[k]!, kind);
    i = j;
  }
  return found;
}

/** How many of the ascending values are ≤ x. */
function atMost(values: readonly number[], x: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (values[mid]! <= x) low = mid + 1;
    else high = mid;
  }
  return low;
}

/** How regular the stalls' starts are: 1 as a clock's ticks, near 0 at random; undefined below six. */
export function regularity(
  stalls: readonly JointStall[],
): { readonly regular: number; readonly period: Millis } | undefined {
  if (stalls.length < 6) return undefined;
  const steps: number[] = [];
  for (let i = 1; i < stalls.length; i++) steps.push(stalls[i]!.start - stalls[i - 1]!.start);
  const period = [...steps].sort((a, b) => a - b)[steps.length >> 1]!;
  if (!(period > 0)) return undefined;
  // Ticks at which nothing was under way are not seen: a step may be several periods.
  let off = 0;
  for (const step of steps) {
    const times = Math.max(1, Math.round(step / period));
    off += Math.abs(step / period - times) / times;
  }
  // Random steps are off by about a half.
  return { regular: Math.max(0, 1 - (2.5 * off) / steps.length), period };
}
