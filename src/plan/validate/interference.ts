/**
 * Prefill interference: what published step times of one model on one system say a prompt costs the decodes it runs
 * with. The compute share, the half length and the fixed costs are fitted on lone prompts and lone decodes; the chunked
 * prompts and the mixed batches are predicted.
 */
import { InputError } from '../../base/errors.ts';
import type { Millis } from '../../base/units.ts';
import { SERVED_2026 } from '../../model/calibrated.ts';
import type { Deployment } from '../../model/deployment.ts';
import { type Efficiencies, RooflineStepModel } from '../../model/roofline.ts';
import { emptyBatch, type StepModel } from '../../model/step.ts';

export interface InterferenceData {
  /** ms by prompt length, by batch at a context of 1,024. */
  readonly prefill: ReadonlyMap<number, Millis>;
  readonly decode: ReadonlyMap<number, Millis>;
  /** Whole prompts of `length` in chunks. */
  readonly chunked: readonly { readonly length: number; readonly chunk: number; readonly ms: Millis }[];
  readonly mixed: readonly { readonly prefill: number; readonly decode: number; readonly ms: Millis }[];
}

export const DECODE_CONTEXT = 1024;

/** Reads the published file, whose times are partly seconds. @throws InputError naming the field. */
export function readInterference(json: unknown, where: string): InterferenceData {
  const file = json as Record<string, unknown>;
  const need = (key: string): unknown => {
    const value = file?.[key];
    if (typeof value !== 'object' || value === null)
      throw new InputError(`${where} lacks '${key}'; give the published step times`);
    return value;
  };
  const seconds = (key: string): Map<number, Millis> =>
    new Map(Object.entries(need(key) as Record<string, number>).map(([n, s]) => [Number(n), 1000 * s]));
  return {
    prefill: seconds('prefill_s'),
    decode: seconds('decode_step_s_ctx1024'),
    chunked: (need('chunked_prefill_ms') as { len: number; chunk: number; ms: number }[]).map((c) => ({
      length: c.len,
      chunk: c.chunk,
      ms: c.ms,
    })),
    mixed: need('mixed_batch_ms') as InterferenceData['mixed'],
  };
}

interface Fit {
  readonly memory: number;
  readonly compute: number;
  readonly half: number;
  readonly stepUs: number;
  readonly sequenceUs: number;
}

const START: Fit = { memory: 0.6, compute: 0.5, half: 1000, stepUs: 5000, sequenceUs: 100 };
const BOUNDS: Readonly<Record<keyof Fit, readonly [number, number]>> = {
  memory: [0.2, 1],
  compute: [0.1, 1],
  half: [1, 20_000],
  stepUs: [100, 40_000],
  sequenceUs: [1, 2000],
};

function modelOf(on: Deployment, f: Fit): StepModel {
  const e: Efficiencies = {
    ...SERVED_2026,
    source: 'published step times',
    linearMemory: f.memory,
    attentionMemory: f.memory,
    linearCompute: f.compute,
    prefillAttention: f.compute,
    prefillHalfTokens: f.half,
    layerUs: 0,
    prefillLayerUs: 0,
    attentionLayerUs: 0,
    stepUs: f.stepUs,
    sequenceUs: f.sequenceUs,
    cpuStepUs: 0,
    cpuSequenceUs: 0,
  };
  return new RooflineStepModel(on, e);
}

/** One step that takes a chunk from `from` to `to` of a prompt beside decodes. */
export function mixedMs(step: StepModel, from: number, to: number, decodes: number, context = DECODE_CONTEXT): Millis {
  return step.stepMs({
    ...emptyBatch(),
    decodeSequences: decodes,
    decodeTokens: decodes,
    decodeKv: decodes * context,
    ...(to > from && {
      prefillSequences: 1,
      prefillTokens: to - from,
      prefillCompletes: 1,
      prefillKv: to,
      prefillSquares: to * to - from * from,
    }),
  });
}

/** Two times of one step further apart than this cannot both be predicted. */
const CONFLICT = 0.2;

