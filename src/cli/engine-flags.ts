/** The flags by which a command is told an engine that is not there: model, accelerator, how it is spread and stored. */
import { InputError, messageOf, oneLine } from '../base/errors.ts';
import type { Millis } from '../base/units.ts';
import type { Calibrated, Deployment, ModelShape, Reserves, StepModel } from '../model/index.ts';
import { text } from './command.ts';
import { numberFlags } from './load-flags.ts';

export interface DeploymentFlags {
  readonly model: string;
  readonly gpu: string;
  readonly tp?: number;
  readonly dp?: number;
  readonly pp?: number;
  readonly kvSkew?: number;
  readonly weights?: string;
  readonly kvDtype?: string;
  readonly gpuMemoryUtilization?: number;
  readonly ideal: boolean;
}

export const DEPLOYMENT_FLAGS = {
  model: { ...text('Model by name, or the path of a Hugging Face config.json', 'name'), optional: false },
  gpu: { ...text('Accelerator by name', 'name'), optional: false },
  tp: {
    kind: 'parsed',
    parse: numberFlags.whole('tp'),
    optional: true,
    brief: 'Devices that share each layer (tensor parallelism, default 1)',
    placeholder: 'N',
  },
  dp: {
    kind: 'parsed',
    parse: numberFlags.whole('dp'),
    optional: true,
    brief: 'Attention ranks that share the experts (attention data parallelism, default 1)',
    placeholder: 'N',
  },
  pp: {
    kind: 'parsed',
    parse: numberFlags.whole('pp'),
    optional: true,
    brief: 'Pipeline stages the layers are spread over (default 1)',
    placeholder: 'N',
  },
  kvSkew: {
    kind: 'parsed',
    parse: numberFlags.positive('kv-skew'),
    optional: true,
    brief: 'Time of reading uneven KV against even: 1 (default) where kernels split long sequences',
    placeholder: 'factor',
  },
  weights: text('Precision of the weights: bf16, fp8, fp4, int8, int4 (default: as published)', 'dtype'),
  kvDtype: text('Precision of the KV cache (default bf16)', 'dtype'),
  gpuMemoryUtilization: {
    kind: 'parsed',
    parse: numberFlags.positive('gpu-memory-utilization'),
    optional: true,
    brief: 'Share of device memory for weights and KV (default 0.9)',
    placeholder: '0..1',
  },
  ideal: { kind: 'boolean', default: false, brief: 'The closed form: bytes over bandwidth, or FLOPs over peak' },
} as const;

/** An engine as the flags describe it. */
export interface EngineChoice {
  readonly on: Deployment;
  readonly reserves: Reserves;
  readonly step: StepModel;
  /** Absent under `--ideal`. */
  readonly calibrated?: Calibrated;
  /** `llama-3.1-8b (bf16, KV bf16) on 1 × h100-sxm`. */
  readonly text: string;
}

/** @throws InputError naming the flag, or the model's or accelerator's nearest name. */
export async function engineOf(flags: DeploymentFlags): Promise<EngineChoice> {
  const m = await import('../model/index.ts');
  const share = flags.gpuMemoryUtilization ?? m.RESERVES.share;
  if (share > 1) {
    throw new InputError(`--gpu-memory-utilization ${share} is not a share above 0 and up to 1; the default is 0.9`);
  }
  const on = m.deployment(await modelOf(flags.model), m.accelerator(flags.gpu), {
    ...(flags.weights !== undefined && { weights: m.parseDtype(flags.weights, '--weights') }),
    ...(flags.kvDtype !== undefined && { kv: m.parseDtype(flags.kvDtype, '--kv-dtype') }),
    ...(flags.tp !== undefined && { tp: flags.tp }),
    ...(flags.dp !== undefined && { dp: flags.dp }),
    ...(flags.pp !== undefined && { pp: flags.pp }),
  });
  const reserves = { ...m.RESERVES, share };
  const n = m.devices(on);
  const label = `${on.model.name} (${on.weights}, KV ${on.kv}) on ${n} × ${on.accelerator.id}`;
  const skew = flags.kvSkew ?? 1;
  if (skew < 1) throw new InputError(`--kv-skew ${skew} is below 1, the time of even contexts; give 1.2, say`);
  const { pp = 1, ...stage } = on;
  const adjusted = (step: StepModel): StepModel => {
    const skewed = skew > 1 ? new m.SkewedStepModel(step, skew) : step;
    return pp > 1 ? new m.PipelinedStepModel(skewed, on) : skewed;
  };
  if (flags.ideal) return { on, reserves, step: adjusted(new m.IdealStepModel(stage)), text: label };
  const found = m.calibrated(stage);
  const beyond = [
    ...found.beyond,
    ...(pp > 1
      ? [
          `no measurement with pipeline stages was in the fit: ${pp} even stages and as many microbatches under way are assumed, and links as the vendor states them`,
        ]
      : []),
    ...(skew > 1 ? ['the factor of uneven KV reads is yours (--kv-skew)'] : []),
  ];
  const calibrated = { ...found, beyond };
  return { on, reserves, step: adjusted(found.step), calibrated, text: label };
}

/** A model by name, or by the path of its `config.json`. */
export async function modelOf(name: string): Promise<ModelShape> {
  const { model, modelFromConfig } = await import('../model/index.ts');
  if (!name.endsWith('.json')) return model(name);
  const { readFile } = await import('node:fs/promises');
  let json: unknown;
  try {
    json = JSON.parse(await readFile(name, 'utf8'));
  } catch (error) {
    throw new InputError(
      `--model ${oneLine(name)}: cannot be read as JSON (${messageOf(error)}); name a model's config.json`,
      { cause: error },
    );
  }
  return modelFromConfig(json, name, name);
}

/**
 * What must be known of the step times, in sentences: what they rest on, where they go beyond it, how far off they are on
 * models that were left out.
 */
export function basisOf(choice: EngineChoice): string[] {
  const c = choice.calibrated;
  if (!c) return ['ideal step times: no overheads, no launch costs, links for free; no real engine is this fast'];
  const percent = (x: number): string => `${Math.round(100 * x)} %`;
  return [
    `step times ${c.step.label}: median absolute error on models left out of the fit ${percent(c.error.tpot)} for TPOT, ${percent(c.error.ttft)} for TTFT`,
    ...c.beyond.map((b) => `beyond the data: ${b}`),
  ];
}

/** Time outside the engine that TTFT includes, ms; none in the ideal. */
export function frontendOf(choice: EngineChoice): Millis {
  return choice.calibrated?.frontendMs ?? 0;
}
