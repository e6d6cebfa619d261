/** Stretches of steps in which prompts were computed among decodes: who was at the engine without a token, and when. */
import type { Millis } from '../base/units.ts';
import type { Observation } from './observations.ts';
import type { Stream } from './receipts.ts';

/** Steps a stretch with prefill may have: beyond it requests queued, and what was computed when is not known. */
const LONGEST_STRETCH = 8;

/** A request whose prompt was computed from the step after cluster `from` to the one that ended at cluster `to`. */
interface Window {
  readonly from: number;
  readonly to: number;
  readonly streams: readonly number[];
}

/** In which intervals a request was at the engine without a token, and each request's stretch of them. */
export function waits(
  streams: readonly Stream[],
  firstIn: Int32Array,
  times: Float64Array,
  live: Int32Array,
  entry: Millis,
): { waiting: Int32Array; windows: Window[] } {
  const waiting = new Int32Array(times.length);
  const windows: Window[] = [];
  streams.forEach((s, i) => {
    const to = firstIn[i]!;
    // The first step that could hold it begins at the first step end after it was sent.
    if (to <= 0) return;
    let from = Math.min(lowerBound(times, s.sent + entry), to - 1);
    if (live[from] === 0) from = Math.max(0, from - 1); // nothing decoded: its step began when it came
    for (let k = from + 1; k <= to; k++) waiting[k]!++;
    windows.push({ from, to, streams: [i] });
  });
  windows.sort((a, b) => a.from - b.from || a.to - b.to);
  return { waiting, windows };
}

/**
 * Requests that had no token for longer than prompts take, and for most of that while as many streamed as ever did: nothing
 * but a limit keeps them out. (Behind a crowd of prompts they wait as long, but then streams are added meanwhile.)
 */
export function heldBack(windows: readonly Window[], live: Int32Array, most: number): number {
  return windows.filter(({ from, to }) => {
    let full = 0;
    for (let k = from + 1; k <= to; k++) if (live[k] === most) full++;
    return to - from > LONGEST_STRETCH && full > 0.5 * (to - from);
  }).length;
}

/** Windows that overlap, together. */
export function stretches(windows: readonly Window[]): Window[] {
  const out: Window[] = [];
  for (const w of windows) {
    const last = out.at(-1);
    if (last && w.from < last.to) {
      out[out.length - 1] = {
        from: last.from,
        to: Math.max(last.to, w.to),
        streams: [...last.streams, ...w.streams],
      };
    } else out.push(w);
  }
  return out;
}

interface Intervals {
  readonly clean: Uint8Array;
  readonly ms: Float64Array;
  readonly sequences: Int32Array;
  readonly kv: Float64Array;
  readonly live: Int32Array;
  readonly times: Float64Array;
  readonly isFull: (k: number) => boolean;
  readonly firstIn: Int32Array;
  readonly budget: number;
}

export function stretchOf(w: Window, streams: readonly Stream[], on: Intervals): Observation | undefined {
  const steps = w.to - w.from;
  if (steps > LONGEST_STRETCH) return undefined;
  let ms = 0;
  let sequences = 0;
  let kv = 0;
  let prefillSteps = 0;
  for (let k = w.from + 1; k <= w.to; k++) {
    if (on.clean[k] === 0) return undefined;
    ms += on.ms[k]!;
    sequences += on.sequences[k]!;
    kv += on.kv[k]!;
    if (!on.isFull(k)) prefillSteps++;
  }
  if (prefillSteps === 0) return undefined;
  let prefillTokens = 0;
  let prefillSquares = 0;
  for (const i of w.streams) {
    const { input, cached } = streams[i]!;
    prefillTokens += input - cached;
    prefillSquares += input * input - cached * cached;
  }
  // As many steps as the prompts need, or as they ended in: an earlier one of the stretch may have gone without them.
  const ends = new Set(w.streams.map((i) => on.firstIn[i])).size;
  prefillSteps = Math.min(prefillSteps, Math.max(ends, Math.ceil(prefillTokens / on.budget)));
  return {
    kind: 'prefill',
    t: on.times[w.to]!,
    ms,
    steps,
    prefillSteps,
    sequences,
    kv,
    prefillTokens,
    prefillSquares,
    entry: 0,
  };
}

/** First index whose value is at or above `x`. */
function lowerBound(sorted: Float64Array, x: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (sorted[mid]! < x) low = mid + 1;
    else high = mid;
  }
  return low;
}
