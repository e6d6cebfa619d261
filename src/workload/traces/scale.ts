/**
 * A trace made faster or slower. In time: every interval by the same factor, so the pattern runs at another speed. In rate:
 * the clock is kept, and requests are left out, or others like them added, so that bursts and quiet hours stay where they
 * are. Both are plain: a trace that was scaled says so.
 */
import { InputError } from '../../base/errors.ts';
import { keyedSource } from '../../base/random.ts';
import { trim } from '../../base/units.ts';
import { picked, sorted, type Trace, traceSpan } from './trace.ts';

export interface TraceScale {
  /** Every interval is multiplied by this: 0.5 plays twice as fast. */
  readonly time?: number;
  /** Requests per second are multiplied by this: 0.5 keeps each with chance one half. */
  readonly rate?: number;
}

/** @throws InputError for a factor that is not above 0, or leaves nothing. */
export function scaleTrace(trace: Trace, scale: TraceScale, seed: number): Trace {
  const { time = 1, rate = 1 } = scale;
  for (const [flag, x] of [
    ['--time-scale', time],
    ['--rate-scale', rate],
  ] as const) {
    if (!(x > 0) || !Number.isFinite(x)) throw new InputError(`${flag}: ${x} is not a factor above 0`);
  }
  if (rate !== 1 && trace.sessions) {
    throw new InputError('--rate-scale: would tear turns from their sessions; scale in time, or take a --slice');
  }
  let out = trace;
  if (rate !== 1) out = rated(out, rate, seed);
  if (time !== 1) {
    // Rounded to whole microseconds, as every stamp is.
    out = { ...out, at: out.at.map((t) => Math.round(t * time)) };
    if (out.sessions)
      out = { ...out, sessions: { ...out.sessions, elapsed: out.sessions.elapsed.map((t) => t * time) } };
    out = { ...out, notes: [...out.notes, `scaled in time by ${trim(time, 6)}`] };
  }
  return out;
}

/**
 * A whole number of copies of each request and a fraction by keyed chance. Copies come an exponential delay of one mean gap
 * after the original, so that they follow its pattern without arriving with it, and have prefixes of their own.
 */
function rated(trace: Trace, rate: number, seed: number): Trace {
  if (trace.length * rate > 20_000_000) throw new InputError(`--rate-scale: ${rate} makes more than 20000000 requests`);
  const chance = keyedSource(seed, 'trace-rate');
  const delay = keyedSource(seed, 'trace-copy');
  const gap = traceSpan(trace) / trace.length;
  const whole = Math.floor(rate);
  const from: number[] = [];
  const at: number[] = [];
  const copy: number[] = [];
  for (let i = 0; i < trace.length; i++) {
    const n = whole + (chance(i)() < rate - whole ? 1 : 0);
    for (let k = 0; k < n; k++) {
      from.push(i);
      at.push(trace.at[i]! + (k === 0 ? 0 : Math.round(-gap * Math.log1p(-delay(i * 1024 + k)()))));
      copy.push(k);
    }
  }
  if (from.length === 0) throw new InputError(`--rate-scale: ${rate} leaves no request of ${trace.length}`);
  const chosen = picked(trace, Uint32Array.from(from));
  const { blocks } = chosen;
  if (blocks && whole >= 1) {
    const most = blocks.ids.reduce((a, b) => Math.max(a, b), 0) + 1;
    for (let i = 0; i < chosen.length; i++) {
      for (let b = blocks.offsets[i]!; b < blocks.offsets[i + 1]!; b++) blocks.ids[b]! += most * copy[i]!;
    }
  }
  const moved = sorted({ ...chosen, at: Float64Array.from(at) });
  const first = moved.at[0]!;
  return {
    ...moved,
    at: moved.at.map((t) => t - first),
    notes: [...moved.notes, `scaled in rate by ${trim(rate, 6)}: ${moved.length} requests of ${trace.length}`],
  };
}
