/** The engine `simulate` runs: of a model on an accelerator, or as a calibrated profile has it; and the system around it. */
import { InputError, messageOf, oneLine } from '../base/errors.ts';
import { parseDuration } from '../base/units.ts';
import type { StepModel } from '../model/index.ts';
import type { ReplicaLimits, SchedulerName, SystemPlan } from '../sim/index.ts';
import { text } from './command.ts';
import { basisOf, type DeploymentFlags, type EngineChoice, engineOf, frontendOf, modelOf } from './engine-flags.ts';
import { numberFlags } from './load-flags.ts';

export interface SystemFlags {
  readonly maxNumSeqs?: number;
  readonly maxNumBatchedTokens?: number;
  readonly maxModelLen?: number;
  readonly kvBlocks?: number;
  readonly enablePrefixCaching: boolean;
  readonly maxQueue?: number;
  readonly asyncScheduling?: boolean;
  readonly scheduler?: SchedulerName;
  readonly replicas: number;
  readonly router: 'round-robin' | 'least-loaded' | 'prefix-affinity';
  readonly prefillReplicas?: number;
  readonly kvLink?: number;
  readonly draftTokens?: number;
  readonly acceptance?: number;
  readonly draftModel?: string;
  readonly frontend?: string;
}

export const whole = (name: string, brief: string) =>
  ({ kind: 'parsed', parse: numberFlags.whole(name), optional: true, brief, placeholder: 'N' }) as const;

/** The flags of a serving system's scheduler, by vLLM's names where it has one. */
export const SYSTEM_FLAGS = {
  maxNumSeqs: whole('max-num-seqs', 'Sequences in a batch at most (default 256)'),
  maxNumBatchedTokens: whole('max-num-batched-tokens', 'Tokens in a step at most (default 8192)'),
  maxModelLen: whole('max-model-len', 'Longest prompt and output together'),
  kvBlocks: whole('kv-blocks', 'KV blocks of 16 tokens a replica (default: what memory leaves)'),
  enablePrefixCaching: { kind: 'boolean', default: true, brief: 'Keep prompt blocks for later prompts' },
  maxQueue: whole('max-queue', 'Refuse requests when this many wait (default: no bound)'),
  asyncScheduling: {
    kind: 'boolean',
    optional: true,
    brief: 'Plan each step while the one before runs: arrivals wait a step longer (default: off)',
  },
  scheduler: {
    kind: 'enum',
    values: ['continuous', 'static', 'gated'],
    optional: true,
    brief:
      'Continuous batching with chunked prefill (default), whole batches one after the other, or gated as in node-llama-cpp',
  },
  replicas: { ...whole('replicas', 'Replicas behind a router'), optional: false, default: '1' },
  router: {
    kind: 'enum',
    values: ['round-robin', 'least-loaded', 'prefix-affinity'],
    default: 'least-loaded',
    brief: 'How requests are spread over replicas',
  },
  prefillReplicas: whole('prefill-replicas', 'Replicas for prompts alone; --replicas then only decode'),
  kvLink: {
    kind: 'parsed',
    parse: numberFlags.positive('kv-link'),
    optional: true,
    brief: 'Link the KV travels from prefill to decode, GB/s (default: one scale-up link of the accelerator)',
    placeholder: 'GB/s',
  },
  draftTokens: whole('draft-tokens', 'Speculative decoding: tokens drafted a step'),
  acceptance: {
    kind: 'parsed',
    parse: Number,
    optional: true,
    brief: 'Chance that a drafted token is kept (default 0.7)',
    placeholder: 'share',
  },
  draftModel: text('Model that drafts, on the same devices (default: drafting is free)', 'name'),
  frontend: text('Time from the door to the queue and back (default: as calibrated; none with --ideal)', '70ms'),
} as const;

