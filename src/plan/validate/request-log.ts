/**
 * Request logs of a real engine, simulated: the same arrivals and lengths under the engine's own arguments. A few
 * coefficients are fitted on every other time block of one accelerator's run; the rest of it, and the whole run on the
 * other accelerator, are predicted, exchanging only catalogue bandwidth, FLOPs and the KV pool.
 */
import { InputError } from '../../base/errors.ts';
import type { Millis, Share } from '../../base/units.ts';
import type { Workload } from '../../core/request.ts';
import { SERVED_2026 } from '../../model/calibrated.ts';
import type { Deployment } from '../../model/deployment.ts';
import { ENGINES_2026 } from '../../model/engines.ts';
import { type Efficiencies, RooflineStepModel } from '../../model/roofline.ts';
import type { StepModel } from '../../model/step.ts';
import { ContinuousReplica } from '../../sim/continuous.ts';
import type { ReplicaLimits } from '../../sim/limits.ts';
import { simulate } from '../../sim/simulate.ts';
import { descend } from './interference.ts';

/** One request of a log, ms since the first came. */
export interface LoggedRequest {
  readonly input: number;
  readonly output: number;
  readonly queued: Millis;
  readonly scheduled: Millis;
  readonly firstToken: Millis;
  readonly lastToken: Millis;
}

export interface RequestLog {
  readonly name: string;
  readonly on: Deployment;
  readonly limits: ReplicaLimits;
  readonly requests: readonly LoggedRequest[];
}

/**
 * Reads the log's lines (times in seconds of one clock), in any order; those of requests that never came to an end, whose times
 * are null, are left out. @throws InputError naming the line and the field.
 */
export function readLog(jsonl: string, where: string): LoggedRequest[] {
  const rows = jsonl.split('\n').flatMap((line, i) => {
    if (line.trim() === '') return [];
    let row: Record<string, unknown>;
    try {
      row = JSON.parse(line) as Record<string, unknown>;
    } catch {
      throw new InputError(`${where}:${i + 1}: not JSON; give a requests.jsonl`);
    }
    if (TIMES.some((key) => row[key] === null) || row.output_toks === 0) return [];
    const number = (key: string): number => {
      const value = row[key];
      if (typeof value !== 'number' || !Number.isFinite(value)) {
        throw new InputError(`${where}:${i + 1}: '${key}' is not a number; give a requests.jsonl with vLLM's timings`);
      }
      return value;
    };
    return [
      {
        input: number('input_toks'),
        output: number('output_toks'),
        queued: number('queued_ts'),
        scheduled: number('scheduled_ts'),
        firstToken: number('first_token_ts'),
        lastToken: number('last_token_ts'),
      },
    ];
  });
  if (rows.length < LEAST_LOGGED) {
    throw new InputError(
      `${where}: ${rows.length} requests with times, ${LEAST_LOGGED} are needed to fit four coefficients; give the whole log`,
    );
  }
  rows.sort((a, b) => a.queued - b.queued);
  const origin = rows[0]?.queued ?? 0;
  const since = (t: number): Millis => 1000 * (t - origin);
  return rows.map((r) => ({
    ...r,
    queued: since(r.queued),
    scheduled: since(r.scheduled),
    firstToken: since(r.firstToken),
    lastToken: since(r.lastToken),
  }));
}

const TIMES = ['queued_ts', 'scheduled_ts', 'first_token_ts', 'last_token_ts'] as const;
const LEAST_LOGGED = 20;

/** The same requests as they come out of the simulator. */
export function replayed(log: RequestLog, step: StepModel): LoggedRequest[] {
  let i = 0;
  const { requests } = log;
  const workload: Workload = {
    next: () => {
      const r = requests[i];
      if (!r) return undefined;
      return {
        at: r.queued,
        spec: {
          operation: i++,
          attempt: 0,
          class: 'default',
          inputTokens: r.input,
          outputTokens: r.output,
          choices: 1,
          stream: true,
          ignoreEos: true,
        },
      };
    },
    ended: () => [],
  };
  const out: LoggedRequest[] = [];
  simulate(workload, new ContinuousReplica(step, log.limits), ({ spec, finished: f }) => {
    if (!f)
      throw new InputError(
        `${log.name}: request ${spec.operation} does not fit the engine that served it; check its KV blocks`,
      );
    out[spec.operation] = {
      input: spec.inputTokens,
      output: f.generated,
      queued: f.arrived,
      scheduled: f.scheduled,
      firstToken: f.firstToken,
      lastToken: f.lastToken,
    };
  });
  return out;
}

/** What a log is scored by: means over requests, ms, and the end of the last. */
export interface LogFigures {
  readonly makespan: Millis;
  readonly tpot: Millis;
  /** First token − scheduled: prefill and what it waited for in the batch. */
  readonly prefill: Millis;
  /** Scheduled − queued. */
  readonly queue: Millis;
  readonly ttft: Millis;
  readonly e2e: Millis;
}

