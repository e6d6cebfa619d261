/** What a full batch does under any step model: the rows and the largest batch behind `goodput model`. */
import type { Millis } from '../base/units.ts';
import { type Deployment, devicePeak, devices, kvPoolSequences, RESERVES, type Reserves } from './deployment.ts';
import { activeParams } from './shape.ts';
import { type DecodePiece, emptyBatch, type StepModel } from './step.ts';

export interface BatchRow {
  readonly batch: number;
  readonly stepMs: Millis;
  readonly tokensPerSecond: number;
  /** Time the linear layers' FLOPs alone would take at peak. */
  readonly computeMs: Millis;
  readonly meetsTpot: boolean;
  /** The KV pool holds the batch. */
  readonly fitsPool: boolean;
  /** Requests a second a full batch sustains; 0 when TPOT is missed or the pool does not hold it. */
  readonly goodput: number;
}

/** Decode step of `batch` sequences that each attend to `context` tokens. */
export function decodeMs(step: StepModel, batch: number, context: number): Millis {
  const piece: DecodePiece = { ms: 0, slope: 0, untilKv: 0 };
  step.decode(batch, batch * context, piece);
  return piece.ms;
}

/** A full batch of `batch` sequences of `context` tokens, decoding `output` tokens each, held against `tpot`. */
export function batchRow(
  d: Deployment,
  step: StepModel,
  ask: { readonly batch: number; readonly context: number; readonly output: number; readonly tpot?: Millis },
  reserves: Reserves = RESERVES,
): BatchRow {
  const { batch, context, output, tpot } = ask;
  const stepMs = decodeMs(step, batch, context);
  const meetsTpot = tpot === undefined || stepMs <= tpot;
  const fitsPool = batch <= kvPoolSequences(d, context, reserves);
  return {
    batch,
    stepMs,
    tokensPerSecond: (1000 * batch) / stepMs,
    computeMs: (2000 * activeParams(d.model) * batch) / (devicePeak(d) * devices(d)),
    meetsTpot,
    fitsPool,
    goodput: meetsTpot && fitsPool ? (1000 * batch) / (output * stepMs) : 0,
  };
}

/** The largest whole batch under `tpot` and the KV pool, and which of them stops it; `largest` 0 when not one goes. */
export function largestBatchUnder(
  d: Deployment,
  step: StepModel,
  ask: { readonly context: number; readonly tpot?: Millis },
  reserves: Reserves = RESERVES,
): { readonly largest: number; readonly pool: number; readonly bound: 'tpot' | 'kv-pool' } {
  const pool = kvPoolSequences(d, ask.context, reserves);
  const { tpot } = ask;
  if (tpot === undefined || pool === 0) return { largest: pool, pool, bound: 'kv-pool' };
  // Step time grows with the batch but for the padding to captured sizes, which is flat: bisection holds.
  let low = 0;
  let high = pool + 1;
  while (high - low > 1) {
    const mid = (low + high) >> 1;
    if (decodeMs(step, mid, ask.context) <= tpot) low = mid;
    else high = mid;
  }
  return low === pool ? { largest: pool, pool, bound: 'kv-pool' } : { largest: low, pool, bound: 'tpot' };
}

/** Time a lone prompt takes in one step: the floor of TTFT. */
export function prefillMs(step: StepModel, tokens: number): Millis {
  return step.stepMs({
    ...emptyBatch(),
    prefillSequences: 1,
    prefillTokens: tokens,
    prefillCompletes: 1,
    prefillKv: tokens,
    prefillSquares: tokens * tokens,
  });
}
