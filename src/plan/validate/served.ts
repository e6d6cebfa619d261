/**
 * Served measurements of others (mean TTFT and TPOT of a closed loop) against the model: every row simulated at its
 * concurrency from a simultaneous start. Rows repeat, so they are deduplicated; what the repeats differ by is the floor no
 * model can beat. Beside the fit on all rows stand refits with one model, or one accelerator, left out.
 */
import { InputError } from '../../base/errors.ts';
import { keyedSource } from '../../base/random.ts';
import type { Millis } from '../../base/units.ts';
import type { Offer, Workload } from '../../core/request.ts';
import { accelerator } from '../../model/accelerator.ts';
import { calibrated, SERVED_FRONTEND_MS } from '../../model/calibrated.ts';
import { type Deployment, deployment } from '../../model/deployment.ts';
import { parseDtype } from '../../model/dtype.ts';
import { ENGINE_NAMES, type EngineName } from '../../model/engines.ts';
import { model } from '../../model/lookup.ts';
import type { StepModel } from '../../model/step.ts';
import { ContinuousReplica } from '../../sim/continuous.ts';
import { limitsFor } from '../../sim/limits.ts';
import { simulate } from '../../sim/simulate.ts';
import { median } from './interference.ts';

export interface ServedRow {
  readonly on: Deployment;
  readonly engine: string;
  /** As the table says it; empty: not stated. */
  readonly precision: string;
  readonly concurrency: number;
  readonly input: number;
  readonly output: number;
  readonly ttft: Millis;
  readonly tpot: Millis;
}

export interface ServedTable {
  /** One a configuration: the median of its repeats. */
  readonly rows: readonly ServedRow[];
  readonly read: number;
  /** Why rows were left out, with how many. */
  readonly left: ReadonlyMap<string, number>;
  /** Relative spread (largest over smallest, less 1) of TPOT and TTFT of configurations measured more than once. */
  readonly floor: { readonly configurations: number; readonly tpot: Floor; readonly ttft: Floor };
}

export interface Floor {
  readonly p50: number;
  readonly p90: number;
}

const COLUMNS = [
  'silicon_data_source',
  'backend',
  'model_path',
  'system',
  'precision',
  'mode',
  'isl',
  'osl',
  'tp_size',
  'attention_dp_size',
  'silicon_ttft_ms',
  'silicon_tpot_ms',
];

/** @throws InputError naming the column that is missing. */
export function readServed(csv: string, where: string): ServedTable {
  const [head = '', ...lines] = csv.trim().split('\n');
  const names = head.trim().split(',');
  for (const name of COLUMNS) {
    if (!names.includes(name))
      throw new InputError(`${where} lacks the column '${name}'; give the table of served measurements`);
  }
  const left = new Map<string, number>();
  const leave = (why: string): void => void left.set(why, (left.get(why) ?? 0) + 1);
  const groups = new Map<string, ServedRow[]>();
  for (const line of lines) {
    const cells = line.trim().split(',');
    const cell = (name: string): string => cells[names.indexOf(name)] ?? '';
    const concurrency = Number(/silicon_concurrency=(\d+)/.exec(cell('silicon_data_source'))?.[1] ?? Number.NaN);
    const tp = Number(cell('tp_size'));
    const dp = Number(cell('attention_dp_size')) || 1;
    if (cell('mode') !== 'agg')
      leave('prefill and decode on pools of their own: the table does not say how their rates were matched');
    else if (!(concurrency >= 1)) leave('no concurrency stated');
    else if (tp * dp > 8) leave('more than 8 devices');
    else {
      const row = rowOf(cell, concurrency, tp, dp, leave);
      if (!row) continue;
      const { on } = row;
      const key = [
        on.model.name,
        on.accelerator.id,
        row.engine,
        row.precision,
        tp,
        dp,
        concurrency,
        row.input,
        row.output,
      ].join();
      const group = groups.get(key);
      if (group) group.push(row);
      else groups.set(key, [row]);
    }
  }
  const repeated = [...groups.values()].filter((g) => g.length > 1);
  const spread = (of: (r: ServedRow) => number): Floor => {
    const all = repeated.map((g) => Math.max(...g.map(of)) / Math.min(...g.map(of)) - 1).sort((a, b) => a - b);
    return { p50: all[Math.floor(all.length / 2)] ?? 0, p90: all[Math.floor(all.length * 0.9)] ?? 0 };
  };
  return {
    rows: [...groups.values()].map((g) => ({
      ...(g[0] as ServedRow),
      ttft: median(g.map((r) => r.ttft)),
      tpot: median(g.map((r) => r.tpot)),
    })),
    read: lines.length,
    left,
    floor: { configurations: repeated.length, tpot: spread((r) => r.tpot), ttft: spread((r) => r.ttft) },
  };
}

function rowOf(
  cell: (name: string) => string,
  concurrency: number,
  tp: number,
  dp: number,
  leave: (why: string) => void,
): ServedRow | undefined {
  try {
    const m = model(cell('model_path').replace('zhipuai', 'zai-org'));
    const precision = cell('precision');
    // A blank precision is unknown: the published one is assumed.
    const weights =
      precision === '' || precision === 'int4' || m.expertWeights ? m.weights : parseDtype(precision, 'precision');
    const engine = cell('backend');
    const kv = engine === 'trtllm' && precision.startsWith('fp') ? 'fp8' : 'bf16';
    const on = deployment(m, accelerator(cell('system').replace('_', '-')), { tp, dp, weights, kv });
    const [input, output, ttft, tpot] = ['isl', 'osl', 'silicon_ttft_ms', 'silicon_tpot_ms'].map((c) =>
      Number(cell(c)),
    ) as [number, number, number, number];
    if (!(input > 0 && output > 1 && ttft > 0 && tpot > 0)) {
      leave('a length or a time is missing');
      return undefined;
    }
    limitsFor(on);
    return { on, engine, precision, concurrency, input, output, ttft, tpot };
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    leave(
      /^unknown model/.test(error.message)
        ? 'a model that is not modelled'
        : /no room for KV/.test(error.message)
          ? 'said to run where its weights do not fit'
          : 'a system or parallelism that is not modelled',
    );
    return undefined;
  }
}

