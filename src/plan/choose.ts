/** From what each candidate can do to what to buy: replicas with headroom, GPUs, cost, the frontier, and why others lose. */
import { formatDuration, trim } from '../base/units.ts';
import type { Evaluated } from './evaluate.ts';
import { labelOf, type PlanAsk } from './options.ts';

export interface PlanRow {
  readonly gpu: string;
  readonly tp: number;
  readonly weights: string;
  readonly kv: string;
  readonly chunk: number;
  readonly cap: number;
  readonly cap_bound: Evaluated['capBound'];
  readonly basis: Evaluated['basis'];
  readonly rate_low: number | null;
  readonly rate_high: number | null;
  /** Rate the row is planned on: the confirmed low end, or where steering ended. 0 when infeasible. */
  readonly rate: number;
  readonly confirmed: boolean;
  readonly replicas: number | null;
  readonly gpus: number | null;
  readonly cost_per_hour: number | null;
  readonly attainment: number | null;
  readonly ttft_p90_ms: number | null;
  readonly tpot_p90_ms: number | null;
  readonly tokens_per_s: number | null;
  readonly binding: string | null;
  /** What of the replica gives out first, and in words. */
  readonly cause: Cause;
  readonly cause_text: string;
  readonly frontier: boolean;
  readonly why: string;
  readonly beyond: readonly string[];
}

export function rowsOf(ask: PlanAsk, all: readonly Evaluated[], prices: ReadonlyMap<string, number>): PlanRow[] {
  const rows = all.map((e) => rowOf(ask, e, prices));
  const money = rows.every((r) => r.cost_per_hour !== null || r.gpus === null);
  const size = (r: PlanRow): number => (money ? r.cost_per_hour : r.gpus) ?? Number.POSITIVE_INFINITY;
  const feasible = rows.filter((r) => r.gpus !== null);
  const best = feasible.reduce<PlanRow | undefined>((a, r) => (!a || size(r) < size(a) ? r : a), undefined);
  return rows
    .map((r) => ({
      ...r,
      frontier: r.gpus !== null && !feasible.some((o) => dominates(o, r, size)),
      why: whyOf(r, best, size, money),
    }))
    .sort((a, b) => size(a) - size(b) || (a.tpot_p90_ms ?? 0) - (b.tpot_p90_ms ?? 0));
}

function rowOf(ask: PlanAsk, e: Evaluated, prices: ReadonlyMap<string, number>): PlanRow {
  const { candidate: c } = e;
  const rate = e.low ?? e.steer ?? 0;
  // Headroom is kept free on every replica, so that one burst, or one replica lost, is not the end of the contract.
  const usable = rate * (1 - ask.headroom);
  const replicas = usable > 0 ? Math.ceil(ask.rate / usable) : null;
  const gpus = replicas === null ? null : replicas * c.tp;
  const price = prices.get(c.gpu.id);
  const cause = causeOf(ask, e);
  return {
    gpu: c.gpu.id,
    tp: c.tp,
    weights: c.weights,
    kv: c.kv,
    chunk: c.chunk,
    cap: e.cap,
    cap_bound: e.capBound,
    basis: e.basis,
    rate_low: e.low,
    rate_high: e.high,
    rate,
    confirmed: e.confirmed,
    replicas,
    gpus,
    cost_per_hour: gpus === null || price === undefined ? null : gpus * price,
    attainment: e.attainment,
    ttft_p90_ms: e.ttftP90,
    tpot_p90_ms: e.tpotP90,
    tokens_per_s: e.tokensPerSecond,
    binding: e.binding,
    cause: cause.cause,
    cause_text: cause.text,
    frontier: false,
    why: '',
    beyond: e.beyond,
  };
}

/** Cheaper (or as cheap) and no slower to the user in either sense, and better in one. */
function dominates(a: PlanRow, b: PlanRow, size: (r: PlanRow) => number): boolean {
  const x = [size(a), a.ttft_p90_ms ?? 0, a.tpot_p90_ms ?? 0];
  const y = [size(b), b.ttft_p90_ms ?? 0, b.tpot_p90_ms ?? 0];
  return x.every((v, i) => v <= y[i]!) && x.some((v, i) => v < y[i]!);
}

function whyOf(r: PlanRow, best: PlanRow | undefined, size: (r: PlanRow) => number, money: boolean): string {
  if (r.gpus === null) return `infeasible at any rate: ${r.cause_text}`;
  if (r === best) {
    const held = r.cause_text ? `; bounded by ${r.cause_text}` : '';
    return `${money ? 'the cheapest that holds the contract' : 'the fewest GPUs that hold the contract'}${held}`;
  }
  if (best && size(r) === size(best))
    return `${money ? 'as cheap as the best' : 'as few GPUs as the best'}; bounded by ${r.cause_text}`;
  return `${trim(best ? size(r) / size(best) : 1, 3)}× the best; ${r.cause_text}`;
}

