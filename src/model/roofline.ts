/**
 * Step time part by part: each part takes the longer of its bytes and its FLOPs at an efficiency that was measured, plus
 * what launching and scheduling it costs. Linear layers see all tokens of the step, attention each class its own.
 */
import type { Millis } from '../base/units.ts';
import { peakFlops } from './accelerator.ts';
import { type Deployment, devices, deviceWeights, kvPerDevice } from './deployment.ts';
import { expectedExperts, expertDtype, matrixParams } from './shape.ts';
import type { DecodePiece, StepBatch, StepModel } from './step.ts';

/** What of a device's peaks a part reaches, and fixed costs. Shares of peak, microseconds. */
export interface Efficiencies {
  /** Where the figures come from, and for what they hold. */
  readonly source: string;
  /** Linear layers: share of memory bandwidth when weights bind, of dense FLOPs when tokens do. */
  readonly linearMemory: number;
  readonly linearCompute: number;
  /** The same with weights of 4 bits, whose scales and unpacking cost. */
  readonly linearMemory4: number;
  readonly linearCompute4: number;
  /** Experts: share of bandwidth of their grouped products, and how much the fullest device exceeds the mean. */
  readonly expertMemory: number;
  readonly expertCompute: number;
  readonly expertSkew: number;
  /** Decode attention: share of bandwidth of KV reads in 16 and in 8 bits, and a fixed cost a layer. */
  readonly attentionMemory: number;
  readonly attentionMemory8: number;
  readonly attentionLayerUs: number;
  /** Prefill attention: share of FLOPs reached by long prompts, and the length at which half of that is. */
  readonly prefillAttention: number;
  readonly prefillHalfTokens: number;
  /** Activations through norms, residuals, rotations: bytes a token and layer in units of the hidden width. */
  readonly activationBytes: number;
  /** Collectives: latency of one hop, µs, and share of the link's bandwidth. */
  readonly collectiveUs: number;
  readonly linkShare: number;
  /** Fixed costs: a layer in every step, a layer in steps with prefill (not captured in a graph), a step, a sequence. */
  readonly layerUs: number;
  readonly prefillLayerUs: number;
  readonly stepUs: number;
  readonly sequenceUs: number;
  /** The scheduler's own time a step and a sequence, overlapped with the device under asynchronous scheduling. */
  readonly cpuStepUs: number;
  readonly cpuSequenceUs: number;
  /**
   * Copies of a token to and from its experts on each device: bytes a token, layer and chosen expert in units of the hidden
   * width. Not shared out by tensor parallelism, which splits the experts' inner width alone. Default 0.
   */
  readonly routedBytes?: number;
  /** Fixed costs of a layer of experts beside a dense one's: routing, sorting, two grouped products, combining. Default 0. */
  readonly expertLayerUs?: number;
  /** All-reduces in one shot, whose latency hardly grows with the devices. Default: a hop for each doubling of them. */
  readonly oneShot?: boolean;
  /** A step with prompts in it runs them first and its decodes after, each reading the weights. Default: together. */
  readonly separate?: boolean;
}

/** Batch sizes captured as graphs: a decode batch is padded to the next (vLLM: 1, 2, 4, then multiples of 8). */
export function capturedBatch(n: number): number {
  if (n <= 2) return n;
  if (n <= 4) return 4;
  return n > 512 ? n : Math.ceil(n / 8) * 8;
}

export class RooflineStepModel implements StepModel {
  readonly label: string;
  readonly #d: Deployment;
  readonly #e: Efficiencies;
  readonly #bw: number;
  readonly #link: number;
  readonly #attentionBytes: number;
  readonly #attentionFlops: number;
  readonly #denseBytes: number;
  readonly #denseFlops: number;
  readonly #headBytes: number;
  readonly #headFlops: number;
  readonly #peak: number;
  readonly #linearMemory: number;
  readonly #linearCompute: number;
  readonly #peak16: number;
  /** ms for one more token of ΣKV in full and sliding layers. */
  readonly #kvMs: number;
  readonly #slidingMs: number;
  readonly #window: number;
  readonly #fixedMs: number;
  readonly #hidden: number;
  readonly #prefillFlops: number;
  readonly #expertBytes: number;
  readonly #expertParams: number;
  readonly #expertPeak: number;

