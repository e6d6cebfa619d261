/** Engines the emulator can stand in front of: fixed timing, or a cluster of a model on a GPU. */
import { InputError, type Millis } from '../base/index.ts';
import type { Clock } from '../core/index.ts';
import { accelerator, deployment, IdealStepModel, type ModelShape, model, RESERVES } from '../model/index.ts';
import {
  ContinuousReplica,
  limitsFor,
  pacedClock,
  type Script,
  type StepObserver,
  scriptedEngine,
  simEngine,
} from '../sim/index.ts';
import { BLOCK_TOKENS } from './prompt-scan.ts';
import type { ServedEngine } from './service.ts';

/** Makes an engine on the emulator's wall clock; `onStep` is told of each engine step where the engine has steps. */
export type MakeEngine = (wall: Clock, onStep: StepObserver) => ServedEngine;

/** Fixed timing, however many requests there are. */
export function scriptedServed(script: Script, speed = 1): MakeEngine {
  return (wall) => {
    const { clock, plannedAt } = paced(wall, speed);
    const engine = scriptedEngine(clock, script);
    return { engine, plannedAt, speed, tellsSteps: false, about: `${engine.name}${speedText(speed)}` };
  };
}

export interface ClusterOptions {
  /** A name in the catalogue, or a shape read from elsewhere. */
  readonly model: string | ModelShape;
  /** A name in the catalogue. */
  readonly gpu: string;
  readonly speed?: number;
  readonly maxNumSeqs?: number;
  readonly maxNumBatchedTokens?: number;
  /** Default: the model's context, or what the KV pool holds if that is less. */
  readonly maxModelLen?: number;
  readonly kvBlocks?: number;
  readonly gpuMemoryUtilization?: number;
  readonly prefixCaching?: boolean;
}

/** One replica of a model on a GPU with the ideal step time. @throws InputError for names and sizes that do not go. */
export function clusterServed(options: ClusterOptions): { engine: MakeEngine; maxModelLen: number } {
  const { speed = 1, gpuMemoryUtilization = RESERVES.share, kvBlocks, maxNumSeqs, maxNumBatchedTokens } = options;
  if (!(gpuMemoryUtilization > 0 && gpuMemoryUtilization <= 1)) {
    throw new InputError(`--gpu-memory-utilization ${gpuMemoryUtilization} is not a share above 0 and up to 1`);
  }
  const shape = typeof options.model === 'string' ? model(options.model) : options.model;
  const on = deployment(shape, accelerator(options.gpu));
  const limits = limitsFor(
    on,
    {
      prefixCaching: options.prefixCaching ?? true,
      prefixBlockTokens: BLOCK_TOKENS,
      ...(maxNumSeqs !== undefined && { maxSeqs: maxNumSeqs }),
      ...(maxNumBatchedTokens !== undefined && { maxBatchedTokens: maxNumBatchedTokens }),
      ...(kvBlocks !== undefined && { kvBlocks }),
    },
    { ...RESERVES, share: gpuMemoryUtilization },
  );
  const pool = limits.kvBlocks * limits.blockTokens;
  const maxModelLen = options.maxModelLen ?? Math.min(on.model.context, pool);
  if (maxModelLen > pool) {
    throw new InputError(
      `--max-model-len ${maxModelLen}: the KV pool holds ${pool} tokens; lower it, or raise --kv-blocks or --gpu-memory-utilization`,
    );
  }
  if (maxModelLen < 2) throw new InputError(`--max-model-len ${maxModelLen}: a prompt and its answer need 2 or more`);
  const step = new IdealStepModel(on);
  return {
    maxModelLen,
    engine: (wall, onStep) => {
      const { clock, plannedAt } = paced(wall, speed);
      const cluster = new ContinuousReplica(step, limits, onStep);
      return {
        engine: simEngine(cluster, clock, `${on.model.name} on ${on.accelerator.id}`),
        plannedAt,
        speed,
        tellsSteps: true,
        load: () => cluster.gauges(),
        about:
          `${on.model.name} (${on.weights}) on ${on.accelerator.id}, ${step.label} step time, ` +
          `batch ≤ ${limits.maxSeqs}, step ≤ ${limits.maxBatchedTokens} tokens, ` +
          `${limits.kvBlocks} KV blocks of ${limits.blockTokens}${speedText(speed)}`,
        cache: {
          blocks: limits.kvBlocks,
          blockTokens: limits.blockTokens,
          gpuMemoryUtilization,
          prefixCaching: limits.prefixCaching,
        },
      };
    },
  };
}

function paced(wall: Clock, speed: number): { clock: Clock; plannedAt: (t: Millis) => Millis } {
  const origin = wall.now();
  return { clock: pacedClock(wall, speed), plannedAt: (t) => origin + t / speed };
}

function speedText(speed: number): string {
  return speed === 1 ? '' : `, ${speed} × real time`;
}