export function figures(requests: readonly LoggedRequest[]): LogFigures {
  const mean = (of: (r: LoggedRequest) => number): number => requests.reduce((s, r) => s + of(r), 0) / requests.length;
  const several = requests.filter((r) => r.output > 1);
  return {
    makespan: Math.max(...requests.map((r) => r.lastToken)),
    tpot: several.reduce((s, r) => s + tpotOf(r), 0) / several.length,
    prefill: mean((r) => r.firstToken - r.scheduled),
    queue: mean((r) => r.scheduled - r.queued),
    ttft: mean((r) => r.firstToken - r.queued),
    e2e: mean((r) => r.lastToken - r.queued),
  };
}

export function tpotOf(r: LoggedRequest): Millis {
  return (r.lastToken - r.firstToken) / (r.output - 1);
}

/** Relative errors of simulated over logged figures, signed. */
export function errorsOf(simulated: LogFigures, logged: LogFigures): Record<keyof LogFigures, number> {
  const keys = Object.keys(logged) as (keyof LogFigures)[];
  return Object.fromEntries(keys.map((k) => [k, simulated[k] / logged[k] - 1])) as Record<keyof LogFigures, number>;
}

/** What is fitted: one share of bandwidth for weights and KV, one of FLOPs, and fixed costs a step and a sequence, µs. */
export interface LogFit {
  readonly memory: Share;
  readonly compute: Share;
  readonly stepUs: number;
  readonly sequenceUs: number;
}

export const LOG_START: LogFit = { memory: 0.8, compute: 0.6, stepUs: 1000, sequenceUs: 20 };

/** Bounds of the fit: no share of peak above 1. */
const BOUNDS: Readonly<Record<keyof LogFit, readonly [number, number]>> = {
  memory: [0.3, 1],
  compute: [0.15, 1],
  stepUs: [50, 8000],
  sequenceUs: [1, 400],
};

/**
 * The four, and what a log cannot tell: activations as the served rows pooled have them, experts, 4-bit weights and collectives
 * as those of vLLM, where what they reach of the peaks stands to what dense layers do as it does there.
 */
export function logModel(on: Deployment, fit: LogFit): StepModel {
  const base = { ...ENGINES_2026.vllm.efficiencies, activationBytes: SERVED_2026.activationBytes };
  const memory = fit.memory / base.linearMemory;
  const compute = fit.compute / base.linearCompute;
  const e: Efficiencies = {
    ...base,
    source: 'request log',
    linearMemory: fit.memory,
    attentionMemory: fit.memory,
    attentionMemory8: fit.memory,
    linearCompute: fit.compute,
    linearMemory4: memory * base.linearMemory4,
    linearCompute4: compute * base.linearCompute4,
    expertMemory: memory * base.expertMemory,
    expertCompute: compute * base.expertCompute,
    layerUs: 0,
    prefillLayerUs: 0,
    attentionLayerUs: 0,
    stepUs: fit.stepUs,
    sequenceUs: fit.sequenceUs,
    cpuStepUs: 0,
    cpuSequenceUs: 0,
  };
  return new RooflineStepModel(on, e);
}

/** Requests by the time block they came in, every other block: the fit's, and those held out. */
export function blocks(
  requests: readonly LoggedRequest[],
  length: Millis,
): { readonly fit: number[]; readonly held: number[] } {
  const fit: number[] = [];
  const held: number[] = [];
  requests.forEach((r, i) => void (Math.floor(r.queued / length) % 2 === 0 ? fit : held).push(i));
  return { fit, held };
}

/**
 * Coordinate descent in log space on the absolute log errors of mean TPOT, of mean first token − scheduled, and of mean
 * E2E, over the requests of the fit's blocks, block by block.
 */
export function fitLog(log: RequestLog, of: readonly number[], length: Millis, start: LogFit = LOG_START): LogFit {
  const groups = groupBy(of, (i) => Math.floor((log.requests[i] as LoggedRequest).queued / length));
  const loss = (fit: LogFit): number => {
    const out = replayed(log, logModel(log.on, fit));
    let sum = 0;
    for (const group of groups.values()) {
      const a = figures(group.map((i) => out[i] as LoggedRequest));
      const b = figures(group.map((i) => log.requests[i] as LoggedRequest));
      sum += logError(a.tpot, b.tpot) + 0.5 * logError(a.prefill, b.prefill) + logError(a.e2e, b.e2e);
    }
    return sum / groups.size;
  };
  return descend(start, BOUNDS, loss);
}

function logError(a: number, b: number): number {
  return Math.abs(Math.log(a / b));
}

function groupBy<K>(of: readonly number[], key: (i: number) => K): Map<K, number[]> {
  const groups = new Map<K, number[]>();
  for (const i of of) {
    const group = groups.get(key(i));
    if (group) group.push(i);
    else groups.set(key(i), [i]);
  }
  return groups;
}
