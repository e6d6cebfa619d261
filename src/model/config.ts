/** A Hugging Face `config.json`, already parsed, as a `ModelShape`. */
import { InputError } from '../base/errors.ts';
import type { Dtype } from './dtype.ts';
import type { MlaShape, ModelShape, MoeShape } from './shape.ts';

type Json = Readonly<Record<string, unknown>>;

/** Architectures with layers of a kind the step model does not have: refused rather than taken for a transformer. */
const UNMODELLED: readonly { readonly test: (c: Json, type: string) => boolean; readonly what: string }[] = [
  { test: (_, type) => /nemotron_?h|mamba|jamba|falcon_h1|bamba|zamba/.test(type), what: 'state-space (Mamba) layers' },
  {
    test: (c) => c.linear_num_key_heads !== undefined || c.linear_attn_config !== undefined,
    what: 'linear-attention layers',
  },
  { test: (c) => c.block_configs !== undefined, what: 'layers of differing shapes (block_configs)' },
  { test: (_, type) => /deepseek_?v4/.test(type), what: 'compressed-attention layers' },
  { test: (c) => c.num_global_key_value_heads !== undefined, what: 'layers of differing head widths' },
];

/**
 * @param json the parsed file; a multi-modal model's language part (`text_config`, `llm_config`) is taken.
 * @param name what to call the model, and how errors name it.
 * @throws InputError naming the field that is missing or cannot be modelled.
 */
export function modelFromConfig(json: unknown, name: string, source = 'config.json'): ModelShape {
  if (!isRecord(json))
    throw new InputError(`model config '${name}' is not a JSON object; give a Hugging Face config.json`);
  const nested = [json.text_config, json.llm_config, json.language_config].find(isRecord);
  const c: Json = nested ?? json;
  const type =
    `${String(c.model_type ?? '')} ${String((json.architectures as unknown[] | undefined)?.[0] ?? '')}`.toLowerCase();
  for (const { test, what } of UNMODELLED) {
    if (test(c, type))
      throw new InputError(
        `model config '${name}': it has ${what}, which the engine model does not describe; describe a transformer instead`,
      );
  }
  const need = (...keys: string[]): number => {
    const value = optional(c, name, ...keys);
    if (value === undefined)
      throw new InputError(
        `model config '${name}' lacks '${keys[0]}'; add it, or give the config.json the model is served from`,
      );
    return value;
  };
  const layers = need('num_hidden_layers', 'n_layer', 'num_layers');
  const hidden = need('hidden_size', 'n_embd', 'd_model');
  const heads = need('num_attention_heads', 'n_head');
  const mla = mlaOf(c, name);
  const headDim = mla ? mla.nope + mla.rope : (optional(c, name, 'head_dim') ?? hidden / heads);
  if (!Number.isInteger(headDim)) {
    throw new InputError(
      `model config '${name}': hidden_size ${hidden} is not a multiple of num_attention_heads ${heads}; add 'head_dim'`,
    );
  }
  const kvHeads = optional(c, name, 'num_key_value_heads', 'num_kv_heads') ?? heads;
  if (heads % kvHeads !== 0) {
    throw new InputError(
      `model config '${name}': num_attention_heads ${heads} is not a multiple of num_key_value_heads ${kvHeads}; check both`,
    );
  }
  const moe = moeOf(c, name, layers);
  const denseFfn = optional(c, name, 'intermediate_size_mlp', 'intermediate_size', 'n_inner', 'ffn_dim');
  if (denseFfn === undefined && (!moe || moe.layers < layers)) need('intermediate_size');
  const window = windowOf(c, name, layers);
  const quantised = quantisationOf(json, c, name);
  return {
    name,
    layers,
    hidden,
    heads,
    kvHeads,
    headDim,
    valueDim: optional(c, name, 'v_head_dim') ?? headDim,
    ffn: denseFfn ?? 0,
    ...(UNGATED.test(String(c.model_type)) && { ffnMatrices: 2 as const }),
    vocab: need('vocab_size'),
    tied: (c.tie_word_embeddings ?? json.tie_word_embeddings) === true,
    context: optional(c, name, 'max_position_embeddings', 'n_positions') ?? 131_072,
    ...(moe && { moe }),
    ...(mla && { mla }),
    ...(window && { window }),
    ...quantised,
    source,
  };
}

/** Families whose feed-forward has no gate: two matrices, not three. */
const UNGATED = /^(opt|gpt2|gpt_neox|gptj|bloom|falcon|phi|phi-msft|starcoder2|mpt)$/;

function isRecord(x: unknown): x is Json {
  return typeof x === 'object' && x !== null && !Array.isArray(x);
}

/** The first of `keys` that is set, a positive whole number. */
function optional(c: Json, name: string, ...keys: string[]): number | undefined {
  for (const key of keys) {
    const value = c[key];
    if (value === undefined || value === null) continue;
    if (typeof value !== 'number' || !Number.isInteger(value) || value < 1 || value > 1e9) {
      throw new InputError(`model config '${name}': '${key}' must be a whole number of 1 or more`);
    }
    return value;
  }
  return undefined;
}

