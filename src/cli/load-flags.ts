/** The flags that say what load is offered, shared by the commands that offer one. */
import { InputError } from '../base/errors.ts';

export interface LoadFlags {
  readonly rate?: number;
  readonly duration?: string;
  readonly requests?: number;
  readonly arrivals?: string;
  readonly burstiness?: number;
  readonly concurrency?: number;
  readonly input?: string;
  readonly output?: string;
  readonly n?: number;
  readonly warmup?: string;
  readonly stream: boolean;
  readonly ignoreEos: boolean;
  readonly workload?: string;
  readonly replay?: string;
  readonly format?: string;
  readonly timeScale?: number;
  readonly rateScale?: number;
  readonly slice?: string;
  readonly sessions?: boolean;
  readonly cache?: CacheState;
}

/** What a server's prefix cache holds of this run's prompts when it begins. */
export const CACHE_STATES = ['cold', 'warm', 'as-is'] as const;
export type CacheState = (typeof CACHE_STATES)[number];

const positive =
  (flag: string) =>
  (text: string): number => {
    const n = Number(text);
    if (!(n > 0) || !Number.isFinite(n)) throw new InputError(`--${flag}: '${text}' is not a number above 0`);
    return n;
  };

const whole =
  (flag: string) =>
  (text: string): number => {
    const n = Number(text);
    if (!Number.isSafeInteger(n) || n < 1) throw new InputError(`--${flag}: '${text}' is not a whole number from 1 on`);
    return n;
  };

/** Parsers shared by flags of several commands. */
export const numberFlags = { positive, whole };

export const LOAD_FLAGS = {
  rate: {
    kind: 'parsed',
    parse: positive('rate'),
    optional: true,
    brief: 'Offered requests per second (default 8)',
    placeholder: 'per-second',
  },
  duration: {
    kind: 'parsed',
    parse: String,
    optional: true,
    brief: 'Length of the measured window (default 20s)',
    placeholder: '30s',
  },
  requests: {
    kind: 'parsed',
    parse: whole('requests'),
    optional: true,
    brief: 'Measure this many requests instead of a duration',
    placeholder: 'N',
  },
  arrivals: {
    kind: 'parsed',
    parse: String,
    optional: true,
    brief: 'Arrival process: poisson (default), constant, gamma',
    placeholder: 'process',
  },
  burstiness: {
    kind: 'parsed',
    parse: positive('burstiness'),
    optional: true,
    brief: 'Shape of gamma arrivals: 1 is Poisson, below 1 burstier',
    placeholder: 'shape',
  },
  concurrency: {
    kind: 'parsed',
    parse: whole('concurrency'),
    optional: true,
    brief: 'Closed loop of this many slots instead of a rate; it cannot show capacity',
    placeholder: 'N',
  },
  input: {
    kind: 'parsed',
    parse: String,
    optional: true,
    brief: 'Prompt tokens: 512 (default), uniform:a-b, lognormal:mean,cv, gamma:mean,cv, empirical:a,b,…',
    placeholder: 'tokens',
  },
  output: {
    kind: 'parsed',
    parse: String,
    optional: true,
    brief: 'Output tokens: 128 (default), forms as for --input',
    placeholder: 'tokens',
  },
  n: { kind: 'parsed', parse: whole('n'), optional: true, brief: 'Choices a request asks for', placeholder: 'N' },
  warmup: {
    kind: 'parsed',
    parse: String,
    optional: true,
    brief: 'Warm-up before the window (default: at least one p95 E2E)',
    placeholder: '5s',
  },
  stream: { kind: 'boolean', default: true, brief: 'Ask for a stream' },
  ignoreEos: {
    kind: 'boolean',
    default: true,
    brief: 'Ask for exactly the output length, where the server can be asked',
  },
  workload: {
    kind: 'parsed',
    parse: String,
    optional: true,
    brief: 'Read classes, prefixes, sessions, datasets or a replay from a YAML file (docs/workloads.md)',
    placeholder: 'FILE',
  },
  replay: {
    kind: 'parsed',
    parse: String,
    optional: true,
    brief: 'Replay a trace with its own arrivals: Azure, BurstGPT, Mooncake, or a vLLM or GuideLLM result',
    placeholder: 'FILE',
  },
  format: {
    kind: 'parsed',
    parse: String,
    optional: true,
    brief: 'Format of the trace (default: told by its beginning)',
    placeholder: 'name',
  },
  timeScale: {
    kind: 'parsed',
    parse: positive('time-scale'),
    optional: true,
    brief: 'Multiply every interval of the trace: 0.5 plays twice as fast',
    placeholder: 'factor',
  },
  rateScale: {
    kind: 'parsed',
    parse: positive('rate-scale'),
    optional: true,
    brief: 'Multiply the requests of the trace, its clock kept: 0.5 leaves half of them out',
    placeholder: 'factor',
  },
  slice: {
    kind: 'parsed',
    parse: String,
    optional: true,
    brief: 'Replay a part: 10m-20m, or 0-1000 for requests',
    placeholder: 'from-to',
  },
  sessions: {
    kind: 'boolean',
    optional: true,
    withNegated: false,
    brief: 'Replay conversations of the trace as sessions: a turn follows the answer before it',
  },
  cache: {
    kind: 'enum',
    values: CACHE_STATES,
    optional: true,
    brief: 'Prefix cache at the start: cold (default), warm (shared prefixes sent once before), as-is',
  },
} as const;