  constructor(d: Deployment, e: Efficiencies) {
    const { model, accelerator } = d;
    const p = matrixParams(model);
    const w = deviceWeights(d, p);
    const kv = kvPerDevice(d);
    this.label = `calibrated (${e.source})`;
    this.#d = d;
    this.#e = e;
    this.#bw = accelerator.bandwidth / 1000;
    this.#link = (accelerator.link * e.linkShare) / 1000;
    this.#peak = peakFlops(accelerator, d.weights) / 1000;
    this.#peak16 = accelerator.flops.bf16 / 1000;
    const four = d.weights === 'fp4' || d.weights === 'int4';
    this.#linearMemory = four ? e.linearMemory4 : e.linearMemory;
    this.#linearCompute = four ? e.linearCompute4 : e.linearCompute;
    this.#attentionBytes = w.attention;
    this.#attentionFlops = (2 * model.layers * p.attention) / devices(d);
    this.#denseBytes = w.dense + w.shared;
    this.#denseFlops =
      (2 * ((model.layers - (model.moe?.layers ?? 0)) * p.dense + (model.moe?.layers ?? 0) * p.shared)) / devices(d);
    this.#headBytes = w.head;
    this.#headFlops = (2 * (p.head > 0 ? p.head : p.embedding)) / devices(d);
    this.#expertBytes = w.expert;
    this.#expertParams = p.expert;
    this.#expertPeak = peakFlops(accelerator, expertDtype(model, d.weights)) / 1000;
    const bytesMs = 1 / (this.#bw * (d.kv === 'bf16' ? e.attentionMemory : e.attentionMemory8) * d.dp);
    // MLA attends in the latent space with all heads: 2·heads·(latent + latent + rotary) FLOPs a cached token and layer.
    const mlaMs = model.mla
      ? (2 * model.layers * (model.heads / d.tp) * (2 * model.mla.kvLora + model.mla.rope)) /
        (this.#peak16 * e.linearCompute * d.dp)
      : 0;
    this.#kvMs = Math.max(kv.full * bytesMs, mlaMs);
    this.#slidingMs = kv.sliding * bytesMs;
    this.#window = model.window?.tokens ?? Number.POSITIVE_INFINITY;
    this.#fixedMs = (e.stepUs + model.layers * (e.layerUs + e.attentionLayerUs)) / 1000;
    this.#hidden = model.hidden;
    this.#prefillFlops =
      ((model.layers - (model.window?.layers ?? 0)) * model.heads * (model.headDim + model.valueDim)) / devices(d);
  }

  stepMs(b: StepBatch): Millis {
    const decode = b.prefillTokens === 0;
    const sequences = b.decodeSequences + b.prefillSequences;
    const tokens =
      (decode ? capturedBatch(b.decodeSequences) * (b.decodeTokens / b.decodeSequences) : b.decodeTokens) +
      b.prefillTokens;
    if (!(tokens > 0)) return 0;
    if (this.#e.separate && !decode && b.decodeSequences > 0) return this.#separateMs(b);
    let gpu =
      this.#tokensMs(tokens, b.decodeSequences + b.prefillCompletes, decode) +
      this.#decodeKvMs(b.decodeSequences, b.decodeKv);
    if (b.prefillTokens > 0) gpu += this.#prefillMs(b);
    return this.#total(gpu, sequences);
  }

  #separateMs(b: StepBatch): Millis {
    const decodes = {
      ...b,
      prefillSequences: 0,
      prefillTokens: 0,
      prefillCompletes: 0,
      prefillKv: 0,
      prefillSquares: 0,
    };
    return this.stepMs(decodes) + this.stepMs({ ...b, decodeSequences: 0, decodeTokens: 0, decodeKv: 0 });
  }

  decode(sequences: number, kv: number, into: DecodePiece): void {
    const gpu = this.#tokensMs(capturedBatch(sequences), sequences, true) + this.#decodeKvMs(sequences, kv);
    const windowKv = sequences * this.#window;
    const sliding = kv < windowKv;
    const slope = this.#kvMs + (sliding ? this.#slidingMs : 0);
    into.ms = this.#total(gpu, sequences);
    into.slope = slope;
    into.untilKv = sliding ? windowKv : Number.POSITIVE_INFINITY;
    const cpu = this.#cpuMs(sequences);
    if (cpu > gpu) {
      into.slope = 0;
      into.untilKv = Math.min(into.untilKv, slope > 0 ? kv + (cpu - gpu) / slope : Number.POSITIVE_INFINITY);
    }
  }

  /** Parts that depend on the number of tokens alone. */
  #tokensMs(tokens: number, sampled: number, decode: boolean): Millis {
    const e = this.#e;
    const { moe, layers } = this.#d.model;
    let ms = this.#fixedMs + this.#linear(this.#attentionBytes, this.#attentionFlops, tokens);
    ms += this.#linear(this.#denseBytes, this.#denseFlops, tokens);
    ms += Math.max(
      this.#headBytes / (this.#bw * e.linearMemory),
      (this.#headFlops * sampled) / (this.#peak16 * e.linearCompute),
    );
    if (moe) ms += this.#expertsMs(tokens);
    if (moe && e.routedBytes)
      ms +=
        (moe.layers * moe.topK * e.routedBytes * 2 * this.#hidden * tokens) / (this.#bw * e.linearMemory * this.#d.dp);
    ms += (layers * e.activationBytes * 2 * this.#hidden * tokens) / (this.#bw * e.linearMemory * this.#d.dp);
    ms += this.#collectivesMs(tokens);
    if (!decode) ms += (layers * e.prefillLayerUs) / 1000;
    return ms;
  }

  #linear(bytes: number, flops: number, tokens: number): Millis {
    return Math.max(bytes / (this.#bw * this.#linearMemory), (flops * tokens) / (this.#peak * this.#linearCompute));
  }

  #expertsMs(tokens: number): Millis {
    const { moe } = this.#d.model;
    if (!moe) return 0;
    const e = this.#e;
    const n = devices(this.#d);
    const bytes = (moe.layers * expectedExperts(moe, tokens) * this.#expertBytes) / n;
    const flops = (2 * moe.layers * moe.topK * tokens * this.#expertParams) / n;
    const skew = n > 1 ? e.expertSkew : 1;
    return (
      (moe.layers * (e.expertLayerUs ?? 0)) / 1000 +
      skew * Math.max(bytes / (this.#bw * e.expertMemory), flops / (this.#expertPeak * e.expertCompute))
    );
  }

  /** Two all-reduces a layer over `tp`; with `dp`, tokens travel to their experts and back. */
  #collectivesMs(tokens: number): Millis {
    const { tp, dp, model } = this.#d;
    const e = this.#e;
    let ms = 0;
    if (tp > 1) {
      const bytes = (2 * this.#hidden * tokens) / dp;
      const hops = e.oneShot ? 1 : Math.log2(tp);
      ms += 2 * model.layers * ((hops * e.collectiveUs) / 1000 + (2 * (tp - 1) * bytes) / (tp * this.#link));
    }
    if (dp > 1 && model.moe) {
      const bytes = (2 * this.#hidden * tokens * Math.min(model.moe.topK, devices(this.#d))) / devices(this.#d);
      ms += 2 * model.moe.layers * ((2 * e.collectiveUs) / 1000 + bytes / this.#link);
    }
    return ms;
  }

  #decodeKvMs(sequences: number, kv: number): Millis {
    return this.#kvMs * kv + (this.#slidingMs === 0 ? 0 : this.#slidingMs * Math.min(kv, sequences * this.#window));
  }

  #prefillMs(b: StepBatch): Millis {
    const e = this.#e;
    const length = b.prefillKv / b.prefillSequences;
    const reached = (e.prefillAttention * length) / (length + e.prefillHalfTokens);
    return (this.#prefillFlops * b.prefillSquares) / (this.#peak16 * reached);
  }

  #cpuMs(sequences: number): Millis {
    return (this.#e.cpuStepUs + this.#e.cpuSequenceUs * sequences) / 1000;
  }

  #total(gpu: Millis, sequences: number): Millis {
    return Math.max(gpu, this.#cpuMs(sequences)) + (this.#e.sequenceUs * sequences) / 1000;
  }
}
