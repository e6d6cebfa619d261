/** How far simulated requests are from those seen: as residuals of a fit, as one figure, and as errors for people. */
import type { FitError } from './fit-error.ts';
import type { Resimulated } from './resimulate.ts';
import type { Seen } from './seen.ts';

/** Below this a first token is the client's own time, ms. */
const TTFT_FLOOR = 0.5;

/** Log ratios, first tokens and then decode times; NaN where there is none. */
export function residuals(seen: readonly Seen[], sim: Resimulated): Float64Array {
  const n = seen.length;
  const r = new Float64Array(2 * n).fill(Number.NaN);
  for (let i = 0; i < n; i++) {
    const s = seen[i]!;
    r[i] = Math.log((sim.ttft[i]! + TTFT_FLOOR) / (Math.max(0, s.ttft) + TTFT_FLOOR));
    if (s.decode !== undefined) r[n + i] = Math.log(sim.decode[i]! / s.decode);
  }
  return r;
}

export function lossOf(seen: readonly Seen[], sim: Resimulated, gaps = false, pick?: (i: number) => boolean): number {
  const r = residuals(seen, sim);
  const n = seen.length;
  const sums = [0, 0, 0];
  const counts = [0, 0, 0];
  const add = (k: number, x: number): void => {
    if (Number.isNaN(x)) return;
    sums[k]! += Math.min(2, Math.abs(x));
    counts[k]!++;
  };
  for (let i = 0; i < n; i++) {
    if (pick && !pick(i)) continue;
    add(0, r[i]!);
    add(1, r[n + i]!);
    const { maxGap } = seen[i]!;
    if (gaps && maxGap !== undefined && maxGap > 0) add(2, Math.log(sim.maxGap[i]! / maxGap));
  }
  let loss = 0;
  let kinds = 0;
  for (let k = 0; k < 3; k++) {
    if (counts[k] === 0) continue;
    loss += sums[k]! / counts[k]!;
    kinds++;
  }
  return kinds > 0 ? loss / kinds : Number.POSITIVE_INFINITY;
}

/** `decode`: of a request's time a token; `prefill`: of its first token. */
export function errorsOf(seen: readonly Seen[], sim: Resimulated): FitError {
  const decode: number[] = [];
  const first: number[] = [];
  let measured = 0;
  let expected = 0;
  seen.forEach((s, i) => {
    if (!Number.isNaN(sim.ttft[i]!)) first.push(Math.abs(sim.ttft[i]! - s.ttft) / Math.max(TTFT_FLOOR, s.ttft));
    if (s.decode === undefined || Number.isNaN(sim.decode[i]!)) return;
    decode.push(Math.abs(sim.decode[i]! - s.decode) / s.decode);
    measured += s.decode;
    expected += sim.decode[i]!;
  });
  const middle = (v: number[]): number | null => (v.length > 0 ? v.sort((a, b) => a - b)[v.length >> 1]! : null);
  return {
    decode: middle(decode),
    prefill: middle(first),
    lone: null,
    bias: expected > 0 ? measured / expected - 1 : null,
    observations: decode.length + first.length,
  };
}