/** What of a replica gives out first. */
export type Cause = 'kv-pool' | 'tpot' | 'ttft-queueing' | 'compute' | 'other';

/** Above this share of the cap in use, requests wait for a place in the batch. */
const FULL = 0.7;

/**
 * Why no more load goes on a replica. A missed TTFT is a full batch (then what caps the batch is the cause), prompts that
 * take most of the limit by themselves, or prompts that queue for the steps there are.
 */
export function causeOf(ask: PlanAsk, e: Evaluated): { readonly cause: Cause; readonly text: string } {
  const { binding, cap, capBound } = e;
  const whose = e.bindingClass !== null && ask.contracts?.[e.bindingClass] ? ` of class ${e.bindingClass}` : '';
  const limits = (e.bindingClass !== null && ask.contracts?.[e.bindingClass]?.limits) || ask.contract.limits;
  if (capBound === 'kv-pool' && cap <= 1)
    return { cause: 'kv-pool', text: 'KV pool: hardly one sequence fits beside the weights' };
  if (e.end === 'infeasible') {
    const seen = binding === 'ttft' ? e.aloneTtftP90 : binding === 'tpot' ? e.tpotP90 : null;
    const text = `${binding ?? 'the contract'}${whose} is missed without load${seen === null ? '' : ` (p90 ${formatDuration(seen)})`}`;
    return {
      cause: binding === 'tpot' ? 'tpot' : binding === 'ttft' || binding === 'ttfa' ? 'compute' : 'other',
      text,
    };
  }
  if (binding === 'ttft' || binding === 'ttfa') {
    const limit = limits[binding];
    if (limit !== undefined && e.aloneTtftP90 !== null && e.aloneTtftP90 > limit / 2)
      return {
        cause: 'compute',
        text: `compute: a lone prompt already takes ${formatDuration(e.aloneTtftP90)} of the ${formatDuration(limit)}${whose}`,
      };
    if (e.occupied !== null && e.occupied >= FULL) {
      if (capBound === 'kv-pool')
        return {
          cause: 'kv-pool',
          text: `KV pool: it holds ${cap} sequences, and requests queue for a place (${binding}${whose})`,
        };
      if (capBound === 'tpot')
        return {
          cause: 'tpot',
          text: `TPOT: the batch is capped at ${cap} to keep the pace, and requests queue for a place (${binding}${whose})`,
        };
      return { cause: 'ttft-queueing', text: `TTFT: all ${cap} places are taken, and requests queue${whose}` };
    }
    return {
      cause: 'ttft-queueing',
      text: `TTFT: prompts queue for the steps there are, at ${percentOf(e.occupied)} of ${cap} places${whose}`,
    };
  }
  if (binding === 'tpot' || binding === 'gap' || binding === 'smoothness') {
    const name = binding === 'tpot' ? 'TPOT' : binding;
    return {
      cause: 'tpot',
      text: `${name}: steps get too slow, prompts in between included, near ${cap} sequences${whose}`,
    };
  }
  if (binding === null) return { cause: 'compute', text: 'compute: the most its steps can do' };
  return { cause: 'other', text: `${binding} is missed first${whose}` };
}

const percentOf = (share: number | null): string => (share === null ? '?' : `${Math.round(100 * share)} %`);

export const rowLabel = (r: PlanRow): string =>
  labelOf({ gpu: { id: r.gpu } as never, tp: r.tp, weights: r.weights as never, kv: r.kv as never });

const CSV: readonly (keyof PlanRow)[] = [
  'gpu',
  'tp',
  'weights',
  'kv',
  'chunk',
  'cap',
  'cap_bound',
  'basis',
  'rate',
  'rate_low',
  'rate_high',
  'confirmed',
  'replicas',
  'gpus',
  'cost_per_hour',
  'attainment',
  'ttft_p90_ms',
  'tpot_p90_ms',
  'tokens_per_s',
  'binding',
  'cause',
  'frontier',
  'why',
];

export function planCsv(rows: readonly PlanRow[]): string {
  const cell = (v: unknown): string =>
    v === null ? '' : /[",\n]/.test(String(v)) ? `"${String(v).replaceAll('"', '""')}"` : String(v);
  return `${CSV.join(',')}\n${rows.map((r) => CSV.map((k) => cell(r[k])).join(',')).join('\n')}\n`;
}
