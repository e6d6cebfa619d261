/** Efficiencies fitted on served measurements, and what they may be trusted for. */
import { type Deployment, devices } from './deployment.ts';
import { ENGINES_2026, ENGINES_LEFT_OUT, type EngineName } from './engines.ts';
import { type Efficiencies, RooflineStepModel } from './roofline.ts';

/**
 * Fitted in 2026 on 1,061 aggregated rows (mean TTFT and TPOT at a closed-loop concurrency; aiconfigurator, Apache-2.0):
 * 11 models, vLLM, SGLang and TensorRT-LLM, H100, H200, B200 and GB200, 8 devices at most. Each row was simulated for six
 * rounds of its concurrency, output lengths within ±10 % so that requests fall out of step; coordinate descent on the mean
 * absolute log error of TPOT plus 0.15 of TTFT's, six rows of each model × accelerator × engine × precision. Prefill
 * attention's half length and decode attention's layer cost are from kernel measurements and were held.
 *
 * What it cannot tell apart: expert FLOPs, activations and `prefillLayerUs` together carry whatever makes a step with
 * prefill slow, and the engines differ in it (eager launches; engines that stop decoding for a prefill).
 */
export const SERVED_2026: Efficiencies = {
  source: 'served rows, 2026',
  linearMemory: 0.8,
  linearCompute: 0.9,
  linearMemory4: 0.6,
  linearCompute4: 0.6,
  expertMemory: 0.6,
  expertCompute: 0.091,
  expertSkew: 1,
  attentionMemory: 0.9,
  attentionMemory8: 0.95,
  attentionLayerUs: 10,
  prefillAttention: 0.9,
  prefillHalfTokens: 1829,
  activationBytes: 17.6,
  collectiveUs: 10.4,
  linkShare: 0.54,
  layerUs: 20,
  prefillLayerUs: 154,
  stepUs: 84,
  sequenceUs: 8.8,
  cpuStepUs: 1800,
  cpuSequenceUs: 26,
};

/** From the server's door to the engine's queue and from its output to the client, fitted with the above: adds to TTFT. */
export const SERVED_FRONTEND_MS = 72;

/**
 * Median absolute errors on rows of models the fit had not seen (same procedure; Llama and gpt-oss left out, then Qwen and
 * Kimi): the worse of the two. On the rows of the fit itself: dense 12 % and 30 %, experts 17 % and 42 %.
 */
export const LEFT_OUT = { dense: { tpot: 0.17, ttft: 0.44 }, moe: { tpot: 0.27, ttft: 1.14 } } as const;

/** A step model with the default efficiencies, and in what respects that goes beyond the data. */
export interface Calibrated {
  readonly step: RooflineStepModel;
  /** Time outside the engine that a request's TTFT includes (`FrontendCluster`), ms. */
  readonly frontendMs: number;
  /** And for each prompt token (tokenizing, handing over), µs. */
  readonly frontendTokenUs: number;
  /** Each a clause for people; empty inside the data. */
  readonly beyond: readonly string[];
  /** Median absolute error on models that were left out of the fit, for this kind of model; shares. */
  readonly error: { readonly tpot: number; readonly ttft: number };
}

const FITTED_ON: readonly string[] = ['h100-sxm', 'h200-sxm', 'b200-sxm', 'gb200'];
const FITTED_WEIGHTS: readonly string[] = ['bf16', 'fp8', 'fp4', 'int4'];

/** @param engine whose overheads to take; none named: one fit over all engines. */
export function calibrated(d: Deployment, engine?: EngineName): Calibrated {
  const beyond: string[] = [];
  if (!FITTED_ON.includes(d.accelerator.id))
    beyond.push(
      `no measurement on ${d.accelerator.id} was in the fit: shares of its peaks are taken from ${FITTED_ON.join(', ')}`,
    );
  if (!FITTED_WEIGHTS.includes(d.weights)) beyond.push(`no measurement with ${d.weights} weights was in the fit`);
  if (devices(d) > 8) beyond.push(`${devices(d)} devices: the fit saw 8 at most`);
  if (d.model.window) beyond.push('few of the models measured have sliding windows');
  return {
    step: new RooflineStepModel(d, engine ? ENGINES_2026[engine].efficiencies : SERVED_2026),
    frontendMs: engine ? ENGINES_2026[engine].frontendMs : SERVED_FRONTEND_MS,
    frontendTokenUs: engine ? ENGINES_2026[engine].frontendTokenUs : 0,
    beyond,
    error: (engine ? ENGINES_LEFT_OUT : LEFT_OUT)[d.model.moe ? 'moe' : 'dense'],
  };
}
