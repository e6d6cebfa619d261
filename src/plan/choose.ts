/** From what each candidate can do to what to buy: replicas with headroom, GPUs, cost, the frontier, and why others lose. */
import { trim } from '../base/units.ts';
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
  if (r.gpus === null) {
    const limit = r.binding ?? 'the contract';
    return r.cap_bound === 'kv-pool' && r.cap <= 1
      ? 'KV pool: hardly one sequence fits beside the weights'
      : `infeasible at any rate: ${limit} is missed without load`;
  }
  if (r === best) return money ? 'the cheapest that holds the contract' : 'the fewest GPUs that hold the contract';
  if (best && size(r) === size(best)) return money ? 'as cheap as the best' : 'as few GPUs as the best';
  const factor = best ? trim(size(r) / size(best), 3) : '1';
  const cause =
    r.cap_bound === 'kv-pool' && r.cap < 64
      ? `KV pool: only ${r.cap} sequences fit`
      : r.binding === 'ttft' || r.binding === 'ttfa'
        ? 'TTFT: requests queue, or prompts take too long to compute'
        : r.binding === 'tpot' || r.binding === 'gap' || r.binding === 'smoothness'
          ? `${r.binding}: steps are too slow beyond ${r.cap} sequences`
          : r.binding
            ? `${r.binding} is missed first`
            : 'compute';
  return `${factor}× the best; ${cause}`;
}

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
  'frontier',
  'why',
];

export function planCsv(rows: readonly PlanRow[]): string {
  const cell = (v: unknown): string =>
    v === null ? '' : /[",\n]/.test(String(v)) ? `"${String(v).replaceAll('"', '""')}"` : String(v);
  return `${CSV.join(',')}\n${rows.map((r) => CSV.map((k) => cell(r[k])).join(',')).join('\n')}\n`;
}
