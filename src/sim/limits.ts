/** What bounds a replica's batches: vLLM's serving options, by their meaning. */

import { InputError } from '../base/errors.ts';
import type { RequestSpec } from '../core/request.ts';
import {
  type Deployment,
  devices,
  kvPoolBytesPerDevice,
  kvShare,
  RESERVES,
  type Reserves,
} from '../model/deployment.ts';
import { kvBytesPerSequence } from '../model/shape.ts';

export interface ReplicaLimits {
  /** Sequences in a batch (`max_num_seqs`). */
  readonly maxSeqs: number;
  /** Tokens a step may put through the model (`max_num_batched_tokens`). */
  readonly maxBatchedTokens: number;
  /** Tokens of context a KV block holds (`block_size`). */
  readonly blockTokens: number;
  readonly kvBlocks: number;
  /** Longest prompt + output (`max_model_len`). */
  readonly maxLength: number;
  /** Requests that may wait; one more is refused. +∞: none ever is. */
  readonly maxQueue: number;
  /** Split prompts over steps to the budget. Off: a prompt runs whole, alone in the budget if it must. */
  readonly chunkedPrefill: boolean;
  /** Prefill tokens one request may take in a step (`long_prefill_token_threshold`); 0: no such limit. */
  readonly longPrefill: number;
  /** Admit a request only when its whole prompt fits the free KV, not its first chunk alone (`scheduler_reserve_full_isl`). */
  readonly reservePrompt: boolean;
  /**
   * Plan a step when the one before it begins (`async_scheduling`): what came meanwhile waits for the next but one, and
   * counts as scheduled from the planning on.
   */
  readonly asyncScheduling: boolean;
  readonly prefixCaching: boolean;
  /** Tokens one hash of `RequestSpec.prefixBlocks` stands for; a multiple of `blockTokens`. */
  readonly prefixBlockTokens: number;
}

/** vLLM's defaults for an API server. */
export const LIMIT_DEFAULTS: Omit<ReplicaLimits, 'kvBlocks'> = {
  maxSeqs: 256,
  maxBatchedTokens: 8192,
  blockTokens: 16,
  maxLength: Number.POSITIVE_INFINITY,
  maxQueue: Number.POSITIVE_INFINITY,
  chunkedPrefill: true,
  longPrefill: 0,
  reservePrompt: true,
  asyncScheduling: false,
  prefixCaching: true,
  prefixBlockTokens: 16,
};

/** ReplicaLimits with the rest by default, checked. @throws InputError naming what is wrong. */
export function limitsOf(given: Partial<ReplicaLimits> & { readonly kvBlocks: number }): ReplicaLimits {
  const limits: ReplicaLimits = {
    ...LIMIT_DEFAULTS,
    ...(given.prefixBlockTokens === undefined &&
      given.blockTokens !== undefined && { prefixBlockTokens: given.blockTokens }),
    ...given,
  };
  const whole = (name: keyof ReplicaLimits, least: number): void => {
    const value = limits[name] as number;
    if (!(value >= least) || (Number.isFinite(value) && !Number.isInteger(value))) {
      throw new InputError(`${name} ${value} must be a whole number of ${least} or more`);
    }
  };
  whole('maxSeqs', 1);
  whole('maxBatchedTokens', 1);
  whole('blockTokens', 1);
  whole('maxLength', 2);
  whole('maxQueue', 1);
  whole('longPrefill', 0);
  whole('prefixBlockTokens', 1);
  if (!(limits.kvBlocks >= 1) || !Number.isInteger(limits.kvBlocks)) {
    throw new InputError(
      `the KV pool has ${limits.kvBlocks} blocks; it needs at least 1: use a larger or another accelerator`,
    );
  }
  if (limits.maxSeqs > 100_000)
    throw new InputError(`maxSeqs ${limits.maxSeqs} is beyond what is simulated; use at most 100000`);
  if (limits.maxBatchedTokens < limits.maxSeqs) {
    throw new InputError(
      `the token budget ${limits.maxBatchedTokens} is below the ${limits.maxSeqs} sequences of a batch; raise the budget or lower the batch`,
    );
  }
  if (limits.prefixBlockTokens % limits.blockTokens !== 0) {
    throw new InputError(
      `prefix blocks of ${limits.prefixBlockTokens} tokens are not whole KV blocks of ${limits.blockTokens}`,
    );
  }
  return limits;
}

/**
 * ReplicaLimits of a deployment: the KV pool is what memory leaves after weights and reserves. Sliding layers hold their window
 * only, so a block's bytes are taken at the model's longest context.
 * @throws InputError when the weights do not fit, saying by how much.
 */
export function limitsFor(
  d: Deployment,
  given: Partial<ReplicaLimits> = {},
  reserves: Reserves = RESERVES,
): ReplicaLimits {
  if (given.kvBlocks !== undefined) return limitsOf({ maxLength: d.model.context, ...given, kvBlocks: given.kvBlocks });
  const blockTokens = given.blockTokens ?? LIMIT_DEFAULTS.blockTokens;
  const bytes = kvPoolBytesPerDevice(d, reserves);
  const context = Math.min(d.model.context, 32_768);
  const blockBytes = ((kvShare(d) * kvBytesPerSequence(d.model, context, d.kv)) / context) * blockTokens;
  const kvBlocks = d.dp * Math.floor(bytes / blockBytes);
  if (kvBlocks < 1) {
    const short = ((blockBytes - bytes) / 1e9).toFixed(1);
    throw new InputError(
      `${d.model.name} in ${d.weights} leaves no room for KV on ${devices(d)} × ${d.accelerator.id} (short by ${short} GB each after the reserves); use more devices, a smaller precision or a larger accelerator`,
    );
  }
  return limitsOf({ maxLength: d.model.context, ...given, kvBlocks });
}

/** Tokens of a request's whole context: prompt and answer, each one at least. */
export function lengthOf(spec: Pick<RequestSpec, 'inputTokens' | 'outputTokens'>): number {
  return Math.max(1, spec.inputTokens) + Math.max(1, spec.outputTokens);
}
