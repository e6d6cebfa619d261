/**
 * The ideal engine model (DEFINITIONS, "The engine model"): `step = max(bytes / BW, flops / peak)` and nothing else. No
 * real engine is this fast; measured steps are 1.16–1.25 × as long before any overhead.
 */
import type { Millis } from '../base/units.ts';
import type { Accelerator } from './accelerator.ts';
import { peakFlops } from './accelerator.ts';
import type { Dtype } from './dtype.ts';
import { KV_BYTES } from './dtype.ts';
import {
  activeParams,
  kvBytesPerSequence,
  kvBytesPerToken,
  kvValuesPerLayer,
  type ModelShape,
  weightBytesRead,
} from './shape.ts';
import type { DecodePiece, StepBatch, StepModel } from './step.ts';

/** A model on an accelerator, at given precisions, over `tp` devices that share every layer. */
export interface Deployment {
  readonly model: ModelShape;
  readonly accelerator: Accelerator;
  readonly weights: Dtype;
  readonly kv: Dtype;
  readonly tp: number;
}

export function deployment(
  model: ModelShape,
  accelerator: Accelerator,
  options: { readonly weights?: Dtype; readonly kv?: Dtype; readonly tp?: number } = {},
): Deployment {
  return {
    model,
    accelerator,
    weights: options.weights ?? model.weights,
    kv: options.kv ?? 'bf16',
    tp: options.tp ?? 1,
  };
}

/**
 * The ideal as a step model: weights are read once a step (of experts, those the step's tokens are expected to touch), KV
 * once a sequence; linear layers compute 2 FLOPs a weight and token, prefill attention 2·heads·dim·(F² − p²) a layer for
 * scores and as much for values halved by causality. Decode attention's FLOPs are below its bytes and left out, as in the
 * worked table. With `tp` devices bytes and FLOPs divide evenly and links are free.
 */
export class IdealStepModel implements StepModel {
  readonly label = 'ideal';
  readonly #d: Deployment;
  /** Bytes/ms and FLOPs/ms over all devices. */
  readonly #bw: number;
  readonly #peak: number;
  readonly #peak16: number;
  readonly #kvFull: number;
  /** KV bytes a token in the sliding layers, and the window; 0 and ∞ where there are none. */
  readonly #kvSliding: number;
  readonly #window: number;
  readonly #flopsPerToken: number;
  readonly #attention: number;
  readonly #dense: number;

  constructor(d: Deployment) {
    const { model } = d;
    this.#d = d;
    this.#bw = (d.accelerator.bandwidth * d.tp) / 1000;
    this.#peak = (peakFlops(d.accelerator, d.weights) * d.tp) / 1000;
    this.#peak16 = (d.accelerator.flops.bf16 * d.tp) / 1000;
    this.#kvFull = kvBytesPerToken(model, d.kv);
    this.#kvSliding = (model.window?.layers ?? 0) * kvValuesPerLayer(model) * KV_BYTES[d.kv];
    this.#window = model.window?.tokens ?? Number.POSITIVE_INFINITY;
    this.#flopsPerToken = 2 * activeParams(model);
    this.#attention = (model.layers - (model.window?.layers ?? 0)) * model.heads * (model.headDim + model.valueDim);
    this.#dense = model.moe ? -1 : weightBytesRead(model, d.weights, 1);
  }