export interface InterferenceScore {
  /** Median absolute relative errors of what was fitted, and of what was predicted. */
  readonly fitted: number;
  readonly chunked: number;
  readonly mixed: number;
  /** The worst of what was predicted, but where the tables disagree with themselves. */
  readonly worst: number;
  /** Steps that the mixed table and the decode table both hold, with how far those are apart and we are off. */
  readonly conflicts: readonly { readonly what: string; readonly apart: number; readonly off: number }[];
  readonly rows: readonly { readonly what: string; readonly measured: Millis; readonly simulated: Millis }[];
}

export function scoreInterference(on: Deployment, data: InterferenceData): InterferenceScore {
  const step = modelOf(on, fitted(on, data));
  const alone = lone(step, data);
  const chunked = data.chunked.map(({ length, chunk, ms }) => {
    let simulated = 0;
    for (let at = 0; at < length; at += chunk) simulated += mixedMs(step, at, Math.min(length, at + chunk), 0);
    return { what: `prompt of ${length} in chunks of ${chunk}`, measured: ms, simulated };
  });
  const mixed = data.mixed.map(({ prefill, decode, ms }) => ({
    what: `chunk of ${prefill} with ${decode} decodes`,
    measured: ms,
    simulated: mixedMs(step, 0, prefill, decode),
  }));
  // A mixed batch without a prompt is a lone decode step: two tables then give one time.
  const twice = data.mixed.map(({ prefill, decode, ms }) => {
    const other = prefill === 0 ? data.decode.get(decode) : undefined;
    return other === undefined ? 0 : Math.abs(ms / other - 1);
  });
  const errors = (rows: InterferenceScore['rows']): number[] => rows.map((r) => Math.abs(r.simulated / r.measured - 1));
  return {
    fitted: median(errors(alone)),
    chunked: median(errors(chunked)),
    mixed: median(errors(mixed)),
    worst: Math.max(...errors([...chunked, ...mixed.filter((_, i) => (twice[i] as number) <= CONFLICT)])),
    conflicts: mixed.flatMap(({ what, measured, simulated }, i) => {
      const apart = twice[i] as number;
      return apart > CONFLICT ? [{ what, apart, off: simulated / measured - 1 }] : [];
    }),
    rows: [...alone, ...chunked, ...mixed],
  };
}

function lone(step: StepModel, data: InterferenceData): { what: string; measured: Millis; simulated: Millis }[] {
  return [
    ...[...data.prefill].map(([n, ms]) => ({
      what: `prompt of ${n}`,
      measured: ms,
      simulated: mixedMs(step, 0, n, 0),
    })),
    ...[...data.decode].map(([n, ms]) => ({ what: `${n} decodes`, measured: ms, simulated: mixedMs(step, 0, 0, n) })),
  ];
}

/** Coordinate descent in log space on the mean absolute log error of lone prompts and lone decodes. */
function fitted(on: Deployment, data: InterferenceData): Fit {
  const loss = (f: Fit): number => {
    const rows = lone(modelOf(on, f), data);
    return rows.reduce((s, r) => s + Math.abs(Math.log(r.simulated / r.measured)), 0) / rows.length;
  };
  return descend(START, BOUNDS, loss);
}

/** Coordinate descent over factors, halved in log space down to 1 %. */
export function descend<F extends Readonly<Record<keyof F, number>>>(
  start: F,
  bounds: Readonly<Record<keyof F, readonly [number, number]>>,
  loss: (at: F) => number,
): F {
  let best = start;
  let least = loss(best);
  for (let factor = 1.6; factor > 1.01; factor = Math.sqrt(factor)) {
    for (let moved = true; moved; ) {
      moved = false;
      for (const key of Object.keys(bounds) as (keyof F)[]) {
        for (const by of [factor, 1 / factor]) {
          const [low, high] = bounds[key];
          const tried = { ...best, [key]: Math.min(high, Math.max(low, best[key] * by)) };
          const l = loss(tried);
          if (l < least - 1e-6) {
            best = tried;
            least = l;
            moved = true;
          }
        }
      }
    }
  }
  return best;
}

export function median(xs: readonly number[]): number {
  const sorted = [...xs].sort((a, b) => a - b);
  const mid = sorted.length >> 1;
  return sorted.length % 2 === 1
    ? (sorted[mid] as number)
    : ((sorted[mid - 1] as number) + (sorted[mid] as number)) / 2;
}
