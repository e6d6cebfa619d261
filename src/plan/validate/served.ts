/**
 * Served measurements of others (mean TTFT and TPOT of a closed loop) against the model: every row simulated at its
 * concurrency from a simultaneous start. Beside the fit on all rows stand refits with one model, or one accelerator, left out.
 */
import { keyedSource } from '../../base/random.ts';
import type { Millis } from '../../base/units.ts';
import type { Offer, Workload } from '../../core/request.ts';
import { calibrated, SERVED_FRONTEND_MS } from '../../model/calibrated.ts';
import { ENGINE_NAMES, type EngineName } from '../../model/engines.ts';
import type { StepModel } from '../../model/step.ts';
import { ContinuousReplica } from '../../sim/continuous.ts';
import { limitsFor } from '../../sim/limits.ts';
import { simulate } from '../../sim/simulate.ts';
import { median } from './interference.ts';
import type { ServedRow } from './served-table.ts';

export type { ServedRow, ServedTable } from './served-table.ts';

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

/** The fit that the model carries, of the row's engine; of an engine it does not know, vLLM's. */
export function calibratedFor({ on, engine }: ServedRow): RowModel {
  return calibrated(on, engineOf(engine) ?? 'vllm');
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
