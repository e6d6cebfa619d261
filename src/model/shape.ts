/** A model's shape: the few numbers its step time, weights and KV cache follow from. */
import { type Dtype, KV_BYTES, WEIGHT_BYTES } from './dtype.ts';

/** A decoder-only transformer as one forward pass sees it. Counts, not bytes. */
export interface ModelShape {
  readonly name: string;
  /** Attention layers, each followed by a dense or an expert feed-forward. */
  readonly layers: number;
  readonly hidden: number;
  readonly heads: number;
  readonly kvHeads: number;
  /** Width of a query or key head, and of a value head where it differs. */
  readonly headDim: number;
  readonly valueDim: number;
  /** Inner width of the dense feed-forward. */
  readonly ffn: number;
  /** 2 where the feed-forward has no gate (OPT, GPT-2, Falcon); else 3. */
  readonly ffnMatrices?: 2;
  readonly vocab: number;
  /** Input embedding and LM head share one matrix. */
  readonly tied: boolean;
  /** Longest sequence, tokens. */
  readonly context: number;
  readonly moe?: MoeShape;
  /** Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434): one latent and one rotary key are cached a token. */
  readonly mla?: MlaShape;
  /** Layers that attend to the last `tokens` only. */
  readonly window?: { readonly tokens: number; readonly layers: number };
  /** Precision the weights are published in, and that of the experts where it differs. */
  readonly weights: Dtype;
  readonly expertWeights?: Dtype;
  readonly source: string;
}

export interface MoeShape {
  readonly experts: number;
  /** Experts each token is routed to. */
  readonly topK: number;
  /** Inner width of one expert. */
  readonly ffn: number;
  /** Inner width of the shared experts together; 0 when there is none. */
  readonly sharedFfn: number;
  /** How many of the layers have experts. */
  readonly layers: number;
}

export interface MlaShape {
  readonly kvLora: number;
  /** 0: queries are projected directly. */
  readonly qLora: number;
  readonly rope: number;
  readonly nope: number;
}

/** Weights of the matrices, by part. Norm vectors and biases are left out: below 0.01 %. */
export interface MatrixParams {
  /** One layer's attention projections. */
  readonly attention: number;
  /** One dense layer's feed-forward. */
  readonly dense: number;
  /** One expert, and the shared experts and the router of one expert layer. */
  readonly expert: number;
  readonly shared: number;
  readonly embedding: number;
  /** 0 when tied. */
  readonly head: number;
}

export function matrixParams(m: ModelShape): MatrixParams {
  const { hidden } = m;
  return {
    attention: attentionParams(m),
    dense: (m.ffnMatrices ?? 3) * hidden * m.ffn,
    expert: m.moe ? 3 * hidden * m.moe.ffn : 0,
    shared: m.moe ? 3 * hidden * m.moe.sharedFfn + hidden * m.moe.experts : 0,
    embedding: hidden * m.vocab,
    head: m.tied ? 0 : hidden * m.vocab,
  };
}

function attentionParams(m: ModelShape): number {
  const { hidden, heads } = m;
  if (m.mla) {
    const { kvLora, qLora, rope, nope } = m.mla;
    const q = heads * (nope + rope);
    const queries = qLora > 0 ? hidden * qLora + qLora * q : hidden * q;
    const keys = hidden * (kvLora + rope) + kvLora * heads * (nope + m.valueDim);
    return queries + keys + heads * m.valueDim * hidden;
  }
  return hidden * heads * m.headDim + hidden * m.kvHeads * (m.headDim + m.valueDim) + heads * m.valueDim * hidden;
}

/** Layers whose feed-forward is dense. */
export function denseLayers(m: ModelShape): number {
  return m.layers - (m.moe?.layers ?? 0);
}

/** All matrix weights of the model. */
export function totalParams(m: ModelShape): number {
  const p = matrixParams(m);
  const moe = m.moe ? m.moe.layers * (m.moe.experts * p.expert + p.shared) : 0;
  return m.layers * p.attention + denseLayers(m) * p.dense + moe + p.embedding + p.head;
}

/** Weights that take part in one token's forward pass (of the experts, the chosen ones). */
export function activeParams(m: ModelShape): number {
  const p = matrixParams(m);
  const moe = m.moe ? m.moe.layers * (m.moe.topK * p.expert + p.shared) : 0;
  return m.layers * p.attention + denseLayers(m) * p.dense + moe + p.embedding + p.head;
}

/**
 * Distinct experts of one layer that `tokens` tokens touch when routed evenly: N(1 − (1 − k/N)^T).
 */
export function expectedExperts(moe: MoeShape, tokens: number): number {
  return moe.experts * (1 - (1 - moe.topK / moe.experts) ** tokens);
}

/** Bytes of all weights: matrices at `dtype` (experts at theirs), embedding and LM head kept in 16 bits. */
export function weightBytes(m: ModelShape, dtype: Dtype = m.weights): number {
  return weightBytesRead(m, dtype, Number.POSITIVE_INFINITY);
}

/** Bytes of weights that a step of `tokens` tokens reads: of the experts only those expected to be touched. */
export function weightBytesRead(m: ModelShape, dtype: Dtype, tokens: number): number {
  const p = matrixParams(m);
  const each = WEIGHT_BYTES[dtype];
  const expertEach = WEIGHT_BYTES[expertDtype(m, dtype)];
  const touched = m.moe ? (tokens === Number.POSITIVE_INFINITY ? m.moe.experts : expectedExperts(m.moe, tokens)) : 0;
  const moe = m.moe ? m.moe.layers * (touched * p.expert * expertEach + p.shared * each) : 0;
  return each * (m.layers * p.attention + denseLayers(m) * p.dense) + moe + 2 * (p.embedding + p.head);
}

/** Experts keep their own published precision unless the whole model is asked for in another. */
export function expertDtype(m: ModelShape, dtype: Dtype): Dtype {
  return dtype === m.weights ? (m.expertWeights ?? dtype) : dtype;
}

/** KV values cached a token in one layer. */
export function kvValuesPerLayer(m: ModelShape): number {
  return m.mla ? m.mla.kvLora + m.mla.rope : m.kvHeads * (m.headDim + m.valueDim);
}

/** KV bytes a token over the layers that keep the whole context. */
export function kvBytesPerToken(m: ModelShape, dtype: Dtype = 'bf16'): number {
  return (m.layers - (m.window?.layers ?? 0)) * kvValuesPerLayer(m) * KV_BYTES[dtype];
}

/** KV bytes of one sequence of `tokens` tokens, sliding layers counted up to their window. */
export function kvBytesPerSequence(m: ModelShape, tokens: number, dtype: Dtype = 'bf16'): number {
  const full = kvBytesPerToken(m, dtype) * tokens;
  if (!m.window) return full;
  return full + m.window.layers * kvValuesPerLayer(m) * KV_BYTES[dtype] * Math.min(tokens, m.window.tokens);
}
