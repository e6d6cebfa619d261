/** How a step went with the streams under way, within one run: the client's own records show its batch. */
import type { Millis } from '../base/units.ts';
import type { RequestRow } from './side.ts';

/** Streams under way, and by how much a step goes with them, ms a token and stream. */
export interface Batch {
  readonly mean: number;
  readonly slope: number;
  readonly se: number;
}

/** What the growth of the batch added, ms a token; undefined where its error is no smaller than the change itself. */
export function batchGrowth(
  x: Batch,
  y: Batch,
  rest: Millis,
  restSe: Millis,
): { readonly value: Millis; readonly se: Millis; readonly slope: number } | undefined {
  const slope = (x.slope + y.slope) / 2;
  const value = slope * (y.mean - x.mean);
  const se = Math.abs(y.mean - x.mean) * Math.hypot(x.se, y.se) * 0.5;
  return se < Math.max(0.5 * Math.abs(rest), 2 * restSe)
    ? { value, se: Math.hypot(se, 0.2 * restSe), slope }
    : undefined;
}

/** Least squares of the middle step, a token, on the mean number of streams under way during the request. */
export function batchFrom(rows: readonly RequestRow[], of: (r: RequestRow) => number): Batch | undefined {
  const spans = rows
    .filter((r) => r.ttft !== undefined && r.latency !== undefined && r.latency > r.ttft)
    .map((r) => ({ from: r.at + r.ttft!, to: r.at + r.latency!, y: of(r) }));
  if (spans.length < 60) return undefined;
  const events = spans.flatMap(({ from, to }) => [
    { t: from, by: 1 },
    { t: to, by: -1 },
  ]);
  events.sort((p, q) => p.t - q.t);
  // ∫ streams dt up to each event.
  const times = new Float64Array(events.length);
  const held = new Float64Array(events.length);
  const count = new Float64Array(events.length);
  let streams = 0;
  let area = 0;
  events.forEach((e, i) => {
    if (i > 0) area += streams * (e.t - times[i - 1]!);
    streams += e.by;
    times[i] = e.t;
    held[i] = area;
    count[i] = streams;
  });
  const upTo = (t: number): number => {
    let low = 0;
    let high = times.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (times[mid]! <= t) low = mid + 1;
      else high = mid;
    }
    return low === 0 ? 0 : held[low - 1]! + count[low - 1]! * (t - times[low - 1]!);
  };
  const n = spans.length;
  const c = spans.map(({ from, to }) => (upTo(to) - upTo(from)) / (to - from));
  const mean = c.reduce((s, v) => s + v, 0) / n;
  const meanY = spans.reduce((s, v) => s + v.y, 0) / n;
  let xx = 0;
  let xy = 0;
  spans.forEach(({ y }, i) => {
    xx += (c[i]! - mean) ** 2;
    xy += (c[i]! - mean) * (y - meanY);
  });
  if (!(xx > 0.01 * n)) return undefined;
  const slope = xy / xx;
  let off = 0;
  spans.forEach(({ y }, i) => void (off += (y - meanY - slope * (c[i]! - mean)) ** 2));
  // Neighbours share their batch: a fifth of them counts.
  return { mean, slope, se: Math.sqrt((5 * off) / (n - 2) / xx) };
}