/** What is simulated, in the words of its report. */
export interface SimulatedEngine {
  readonly text: string;
  readonly model: string;
  /** Devices of one replica. */
  readonly devices: number;
  readonly step: StepModel;
  readonly system: SystemPlan;
  /** What the step times rest on, asked once the simulation has ended: where they were taken beyond their data. */
  basis(): readonly string[];
}

export type EngineFlags = Omit<DeploymentFlags, 'model' | 'gpu'> &
  SystemFlags & { readonly model?: string; readonly gpu?: string; readonly profile?: string };

/** @throws InputError when neither or both are named. */
export async function simulatedEngine(flags: EngineFlags, seed: number): Promise<SimulatedEngine> {
  if (flags.profile !== undefined) return profiledEngine(flags, flags.profile);
  const { model, gpu } = flags;
  if (model === undefined || gpu === undefined) {
    const missing = model === undefined ? (gpu === undefined ? '--model and --gpu' : '--model') : '--gpu';
    throw new InputError(`${missing}: what is simulated is not named; give --model and --gpu, or --profile FILE`);
  }
  const choice = await engineOf({ ...flags, model, gpu });
  return {
    text: choice.text,
    model: choice.on.model.name,
    devices: (await import('../model/index.ts')).devices(choice.on),
    step: choice.step,
    system: await systemPlanOf(choice, flags, seed),
    basis: () => basisOf(choice),
  };
}

/** Flags that say what a profile has measured, or need what it does not tell. */
const NOT_WITH_PROFILE = [
  'model',
  'gpu',
  'tp',
  'dp',
  'weights',
  'kvDtype',
  'gpuMemoryUtilization',
  'prefillReplicas',
  'kvLink',
  'draftTokens',
  'acceptance',
  'draftModel',
] as const;

/** KV blocks where nothing says how many there are. */
const ENOUGH_BLOCKS = 1_000_000;
const BLOCK_TOKENS = 16;

async function profiledEngine(flags: EngineFlags, file: string): Promise<SimulatedEngine> {
  const given = NOT_WITH_PROFILE.find((name) => flags[name as keyof EngineFlags] !== undefined);
  const name = given?.replace(/[A-Z]/g, (c) => `-${c.toLowerCase()}`) ?? (flags.ideal ? 'ideal' : undefined);
  if (name !== undefined) {
    throw new InputError(
      `--${name}: a profile is one engine as it was measured, and says nothing of another; leave it out`,
    );
  }
  const [{ readFile }, { parseProfile, ProfileStepModel }, { LIMIT_DEFAULTS, limitsOf }] = await Promise.all([
    import('node:fs/promises'),
    import('../plan/index.ts'),
    import('../sim/index.ts'),
  ]);
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new InputError(
      `--profile ${oneLine(file)}: cannot be read (${error.code ?? messageOf(error)}); make one with goodput calibrate`,
    );
  });
  const profile = parseProfile(text, file);
  const step = new ProfileStepModel(profile);
  const { limits: known } = profile;
  // The largest batch measured is no limit: taken for one, requests would queue where the engine batches them.
  const maxSeqs = flags.maxNumSeqs ?? known.max_seqs ?? LIMIT_DEFAULTS.maxSeqs;
  const kvBlocks =
    flags.kvBlocks ?? (known.kv_tokens === undefined ? undefined : Math.ceil(known.kv_tokens / BLOCK_TOKENS));
  const limits = limitsOf({
    kvBlocks: kvBlocks ?? ENOUGH_BLOCKS,
    maxSeqs,
    maxBatchedTokens: flags.maxNumBatchedTokens ?? Math.max(maxSeqs, known.max_batched_tokens),
    prefixCaching: flags.enablePrefixCaching,
    ...limitFlags(flags),
  });
  const error = (x: number | null): string => (x === null ? 'unknown' : `${Number((100 * x).toPrecision(2))} %`);
  const { held_out: held } = profile.fit;
  return {
    text: `profile '${oneLine(profile.name, 80)}'`,
    model: oneLine(profile.name, 80),
    devices: 1,
    step,
    system: {
      step,
      limits,
      scheduler: flags.scheduler ?? known.scheduler ?? 'continuous',
      replicas: flags.replicas,
      router: flags.router,
      frontend: flags.frontend === undefined ? step.frontendMs : parseDuration(flags.frontend, '--frontend', 'ms'),
    },
    basis: () => [
      `step times ${step.label}: median error on time it was not fitted to ${error(held.decode)} for decode, ${error(held.prefill ?? held.lone)} for prompts`,
      ...(flags.maxNumSeqs === undefined && known.max_seqs === null
        ? [`the batch limit is not known: ${maxSeqs}, the usual one, is taken (--max-num-seqs)`]
        : []),
      ...(kvBlocks === undefined ? ['the size of the KV pool is not known: it is taken to suffice (--kv-blocks)'] : []),
      ...profile.unseparated.map((u) => `not separated: ${u}`),
      ...step.beyond().map((b) => `beyond the data: ${b}`),
    ],
  };
}

