/** `goodput.plan/1`, read leniently: keys may be added, and what is not there is not shown. Pure. */
export interface PlanRow {
  readonly gpu: string;
  readonly tp: number;
  readonly weights: string;
  readonly kv: string;
  readonly chunk: number | null;
  readonly cap: number | null;
  readonly capBound: string;
  readonly rateLow: number | null;
  readonly rateHigh: number | null;
  readonly rate: number | null;
  readonly replicas: number | null;
  readonly gpus: number | null;
  readonly cost: number | null;
  readonly ttft: number | null;
  readonly tpot: number | null;
  readonly isFrontier: boolean;
  readonly why: string;
}

export interface ToldPlan {
  readonly model: string;
  readonly traffic: string;
  readonly rows: readonly PlanRow[];
  /** What is spent: cost an hour where every row that holds has a price, else GPUs. */
  readonly spend: 'cost' | 'gpus';
  readonly protect: readonly string[];
  readonly remarks: readonly string[];
}

const object = (x: unknown): Record<string, unknown> =>
  typeof x === 'object' && x !== null && !Array.isArray(x) ? (x as Record<string, unknown>) : {};
const list = (x: unknown): readonly unknown[] => (Array.isArray(x) ? x : []);
const number = (x: unknown): number | null => (typeof x === 'number' && Number.isFinite(x) ? x : null);
const text = (x: unknown): string => (typeof x === 'string' ? x : '');

/** @throws when it is no plan. */
export function planOf(value: unknown): ToldPlan {
  const p = object(value);
  if (p.schema !== 'goodput.plan/1' || !Array.isArray(p.rows)) {
    throw new Error('no plan: save the output of goodput plan --json');
  }
  const rows = p.rows.map((row): PlanRow => {
    const r = object(row);
    return {
      gpu: text(r.gpu),
      tp: number(r.tp) ?? 1,
      weights: text(r.weights),
      kv: text(r.kv),
      chunk: number(r.chunk),
      cap: number(r.cap),
      capBound: text(r.cap_bound),
      rateLow: number(r.rate_low),
      rateHigh: number(r.rate_high),
      rate: number(r.rate),
      replicas: number(r.replicas),
      gpus: number(r.gpus),
      cost: number(r.cost_per_hour),
      ttft: number(r.ttft_p90_ms),
      tpot: number(r.tpot_p90_ms),
      isFrontier: r.frontier === true,
      why: text(r.why),
    };
  });
  const holding = rows.filter((r) => r.gpus !== null);
  return {
    model: text(p.model),
    traffic: text(p.traffic),
    rows,
    spend: holding.length > 0 && holding.every((r) => r.cost !== null) ? 'cost' : 'gpus',
    protect: list(p.protect).map(String),
    remarks: list(p.remarks).map(String),
  };
}

/** `2 × h100-sxm fp8`. */
export const deploymentText = (r: PlanRow): string =>
  `${r.tp} × ${r.gpu} ${r.weights}${r.kv === '' || r.kv === 'bf16' ? '' : `, KV ${r.kv}`}`;
