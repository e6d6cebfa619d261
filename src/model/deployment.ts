/** A model placed on devices: what each of them stores, reads and computes. */
import { InputError } from '../base/errors.ts';
import { type Accelerator, peakFlops } from './accelerator.ts';
import { type Dtype, KV_BYTES, WEIGHT_BYTES } from './dtype.ts';
import {
  denseLayers,
  expectedExperts,
  expertDtype,
  kvBytesPerSequence,
  kvValuesPerLayer,
  type MatrixParams,
  type ModelShape,
  matrixParams,
} from './shape.ts';

/**
 * `tp` devices share each layer of one data-parallel rank, `dp` ranks attend to their own sequences and share the experts
 * of all `tp · dp` devices (attention data parallelism with expert parallelism; without experts, plain copies).
 */
export interface Deployment {
  readonly model: ModelShape;
  readonly accelerator: Accelerator;
  readonly weights: Dtype;
  readonly kv: Dtype;
  readonly tp: number;
  readonly dp: number;
  /** Pipeline stages the layers are spread over, each of `tp · dp` devices. Default 1. */
  readonly pp?: number;
}

export interface DeploymentOptions {
  readonly weights?: Dtype;
  readonly kv?: Dtype;
  readonly tp?: number;
  readonly dp?: number;
  readonly pp?: number;
}

/** @throws InputError when the heads do not divide over `tp`, or the devices exceed one scale-up domain. */
export function deployment(model: ModelShape, accelerator: Accelerator, options: DeploymentOptions = {}): Deployment {
  const { weights = model.weights, kv = 'bf16', tp = 1, dp = 1, pp = 1 } = options;
  for (const [name, value] of [
    ['tensor parallelism', tp],
    ['data parallelism', dp],
    ['pipeline parallelism', pp],
  ] as const) {
    if (!Number.isInteger(value) || value < 1)
      throw new InputError(`${name} ${value} must be a whole number of 1 or more`);
  }
  if (model.heads % tp !== 0) {
    throw new InputError(
      `tensor parallelism ${tp} does not divide the ${model.heads} heads of ${model.name}; use ${divisors(model.heads, 16).join(', ')}`,
    );
  }
  if (!model.mla && model.kvHeads % tp !== 0 && tp % model.kvHeads !== 0) {
    throw new InputError(
      `tensor parallelism ${tp} neither divides nor is a multiple of the ${model.kvHeads} KV heads of ${model.name}; use ${divisors(model.kvHeads, 16).join(', ')}`,
    );
  }
  if (pp > model.layers) {
    throw new InputError(
      `pipeline parallelism ${pp} exceeds the ${model.layers} layers of ${model.name}; use at most ${model.layers} stages`,
    );
  }
  return { model, accelerator, weights, kv, tp, dp, ...(pp > 1 && { pp }) };
}

function divisors(n: number, most: number): number[] {
  return Array.from({ length: Math.min(n, most) }, (_, i) => i + 1).filter((d) => n % d === 0);
}

export function devices(d: Deployment): number {
  return d.tp * d.dp * stages(d);
}

export function stages(d: Deployment): number {
  return d.pp ?? 1;
}

/**
 * Share of a sequence's KV on each of its rank's devices: 1/tp, but a KV head is never split, and MLA's latent is kept
 * whole on each. A pipeline stage has its layers' alone: the fullest stage's, where the layers do not divide.
 */
export function kvShare(d: Deployment): number {
  return stageShare(d) * (d.model.mla ? 1 : Math.max(1 / d.tp, 1 / d.model.kvHeads));
}

/** Share of the layers on the fullest stage. */
export function stageShare(d: Deployment): number {
  return Math.ceil(d.model.layers / stages(d)) / d.model.layers;
}

/** Bytes of weights one device holds, by part; of the experts, one layer's for each part that is named so. */
export interface DeviceWeights {
  /** Attention projections, dense and shared feed-forwards of all layers. */
  readonly attention: number;
  readonly dense: number;
  /** One expert in one layer, whole (not this device's share). */
  readonly expert: number;
  readonly shared: number;
  readonly head: number;
  readonly embedding: number;
}

export function deviceWeights(d: Deployment, p: MatrixParams = matrixParams(d.model)): DeviceWeights {
  const { model, weights, tp } = d;
  const each = WEIGHT_BYTES[weights];
  return {
    attention: (model.layers * p.attention * each) / tp,
    dense: (denseLayers(model) * p.dense * each) / tp,
    expert: p.expert * WEIGHT_BYTES[expertDtype(model, weights)],
    shared: model.moe ? (model.moe.layers * p.shared * each) / tp : 0,
    head: (2 * (p.head > 0 ? p.head : p.embedding)) / tp,
    embedding: p.head > 0 ? (2 * p.embedding) / tp : 0,
  };
}

/** Bytes of weights on one device. */
export function weightBytesPerDevice(d: Deployment): number {
  const w = deviceWeights(d);
  const experts = d.model.moe ? (d.model.moe.layers * d.model.moe.experts * w.expert) / (d.tp * d.dp) : 0;
  // Of a pipeline the last stage has the LM head, the first the embedding, as large or smaller.
  const ends = stages(d) > 1 ? Math.max(w.head, w.embedding) : w.head + w.embedding;
  return stageShare(d) * (w.attention + w.dense + w.shared + experts) + ends;
}

/** Bytes of weights one device reads in a step of `tokens` tokens: of its experts those expected to be touched. */
export function weightBytesReadPerDevice(d: Deployment, tokens: number): number {
  const { moe } = d.model;
  if (!moe) return weightBytesPerDevice(d);
  const w = deviceWeights(d);
  return weightBytesPerDevice(d) - (moe.layers * (moe.experts - expectedExperts(moe, tokens)) * w.expert) / devices(d);
}

/** KV bytes a token that one device holds and reads in the layers that keep everything, and in those that slide. */
export function kvPerDevice(d: Deployment): { readonly full: number; readonly sliding: number } {
  const layer = kvValuesPerLayer(d.model) * KV_BYTES[d.kv] * kvShare(d);
  const sliding = d.model.window?.layers ?? 0;
  return { full: (d.model.layers - sliding) * layer, sliding: sliding * layer };
}

/** Peak FLOPs a second of one device at the weights' precision. */
export function devicePeak(d: Deployment): number {
  return peakFlops(d.accelerator, d.weights);
}

/** Memory held back before KV: DEFINITIONS' 10 % of the device and 2 GB for activations and the runtime. */
export interface Reserves {
  /** Share of device memory the engine may use (vLLM's gpu_memory_utilization). */
  readonly share: number;
  /** Bytes a device for everything but weights and KV. */
  readonly other: number;
}

export const RESERVES: Reserves = { share: 0.9, other: 2e9 };

/** Bytes left for KV on one device; negative when the weights do not fit. */
export function kvPoolBytesPerDevice(d: Deployment, reserves: Reserves = RESERVES): number {
  return reserves.share * d.accelerator.memory - reserves.other - weightBytesPerDevice(d);
}

/** Whole sequences of `tokens` tokens that the KV pools of all devices hold; 0 when the weights do not fit. */
export function kvPoolSequences(d: Deployment, tokens: number, reserves: Reserves = RESERVES): number {
  const each = kvBytesPerSequence(d.model, tokens, d.kv) * kvShare(d);
  return d.dp * Math.max(0, Math.floor(kvPoolBytesPerDevice(d, reserves) / each));
}