  stepMs(b: StepBatch): Millis {
    const tokens = b.decodeTokens + b.prefillTokens;
    if (tokens === 0) return 0;
    const bytes =
      this.#weights(tokens) +
      this.#kvFull * (b.decodeKv + b.prefillKv) +
      this.#sliding(b.decodeSequences, b.decodeKv) +
      this.#sliding(b.prefillSequences, b.prefillKv);
    const compute = (this.#flopsPerToken * tokens) / this.#peak + (this.#attention * b.prefillSquares) / this.#peak16;
    return Math.max(bytes / this.#bw, compute);
  }

  decode(sequences: number, kv: number, into: DecodePiece): void {
    const compute = (this.#flopsPerToken * sequences) / this.#peak;
    const windowKv = sequences * this.#window;
    const saturated = kv >= windowKv;
    const perToken = this.#kvFull + (saturated ? 0 : this.#kvSliding);
    const bytes = this.#weights(sequences) + this.#kvFull * kv + this.#sliding(sequences, kv);
    const memory = bytes / this.#bw;
    if (memory >= compute) {
      into.ms = memory;
      into.slope = perToken / this.#bw;
      into.untilKv = saturated ? Number.POSITIVE_INFINITY : windowKv;
    } else {
      into.ms = compute;
      into.slope = 0;
      const crossing = perToken > 0 ? kv + ((compute - memory) * this.#bw) / perToken : Number.POSITIVE_INFINITY;
      into.untilKv = saturated ? crossing : Math.min(crossing, windowKv);
    }
  }

  #weights(tokens: number): number {
    return this.#dense >= 0 ? this.#dense : weightBytesRead(this.#d.model, this.#d.weights, tokens);
  }

  /** KV bytes of sliding layers for sequences of the mean length: exact when lengths are equal or all past the window. */
  #sliding(sequences: number, kv: number): number {
    return this.#kvSliding === 0 ? 0 : this.#kvSliding * Math.min(kv, sequences * this.#window);
  }
}

/** Memory held back before KV: DEFINITIONS' 10 % of the device and 2 GB for activations and the runtime. */
export interface Reserves {
  /** Share of device memory the engine may use (vLLM's gpu_memory_utilization). */
  readonly share: number;
  /** Bytes a device for everything but weights and KV. */
  readonly other: number;
}

export const RESERVES: Reserves = { share: 0.9, other: 2e9 };

/** Bytes left for KV over all `tp` devices; negative when the weights do not fit. */
export function kvPoolBytes(d: Deployment, reserves: Reserves = RESERVES): number {
  const weights = weightBytesRead(d.model, d.weights, Number.POSITIVE_INFINITY);
  return d.tp * (reserves.share * d.accelerator.memory - reserves.other) - weights;
}

/** One row of the worked table. */
export interface IdealRow {
  readonly batch: number;
  readonly stepMs: Millis;
  readonly tokensPerSecond: number;
  /** Time the linear layers' FLOPs alone would take. */
  readonly computeMs: Millis;
  readonly meetsTpot: boolean;
  /** Requests a second a full batch sustains, 0 when TPOT is missed. */
  readonly goodput: number;
  readonly bound: 'memory' | 'compute';
}

/** A full batch of `batch` sequences of `context` tokens, decoding `output` tokens each, held against `tpot`. */
export function idealRow(d: Deployment, batch: number, context: number, output: number, tpot?: Millis): IdealRow {
  const piece: DecodePiece = { ms: 0, slope: 0, untilKv: 0 };
  new IdealStepModel(d).decode(batch, batch * context, piece);
  const computeMs = (2000 * activeParams(d.model) * batch) / (peakFlops(d.accelerator, d.weights) * d.tp);
  const meetsTpot = tpot === undefined || piece.ms <= tpot;
  return {
    batch,
    stepMs: piece.ms,
    tokensPerSecond: (1000 * batch) / piece.ms,
    computeMs,
    meetsTpot,
    goodput: meetsTpot ? (1000 * batch) / (output * piece.ms) : 0,
    bound: piece.ms > computeMs ? 'memory' : 'compute',
  };
}

/** The largest batch, and what keeps it from being larger. */
export interface LargestBatch {
  /** Real-valued bound that TPOT sets on memory: (tpot·BW − W)/KV; +∞ without a TPOT limit. */
  readonly tpotBound: number;
  /** Whole sequences the KV pool holds. */
  readonly pool: number;
  /** Largest whole batch that meets TPOT and fits the pool; 0 when not even one does. */
  readonly largest: number;
  readonly bound: 'tpot' | 'kv-pool' | 'compute';
}

export function largestBatch(
  d: Deployment,
  context: number,
  tpot?: Millis,
  reserves: Reserves = RESERVES,
): LargestBatch {
  const kv = kvBytesPerSequence(d.model, context, d.kv);
  const pool = Math.max(0, Math.floor(kvPoolBytes(d, reserves) / kv));
  if (tpot === undefined) return { tpotBound: Number.POSITIVE_INFINITY, pool, largest: pool, bound: 'kv-pool' };
  const bw = d.accelerator.bandwidth * d.tp;
  const budget = (tpot / 1000) * bw;
  const bytes = (batch: number): number => weightBytesRead(d.model, d.weights, batch) + batch * kv;
  const computeBound = ((tpot / 1000) * peakFlops(d.accelerator, d.weights) * d.tp) / (2 * activeParams(d.model));
  const memoryBound = d.model.moe ? solve(bytes, budget) : Math.max(0, (budget - bytes(0)) / kv);
  const tpotBound = Math.min(memoryBound, computeBound);
  const whole = Math.floor(tpotBound);
  if (pool < whole) return { tpotBound, pool, largest: pool, bound: 'kv-pool' };
  return { tpotBound, pool, largest: whole, bound: computeBound < memoryBound ? 'compute' : 'tpot' };
}

/** The largest x ≥ 0 with f(x) ≤ limit, f increasing, by bisection. */
function solve(f: (x: number) => number, limit: number): number {
  if (f(0) > limit) return 0;
  let low = 0;
  let high = 1;
  while (f(high) <= limit && high < 1e9) high *= 2;
  for (let i = 0; i < 60; i++) {
    const mid = (low + high) / 2;
    if (f(mid) <= limit) low = mid;
    else high = mid;
  }
  return low;
}