async function systemPlanOf(choice: EngineChoice, flags: EngineFlags, seed: number): Promise<SystemPlan> {
  const [m, { limitsFor }] = await Promise.all([import('../model/index.ts'), import('../sim/index.ts')]);
  const { on, reserves } = choice;
  const drafts = flags.draftTokens;
  if (drafts === undefined && (flags.acceptance !== undefined || flags.draftModel !== undefined)) {
    throw new InputError('--acceptance and --draft-model: nothing is drafted; add --draft-tokens 4, say');
  }
  if (flags.kvLink !== undefined && flags.prefillReplicas === undefined) {
    throw new InputError('--kv-link: KV stays where it is; add --prefill-replicas N to split prefill from decode');
  }
  const maxSeqs = flags.maxNumSeqs ?? (flags.maxNumBatchedTokens && Math.min(256, flags.maxNumBatchedTokens));
  const limits = limitsFor(
    on,
    {
      prefixCaching: flags.enablePrefixCaching,
      ...(maxSeqs !== undefined && { maxSeqs }),
      ...(flags.maxNumBatchedTokens !== undefined
        ? { maxBatchedTokens: flags.maxNumBatchedTokens }
        : maxSeqs !== undefined && maxSeqs > 8192 && { maxBatchedTokens: maxSeqs }),
      ...(flags.kvBlocks !== undefined && { kvBlocks: flags.kvBlocks }),
      ...limitFlags(flags),
    },
    reserves,
  );
  const draft =
    flags.draftModel === undefined
      ? undefined
      : m.deployment(await modelOf(flags.draftModel), on.accelerator, { tp: on.tp });
  return {
    step: choice.step,
    limits,
    ...(flags.scheduler && { scheduler: flags.scheduler }),
    replicas: flags.replicas,
    router: flags.router,
    frontend: flags.frontend === undefined ? frontendOf(choice) : parseDuration(flags.frontend, '--frontend', 'ms'),
    ...(flags.prefillReplicas !== undefined && {
      prefill: {
        replicas: flags.prefillReplicas,
        transfer: {
          bytesPerToken: m.kvBytesPerToken(on.model, on.kv),
          bandwidth: flags.kvLink === undefined ? on.accelerator.link : flags.kvLink * 1e9,
          latency: 0,
        },
      },
    }),
    ...(drafts !== undefined && {
      speculation: {
        draftTokens: drafts,
        acceptance: flags.acceptance ?? 0.7,
        seed,
        ...(draft && { draft: choice.calibrated ? m.calibrated(draft).step : new m.IdealStepModel(draft) }),
      },
    }),
  };
}

function limitFlags(flags: SystemFlags): Partial<ReplicaLimits> {
  return {
    ...(flags.maxModelLen !== undefined && { maxLength: flags.maxModelLen }),
    ...(flags.maxQueue !== undefined && { maxQueue: flags.maxQueue }),
    ...(flags.asyncScheduling !== undefined && { asyncScheduling: flags.asyncScheduling }),
  };
}
