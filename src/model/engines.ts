/**
 * What an engine adds to the hardware. Fitted in 2026 on 1,059 configurations of served rows (mean TTFT and TPOT at a
 * closed-loop concurrency; aiconfigurator, Apache-2.0) by `refit` of plan/validate: shares of peaks common to all engines,
 * launches, scheduling, kernels of experts and the frontend of each engine its own. Errors on models and accelerators left
 * out are in docs/scoreboard.md.
 */
import type { Millis, Share } from '../base/units.ts';
import type { Efficiencies } from './roofline.ts';

export type EngineName = 'vllm' | 'sglang' | 'trtllm';
export const ENGINE_NAMES: readonly EngineName[] = ['vllm', 'sglang', 'trtllm'];

export interface EngineFit {
  readonly efficiencies: Efficiencies;
  /** From the server's door to the queue and back: a request, ms, and a prompt token, µs. */
  readonly frontendMs: Millis;
  readonly frontendTokenUs: number;
}

type Own =
  | 'expertMemory'
  | 'expertCompute'
  | 'layerUs'
  | 'expertLayerUs'
  | 'prefillLayerUs'
  | 'stepUs'
  | 'sequenceUs'
  | 'cpuStepUs'
  | 'cpuSequenceUs'
  | 'separate'
  | 'source';

/** Common to all engines. Attention's own costs are from kernel measurements, and were held. */
const SHARED: Omit<Efficiencies, Own> = {
  linearMemory: 0.75,
  linearCompute: 0.66,
  linearMemory4: 0.503,
  linearCompute4: 0.458,
  expertSkew: 1,
  attentionMemory: 0.95,
  attentionMemory8: 0.95,
  attentionLayerUs: 10,
  prefillAttention: 0.9,
  prefillHalfTokens: 1829,
  activationBytes: 12.7,
  routedBytes: 12.4,
  collectiveUs: 20.5,
  linkShare: 0.815,
  oneShot: true,
};

export const ENGINES_2026: Readonly<Record<EngineName, EngineFit>> = {
  vllm: {
    efficiencies: {
      ...SHARED,
      source: 'served rows of vLLM, 2026',
      expertMemory: 0.628,
      expertCompute: 0.336,
      layerUs: 8.63,
      expertLayerUs: 22.4,
      prefillLayerUs: 85.7,
      stepUs: 114,
      sequenceUs: 4.41,
      cpuStepUs: 1500,
      cpuSequenceUs: 20,
      separate: false,
    },
    frontendMs: 36.6,
    frontendTokenUs: 1.73,
  },
  sglang: {
    efficiencies: {
      ...SHARED,
      source: 'served rows of SGLang, 2026',
      expertMemory: 0.95,
      expertCompute: 0.252,
      layerUs: 6.41,
      expertLayerUs: 66,
      prefillLayerUs: 73,
      stepUs: 156,
      sequenceUs: 16.1,
      cpuStepUs: 1500,
      cpuSequenceUs: 20,
      separate: true,
    },
    frontendMs: 174,
    frontendTokenUs: 2,
  },
  trtllm: {
    efficiencies: {
      ...SHARED,
      source: 'served rows of TensorRT-LLM, 2026',
      expertMemory: 0.706,
      expertCompute: 0.179,
      layerUs: 12.1,
      expertLayerUs: 8.09,
      prefillLayerUs: 38.5,
      stepUs: 147,
      sequenceUs: 9.71,
      cpuStepUs: 1500,
      cpuSequenceUs: 20,
      separate: false,
    },
    frontendMs: 114,
    frontendTokenUs: 1.58,
  },
};

/** Median absolute errors on rows of models the fit had not seen (each model left out in turn), as `validate` recorded. */
export const ENGINES_LEFT_OUT: Readonly<Record<'dense' | 'moe', { readonly tpot: Share; readonly ttft: Share }>> = {
  dense: { tpot: 0.135, ttft: 0.357 },
  moe: { tpot: 0.22, ttft: 0.347 },
};