/** As `optional`, with 0 allowed and meaning none. */
function count(c: Json, name: string, ...keys: string[]): number {
  for (const key of keys) if (c[key] === 0) return 0;
  return optional(c, name, ...keys) ?? 0;
}

function mlaOf(c: Json, name: string): MlaShape | undefined {
  const kvLora = optional(c, name, 'kv_lora_rank');
  if (kvLora === undefined) return undefined;
  const rope = optional(c, name, 'qk_rope_head_dim');
  const nope = optional(c, name, 'qk_nope_head_dim');
  if (rope === undefined || nope === undefined) {
    throw new InputError(
      `model config '${name}' has 'kv_lora_rank' but lacks '${rope === undefined ? 'qk_rope_head_dim' : 'qk_nope_head_dim'}'; add it`,
    );
  }
  return { kvLora, qLora: optional(c, name, 'q_lora_rank') ?? 0, rope, nope };
}

function moeOf(c: Json, name: string, layers: number): MoeShape | undefined {
  const experts = optional(c, name, 'num_local_experts', 'n_routed_experts', 'num_experts');
  if (experts === undefined || experts === 1) return undefined;
  const topK = optional(c, name, 'num_experts_per_tok', 'experts_per_token', 'top_k_experts', 'moe_topk');
  if (topK === undefined)
    throw new InputError(`model config '${name}' has experts but lacks 'num_experts_per_tok'; add it`);
  if (topK > experts)
    throw new InputError(
      `model config '${name}': num_experts_per_tok ${topK} exceeds the ${experts} experts; check both`,
    );
  const ffn = optional(c, name, 'moe_intermediate_size', 'intermediate_size');
  if (ffn === undefined)
    throw new InputError(`model config '${name}' has experts but lacks 'moe_intermediate_size'; add it`);
  const sharedFfn =
    c.shared_expert_intermediate_size === undefined && c.share_expert_dim === undefined
      ? /llama4/.test(String(c.model_type))
        ? ffn
        : count(c, name, 'n_shared_experts', 'num_shared_experts') * ffn
      : count(c, name, 'shared_expert_intermediate_size', 'share_expert_dim');
  const every = optional(c, name, 'interleave_moe_layer_step', 'moe_layer_freq_step', 'decoder_sparse_step') ?? 1;
  const dense = denseFirst(c, name, layers);
  return { experts, topK, ffn, sharedFfn, layers: Math.floor((layers - dense) / every) };
}

/** Layers without experts: the first few (`first_k_dense_replace`), or those a per-layer `moe_layer_freq` marks 0. */
function denseFirst(c: Json, name: string, layers: number): number {
  const freq = c.moe_layer_freq;
  if (Array.isArray(freq)) return freq.slice(0, layers).filter((x) => x === 0).length;
  return count(c, name, 'first_k_dense_replace');
}

function windowOf(c: Json, name: string, layers: number): { tokens: number; layers: number } | undefined {
  if (c.use_sliding_window === false) return undefined;
  const tokens = optional(c, name, 'sliding_window', 'attention_chunk_size');
  if (tokens === undefined) return undefined;
  const context = optional(c, name, 'max_position_embeddings') ?? Number.POSITIVE_INFINITY;
  if (tokens >= context) return undefined;
  const types = c.layer_types;
  if (Array.isArray(types)) {
    const sliding = types.filter((t) => /sliding|chunked/.test(String(t))).length;
    return sliding > 0 ? { tokens, layers: sliding } : undefined;
  }
  const pattern = c.hybrid_layer_pattern;
  if (Array.isArray(pattern)) return { tokens, layers: pattern.filter((t) => t === 1).length };
  // Llama 4 attends in chunks on three layers of four (its `no_rope_layers`); others without a pattern slide everywhere.
  if (/llama4/.test(String(c.model_type))) return { tokens, layers: Math.floor((layers * 3) / 4) };
  return { tokens, layers };
}

function quantisationOf(json: Json, c: Json, name: string): { weights: Dtype; expertWeights?: Dtype } {
  const q = [c.quantization_config, json.quantization_config].find(isRecord);
  if (!q) return { weights: /fp8/i.test(name) ? 'fp8' : /fp4/i.test(name) ? 'fp4' : 'bf16' };
  const method = String(q.quant_method ?? q.quant_algo ?? '').toLowerCase();
  if (method === 'mxfp4') return { weights: 'bf16', expertWeights: 'fp4' };
  if (/fp8/.test(method)) return { weights: 'fp8' };
  if (/fp4/.test(method)) return { weights: 'fp4' };
  if (/awq|gptq/.test(method)) return { weights: 'int4' };
  const bits = /"num_bits":\s*(\d+)/.exec(JSON.stringify(q))?.[1];
  const float = /"type":\s*"float"/.test(JSON.stringify(q));
  if (bits === '4')
    return float
      ? { weights: 'fp4' }
      : /self_attn/.test(JSON.stringify(q.ignore))
        ? { weights: 'bf16', expertWeights: 'int4' }
        : { weights: 'int4' };
  if (bits === '8') return { weights: float ? 'fp8' : 'int8' };
  return { weights: 'bf16' };
}
