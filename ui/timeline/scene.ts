/** From columns to a timeline: which requests, over what time, as rows. */
import { LIMIT_NAMES, type LimitName } from '../../src/core/contract.ts';
import { LEDGER, type LedgerClass } from '../../src/core/judge.ts';
import { type Chunks, IN_COHORT, type Packed } from '../../src/dashboard/packed/index.ts';
import { rgba } from '../pixels.ts';
import type { Judgement } from '../state.ts';
import { color } from '../theme.ts';
import type { Rows } from './rows.ts';

/** Empty where anything will do. */
export interface Filter {
  readonly outcome: string;
  readonly limit: string;
  readonly class: string;
  readonly cohort: boolean;
}

export function filterRows({ packed: p, judged }: Judgement, f: Filter): Uint32Array {
  const outcome = f.outcome === '' ? -1 : LEDGER.indexOf(f.outcome as LedgerClass);
  const bit = f.limit === '' ? 0 : 1 << LIMIT_NAMES.indexOf(f.limit as LimitName);
  const cls = f.class === '' ? -1 : p.classes.indexOf(f.class);
  const kept = new Uint32Array(p.rows);
  let n = 0;
  for (let i = 0; i < p.rows; i++) {
    if (outcome >= 0 && judged.class[i] !== outcome) continue;
    if (bit !== 0 && (judged.missed[i]! & bit) === 0) continue;
    if (cls >= 0 && p.class[i] !== cls) continue;
    if (f.cohort && (p.flags[i]! & IN_COHORT) === 0) continue;
    kept[n++] = i;
  }
  return kept.slice(0, n);
}

/** Where a gap is worth a colour: the gap limit, else four times the TPOT limit, else four times the median TPOT. */
export function defaultStall({ packed: p, contract }: Judgement): number {
  const { gap, tpot } = contract.limits;
  if (gap !== undefined) return gap;
  if (tpot !== undefined) return Number((4 * tpot).toPrecision(3));
  const some = Float64Array.from(p.tpot.subarray(0, 2000))
    .filter((x) => !Number.isNaN(x))
    .sort();
  return some.length > 0 ? Number((4 * some[some.length >> 1]!).toPrecision(3)) : 200;
}

/** The time that some requests take up together, with a little room. */
export function extent(p: Packed, shown: Uint32Array): { readonly from: number; readonly to: number } {
  let from = Number.POSITIVE_INFINITY;
  let to = Number.NEGATIVE_INFINITY;
  for (const i of shown) {
    const at = p.scheduled[i]!;
    const e = p.e2e[i]!;
    from = Math.min(from, at);
    to = Math.max(to, at + (Number.isNaN(e) ? 0 : e));
  }
  if (!(to > from)) return { from: Number.isFinite(from) ? from : 0, to: (Number.isFinite(from) ? from : 0) + 1 };
  return { from: from - (to - from) * 0.01, to: to + (to - from) * 0.01 };
}

/** The rows of some requests, with the ticks that are here. Verdicts play no part: a moved limit changes colours alone. */
export function rowsOf(
  p: Packed,
  shown: Uint32Array,
  chunks: Chunks | undefined,
): { readonly rows: Rows; readonly withTicks: number; readonly streams: number } {
  const n = shown.length;
  const make = (): Float64Array => new Float64Array(n);
  const [scheduled, sent, first, ended] = [make(), make(), make(), make()];
  const start = new Uint32Array(n);
  const end = new Uint32Array(n);
  const at = new Map<number, number>();
  chunks?.operation.forEach((op, r) => void at.set(op, r));
  let withTicks = 0;
  let streams = 0;
  for (let r = 0; r < n; r++) {
    const i = shown[r]!;
    const t = p.scheduled[i]!;
    scheduled[r] = t;
    sent[r] = t + p.lag[i]!;
    first[r] = t + p.ttft[i]!;
    const e = p.e2e[i]!;
    const last = p.latency[i]!;
    ended[r] = t + (Number.isNaN(e) ? (Number.isNaN(last) ? 0 : last) : e);
    if (p.chunks[i]! > 0) streams++;
    const c = at.get(p.operation[i]!);
    if (chunks && c !== undefined) {
      start[r] = c === 0 ? 0 : chunks.end[c - 1]!;
      end[r] = chunks.end[c]!;
      if (end[r]! > start[r]!) withTicks++;
    }
  }
  return {
    rows: { scheduled, sent, first, ended, start, end, us: chunks?.us ?? new Uint32Array(0) },
    withTicks,
    streams,
  };
}

export function outcomeColors({ judged }: Judgement, shown: Uint32Array): Uint32Array {
  const palette = LEDGER.map((c) => rgba(color(`--c-${c}`)));
  return Uint32Array.from(shown, (i) => palette[judged.class[i]!]!);
}
