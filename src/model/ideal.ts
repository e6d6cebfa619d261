/**
 * The ideal engine model (DEFINITIONS, "The engine model"): `step = max(bytes / BW, flops / peak)` and nothing else. No
 * real engine is this fast; measured steps are 1.16–1.25 × as long before any overhead.
 */
import type { Millis } from '../base/units.ts';
import {
  type Deployment,
  devicePeak,
  devices,
  kvPerDevice,
  kvPoolSequences,
  kvShare,
  RESERVES,
  type Reserves,
  weightBytesReadPerDevice,
} from './deployment.ts';
import { activeParams, kvBytesPerSequence } from './shape.ts';
import type { DecodePiece, StepBatch, StepModel } from './step.ts';

/**
 * The ideal as a step model: weights are read once a step (of experts, those the step's tokens are expected to touch), KV
 * once a sequence; linear layers compute 2 FLOPs a weight and token, prefill attention 2·heads·dim·(F² − p²) a layer for
 * scores and as much for values halved by causality. Decode attention's FLOPs are below its bytes and left out, as in the
 * worked table. Over several devices the slowest device's share counts and links are free.
 */
export class IdealStepModel implements StepModel {
  readonly label = 'ideal';
  readonly #d: Deployment;
  /** Bytes/ms and FLOPs/ms of one device. */
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
    const kv = kvPerDevice(d);
    this.#d = d;
    this.#bw = d.accelerator.bandwidth / 1000;
    this.#peak = devicePeak(d) / 1000;
    this.#peak16 = d.accelerator.flops.bf16 / 1000;
    this.#kvFull = kv.full / d.dp;
    this.#kvSliding = kv.sliding / d.dp;
    this.#window = model.window?.tokens ?? Number.POSITIVE_INFINITY;
    this.#flopsPerToken = (2 * activeParams(model)) / devices(d);
    this.#attention =
      ((model.layers - (model.window?.layers ?? 0)) * model.heads * (model.headDim + model.valueDim)) / devices(d);
    this.#dense = model.moe ? -1 : weightBytesReadPerDevice(d, 1);
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
    return this.#dense >= 0 ? this.#dense : weightBytesReadPerDevice(this.#d, tokens);
  }

  /** KV bytes of sliding layers for sequences of the mean length: exact when lengths are equal or all past the window. */
  #sliding(sequences: number, kv: number): number {
    return this.#kvSliding === 0 ? 0 : this.#kvSliding * Math.min(kv, sequences * this.#window);
  }
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
  const computeMs = (2000 * activeParams(d.model) * batch) / (devicePeak(d) * devices(d));
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
  const pool = kvPoolSequences(d, context, reserves);
  if (tpot === undefined) return { tpotBound: Number.POSITIVE_INFINITY, pool, largest: pool, bound: 'kv-pool' };
  const each = (kvShare(d) * kvBytesPerSequence(d.model, context, d.kv)) / d.dp;
  const budget = (tpot / 1000) * d.accelerator.bandwidth;
  const bytes = (batch: number): number => weightBytesReadPerDevice(d, batch) + batch * each;
  const computeBound = ((tpot / 1000) * devicePeak(d) * devices(d)) / (2 * activeParams(d.model));
  const memoryBound = d.model.moe ? solve(bytes, budget) : Math.max(0, (budget - bytes(0)) / each);
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
