/**
 * The table of served measurements, read. Rows repeat, so they are deduplicated; what the repeats differ by is the floor no
 * model can beat. Columns may stand in any order, with others between them; what cannot be placed is counted with its reason.
 */
import { InputError, oneLine } from '../../base/errors.ts';
import type { Millis } from '../../base/units.ts';
import { accelerator } from '../../model/accelerator.ts';
import { type Deployment, deployment } from '../../model/deployment.ts';
import { type Dtype, parseDtype } from '../../model/dtype.ts';
import { model } from '../../model/lookup.ts';
import type { ModelShape } from '../../model/shape.ts';
import { limitsFor } from '../../sim/limits.ts';
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

const NEEDED = ['model_path', 'system', 'tp_size', 'isl', 'osl', 'silicon_ttft_ms', 'silicon_tpot_ms'] as const;
/** Where a row says how many requests were open: a column of its own, or a field of the text that says where it is from. */
const CONCURRENCY = ['concurrency', 'silicon_concurrency'] as const;
/** Reasons named one by one; the rest go together. */
const MOST_REASONS = 60;

type Cell = (name: string) => string;

/** @throws InputError naming the column that is missing. */
export function readServed(csv: string, where: string): ServedTable {
  const [head = '', ...lines] = csv
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .filter((line) => line.trim() !== '');
  const places = new Map(cellsOf(head).map((name, i) => [name.trim().toLowerCase(), i]));
  for (const name of NEEDED) {
    if (!places.has(name))
      throw new InputError(`${where} lacks the column '${name}'; give the table of served measurements`);
  }
  if (![...CONCURRENCY, 'silicon_data_source'].some((name) => places.has(name))) {
    throw new InputError(
      `${where} lacks the column 'silicon_data_source', which tells the concurrency (or 'concurrency'); give the table of served measurements`,
    );
  }
  const left = new Map<string, number>();
  const leave = (why: string): void => {
    const key = left.has(why) || left.size < MOST_REASONS ? why : 'for other reasons';
    left.set(key, (left.get(key) ?? 0) + 1);
  };
  const groups = new Map<string, ServedRow[]>();
  for (const line of lines) {
    const cells = cellsOf(line);
    const row = rowOf((name) => (cells[places.get(name) ?? -1] ?? '').trim(), leave);
    if (!row) continue;
    const { model: m, accelerator: gpu, weights, tp, dp, pp } = row.on;
    const key = [
      m.name,
      gpu.id,
      row.engine,
      row.precision,
      weights,
      tp,
      dp,
      pp,
      row.concurrency,
      row.input,
      row.output,
    ].join();
    const group = groups.get(key);
    if (group) group.push(row);
    else groups.set(key, [row]);
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

/** A line's cells; one with commas stands in quotes. */
function cellsOf(line: string): string[] {
  if (!line.includes('"')) return line.split(',');
  return Array.from(line.matchAll(/("(?:[^"]|"")*"|[^,]*)(?:,|$)/g), ([, cell = '']) =>
    cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell,
  );
}

function rowOf(cell: Cell, leave: (why: string) => void): ServedRow | undefined {
  const tp = Number(cell('tp_size'));
  const [dp, pp] = ['attention_dp_size', 'pp_size'].map((name) => Number(cell(name)) || 1) as [number, number];
  const concurrency = concurrencyOf(cell, dp);
  const split = cell('mode') === '' ? cell('decode_tp_size') !== '' : !/^agg/i.test(cell('mode'));
  if (split)
    return void leave('prefill and decode on pools of their own: the table does not say how their rates were matched');
  if (!(concurrency >= 1)) return void leave('no concurrency stated');
  if (!(tp >= 1)) return void leave('no parallelism stated');
  if (tp * dp * pp > 8) return void leave('more than 8 devices');
  const [input, output, ttft, tpot] = ['isl', 'osl', 'silicon_ttft_ms', 'silicon_tpot_ms'].map((c) =>
    Number(cell(c)),
  ) as [number, number, number, number];
  if (!(input > 0 && output > 1 && ttft > 0 && tpot > 0)) return void leave('a length or a time is missing');
  try {
    const m = model(cell('model_path'));
    const engine = engineName(cell('backend'));
    const precision = cell('precision') || cell('gemm_quant_mode');
    // What serves FP8 or FP4 weights by TensorRT-LLM keeps KV in FP8, as the checkpoints say.
    const kv = engine === 'trtllm' && /^(nv|mx)?fp[48]/.test(precision) ? 'fp8' : 'bf16';
    const on = deployment(m, accelerator(cell('system')), { tp, dp, pp, weights: weightsOf(m, precision), kv });
    limitsFor(on);
    return { on, engine, precision, concurrency, input, output, ttft, tpot };
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    leave(
      /no room for KV/.test(error.message)
        ? 'said to run where its weights do not fit'
        : oneLine(error.message.split(/[;(]/)[0] as string, 100).trim(),
    );
    return undefined;
  }
}

/**
 * Requests open on one replica. The table's concurrency is that of the whole service, `batch_size` what one attention rank
 * of a replica gets of it: where the first is a multiple of the second, it is by the number of replicas.
 */
function concurrencyOf(cell: Cell, dp: number): number {
  const stated = CONCURRENCY.map(cell).find((text) => text !== '');
  const whole = Number(stated ?? /concurrency=(\d+)/.exec(cell('silicon_data_source'))?.[1] ?? Number.NaN);
  const each = Number(cell('batch_size')) * dp;
  return each >= 1 && whole > each && whole % each === 0 ? each : whole;
}

/**
 * A blank precision is unknown: the published one is assumed. Of a model published with experts in a precision of their own
 * the stated one names those.
 */
function weightsOf(m: ModelShape, precision: string): Dtype {
  return precision === '' || m.expertWeights ? m.weights : parseDtype(precision, 'precision');
}

/** `vLLM`, `TensorRT-LLM`, `trtllm` … as the fits name them. */
function engineName(backend: string): string {
  const bare = backend.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
  return bare === 'tensorrtllm' ? 'trtllm' : bare;
}