/** Rounds of the concurrency that are simulated. */
const ROUNDS = 6;

/** Prompt tokens a step, of each attention rank: the default of vLLM's and SGLang's servers. */
export const PROMPT_BUDGET = 8192;

const POOLED = { frontendMs: SERVED_FRONTEND_MS, frontendTokenUs: 0 };

/** Mean TTFT and TPOT of the row's closed loop; lengths within ±10 %, so that requests fall out of step. */
export function simulatedRow(
  row: ServedRow,
  step: StepModel,
  frontend: { readonly frontendMs: Millis; readonly frontendTokenUs: number } = POOLED,
): { readonly ttft: Millis; readonly tpot: Millis } {
  const total = ROUNDS * row.concurrency + 8;
  const jitter = keyedSource(1, 'served-lengths');
  let next = 0;
  const offer = (at: Millis): Offer => {
    const operation = next++;
    const outputTokens = Math.max(2, Math.round(row.output * (0.9 + 0.2 * jitter(operation)())));
    return {
      at,
      spec: {
        operation,
        attempt: 0,
        class: 'default',
        inputTokens: row.input,
        outputTokens,
        choices: 1,
        stream: true,
        ignoreEos: true,
      },
    };
  };
  const workload: Workload = {
    next: () => (next < row.concurrency ? offer(0) : undefined),
    ended: (_, t) => (next < total ? [offer(t)] : []),
  };
  let ttft = 0;
  let tpot = 0;
  let n = 0;
  const limits = limitsFor(row.on, {
    maxSeqs: 1024 * row.on.dp,
    maxBatchedTokens: PROMPT_BUDGET * row.on.dp,
    prefixCaching: false,
    maxLength: Number.POSITIVE_INFINITY,
  });
  simulate(workload, new ContinuousReplica(step, limits), ({ scheduled, finished: f }) => {
    if (!f) return;
    ttft += f.firstToken - scheduled;
    tpot += (f.lastToken - f.firstToken) / (f.generated - 1);
    n++;
  });
  return { ttft: ttft / n + frontend.frontendMs + (frontend.frontendTokenUs * row.input) / 1000, tpot: tpot / n };
}

/** What a row is simulated with: step times, and what its engine's frontend adds to TTFT. */
export interface RowModel {
  readonly step: StepModel;
  readonly frontendMs: Millis;
  readonly frontendTokenUs: number;
}

/** The fit that the model carries, of the row's engine where it knows it. */
export function calibratedFor({ on, engine }: ServedRow): RowModel {
  return calibrated(on, engineOf(engine));
}

export function engineOf(backend: string): EngineName | undefined {
  return ENGINE_NAMES.find((e) => e === backend);
}

export interface RowError {
  readonly row: ServedRow;
  /** Simulated over measured, less 1. */
  readonly ttft: number;
  readonly tpot: number;
}

export function rowErrors(rows: readonly ServedRow[], modelOf: (row: ServedRow) => RowModel): RowError[] {
  return rows.flatMap((row) => {
    const m = modelOf(row);
    const s = simulatedRow(row, m.step, m);
    return Number.isFinite(s.tpot) ? [{ row, ttft: s.ttft / row.ttft - 1, tpot: s.tpot / row.tpot - 1 }] : [];
  });
}

/** Why a row's TTFT is not scored; undefined where it is. It is reported all the same. */
export function whyUnscored({ concurrency, precision }: ServedRow): string | undefined {
  if (precision === '') return 'the precision is not stated, and the time of a prompt hangs on it';
  if (concurrency > 256)
    return 'more than 256 at once, and the batch limit is not stated: TTFT is then mostly the queue';
  return undefined;
}

/** A batch that the engine holds at once, with its precision stated: what TTFT is scored on. */
export const ttftScored = (row: ServedRow): boolean => whyUnscored(row) === undefined;

export interface ErrorSummary {
  readonly rows: number;
  readonly tpot: number;
  /** Signed median: which way the model errs. */
  readonly tpotBias: number;
  readonly ttft: number | null;
  readonly ttftRows: number;
}

export function summaryOfErrors(errors: readonly RowError[]): ErrorSummary {
  const scored = errors.filter((e) => ttftScored(e.row));
  return {
    rows: errors.length,
    tpot: median(errors.map((e) => Math.abs(e.tpot))),
    tpotBias: median(errors.map((e) => e.tpot)),
    ttft: scored.length > 0 ? median(scored.map((e) => Math.abs(e.ttft))) : null,
    ttftRows: scored.length,
  };
}

/** Errors by a key of the row, most rows first. */
export function byKey(errors: readonly RowError[], key: (row: ServedRow) => string): Map<string, ErrorSummary> {
  const groups = new Map<string, RowError[]>();
  for (const e of errors) {
    const k = key(e.row);
    const group = groups.get(k);
    if (group) group.push(e);
    else groups.set(k, [e]);
  }
  return new Map([...groups].sort((a, b) => b[1].length - a[1].length).map(([k, g]) => [k, summaryOfErrors(g)]));
}
