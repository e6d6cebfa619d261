/** The flags of `goodput capacity`. */
import { JSON_FLAG, text } from './command.ts';
import { DEPLOYMENT_FLAGS } from './engine-flags.ts';
import { LOAD_FLAGS, type LoadFlags, numberFlags } from './load-flags.ts';
import { SLO_FLAGS, type SloFlags } from './slo-flags.ts';
import { TARGET_FLAGS, type TargetFlags } from './target.ts';

export interface CapacityFlags
  extends Omit<LoadFlags, 'rate' | 'duration' | 'requests' | 'warmup'>,
    SloFlags,
    TargetFlags {
  readonly calibrate: boolean;
  readonly simulate: boolean;
  readonly gpu?: string;
  readonly tp?: number;
  readonly weights?: string;
  readonly kvDtype?: string;
  readonly gpuMemoryUtilization?: number;
  readonly ideal: boolean;
  readonly maxNumSeqs?: number;
  readonly maxNumBatchedTokens?: number;
  readonly kvBlocks?: number;
  readonly seed?: number;
  readonly resolution?: string;
  readonly replications?: number;
  readonly requests?: number;
  readonly steer?: number;
  readonly guess?: number;
  readonly maxRate?: number;
  readonly maxInFlight?: number;
  readonly budget?: string;
  readonly gpus?: number;
  readonly out?: string;
  readonly name?: string;
  readonly resume?: string;
  readonly yes: boolean;
  readonly json: boolean;
}

const whole = (flag: string, brief: string) =>
  ({ kind: 'parsed', parse: numberFlags.whole(flag), optional: true, brief, placeholder: 'N' }) as const;
const positive = (flag: string, brief: string) =>
  ({ kind: 'parsed', parse: numberFlags.positive(flag), optional: true, brief, placeholder: 'x' }) as const;

const { rate: _rate, duration: _duration, requests: _requests, warmup: _warmup, ...LOAD } = LOAD_FLAGS;

export const CAPACITY_FLAGS = {
  ...LOAD,
  ...SLO_FLAGS,
  ...TARGET_FLAGS,
  calibrate: {
    kind: 'boolean',
    default: false,
    brief: "Ask the server's /tokenize what it makes of our words, so that prompts come out at their length",
  },
  simulate: { kind: 'boolean', default: false, brief: 'Search a simulated engine: --model and --gpu say which' },
  gpu: {
    ...DEPLOYMENT_FLAGS.gpu,
    optional: true,
    brief: 'Accelerator to simulate, or, live, to guess the knee from',
  },
  tp: DEPLOYMENT_FLAGS.tp,
  weights: DEPLOYMENT_FLAGS.weights,
  kvDtype: DEPLOYMENT_FLAGS.kvDtype,
  gpuMemoryUtilization: DEPLOYMENT_FLAGS.gpuMemoryUtilization,
  ideal: DEPLOYMENT_FLAGS.ideal,
  maxNumSeqs: whole('max-num-seqs', 'Simulated: sequences in a batch at most'),
  maxNumBatchedTokens: whole('max-num-batched-tokens', 'Simulated: tokens in a step at most'),
  kvBlocks: whole('kv-blocks', 'Simulated: KV blocks of 16 tokens'),
  seed: whole('seed', 'Seed of everything drawn (default 1)'),
  resolution: text('How near the bracket is narrowed: high/low ≤ 1 + this (default 5%)', 'share'),
  replications: whole('replications', 'Independent runs that confirm a rate (default 5, simulated 8)'),
  requests: whole('requests', 'Measured requests of each of those (default 500, simulated 2000), or more where needed'),
  steer: whole('steer', 'Measured requests of a run that only steers (default 200, simulated 1000)'),
  guess: positive('guess', 'A rate near which capacity is expected, requests/s'),
  maxRate: positive('max-rate', 'Highest rate to offer, requests/s'),
  maxInFlight: whole('max-in-flight', 'What would exceed this is unsent, and the probe void'),
  budget: text('Time the search may take (default 1h on a server, none simulated)', '30m'),
  gpus: whole('gpus', 'GPUs behind the endpoint, for capacity per GPU'),
  out: text('Folder for run folders (default runs)', 'DIR'),
  name: text('Name of the run (default capacity)', 'name'),
  resume: text('Take up an interrupted search again, from its folder', 'RUN'),
  yes: { kind: 'boolean', default: false, brief: 'Do not ask before loading a server off loopback' },
  json: JSON_FLAG,
} as const;
