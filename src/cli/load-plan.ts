/** The load flags of `bench` (and later commands that load something), made into a plan, and the plan in words. */
import { InputError } from '../base/errors.ts';
import { formatDuration, type Millis, type PerSecond, parseDuration } from '../base/units.ts';
import type { Contract } from '../core/contract.ts';
import type { Workload } from '../core/request.ts';
import type { WindowPlan } from '../drive/window.ts';
import {
  type ArrivalPlan,
  closedLoop,
  lengthText,
  meanLength,
  openLoop,
  parseArrivals,
  parseLength,
  REQUEST_DEFAULTS,
  type RequestPlan,
} from '../workload/index.ts';

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
}

export interface LoadPlan {
  readonly requests: RequestPlan;
  /** Absent in a closed loop. */
  readonly arrivals?: ArrivalPlan;
  readonly concurrency?: number;
  readonly window: WindowPlan;
}

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
    brief: 'Prompt tokens: 512 (default), uniform:a-b, lognormal:mean,cv',
    placeholder: 'tokens',
  },
  output: {
    kind: 'parsed',
    parse: String,
    optional: true,
    brief: 'Output tokens: 128 (default), uniform:a-b, lognormal:mean,cv',
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
} as const;

const DEFAULT_RATE: PerSecond = 8;
const DEFAULT_DURATION: Millis = 20_000;

/** @throws InputError on flags that contradict each other. */
export function loadPlan(flags: LoadFlags): LoadPlan {
  if (flags.duration !== undefined && flags.requests !== undefined) {
    throw new InputError('--duration and --requests: each ends the measurement; give one of them');
  }
  if (flags.concurrency !== undefined) {
    for (const name of ['rate', 'arrivals', 'burstiness'] as const) {
      if (flags[name] !== undefined) {
        throw new InputError(`--concurrency and --${name}: a closed loop has no arrival process; give one of them`);
      }
    }
  }
  const rate = flags.rate ?? DEFAULT_RATE;
  const open = flags.concurrency === undefined;
  return {
    requests: {
      ...REQUEST_DEFAULTS,
      ...(flags.input !== undefined && { input: parseLength(flags.input, '--input') }),
      ...(flags.output !== undefined && { output: parseLength(flags.output, '--output') }),
      choices: flags.n ?? 1,
      stream: flags.stream,
      ignoreEos: flags.ignoreEos,
    },
    ...(open
      ? { arrivals: parseArrivals(flags.arrivals ?? 'poisson', rate, flags.burstiness) }
      : { concurrency: flags.concurrency as number }),
    window: {
      warmup: flags.warmup === undefined ? 'auto' : parseDuration(flags.warmup, '--warmup'),
      ...(flags.requests !== undefined
        ? { requests: flags.requests }
        : { duration: flags.duration === undefined ? DEFAULT_DURATION : windowLength(flags.duration) }),
      ...(open && { rate }),
    },
  };
}

function windowLength(text: string): Millis {
  const ms = parseDuration(text, '--duration');
  if (ms <= 0) throw new InputError(`--duration: '${text}' measures nothing; give 30s, say`);
  return ms;
}

export function workloadOf(plan: LoadPlan, seed: number): Workload {
  return plan.arrivals
    ? openLoop(plan.requests, plan.arrivals, seed)
    : closedLoop(plan.requests, plan.concurrency as number, seed);
}

/** What a plan will put on a server. */
export interface LoadEstimate {
  /** Requests in all, warm-up included; a lower bound in a closed loop. */
  readonly requests: number;
  readonly tokens: number;
  /** Operations that can be open at once: each leaves by its deadline. */
  readonly peak: number;
  readonly time: Millis;
}

/** Warm-up is not known beforehand; this is what is counted for it. */
const WARMUP_GUESS: Millis = 5000;

export function estimate(plan: LoadPlan, contract: Contract, maxInFlight?: number): LoadEstimate {
  const { window, arrivals, concurrency } = plan;
  const warmup = window.warmup === 'auto' ? WARMUP_GUESS : window.warmup;
  const rate = arrivals?.rate;
  const length = window.duration ?? (rate === undefined ? 0 : (1000 * (window.requests as number)) / rate);
  const requests =
    rate === undefined
      ? Math.max(window.requests ?? 0, concurrency as number)
      : Math.ceil((rate * (warmup + length)) / 1000);
  const each = meanLength(plan.requests.input) + meanLength(plan.requests.output) * plan.requests.choices;
  const open = rate === undefined ? (concurrency as number) : Math.ceil((rate * contract.deadline) / 1000);
  return {
    requests,
    tokens: Math.round(requests * each),
    peak: Math.min(requests, open, maxInFlight ?? Number.POSITIVE_INFINITY),
    time: warmup + length,
  };
}

/** The plan in a sentence or two, before anything is sent. */
export function planText(plan: LoadPlan, contract: Contract, maxInFlight?: number): string {
  const e = estimate(plan, contract, maxInFlight);
  const { arrivals, window, requests } = plan;
  const load = arrivals
    ? `${arrivals.rate} requests/s (${arrivals.process}${arrivals.process === 'gamma' ? ` ${arrivals.burstiness}` : ''}, open loop)`
    : `a closed loop of ${plan.concurrency} slots (it slows down with the server, so it cannot show capacity)`;
  const warmup =
    window.warmup === 'auto' ? 'a warm-up of at least one p95 E2E' : `a warm-up of ${formatDuration(window.warmup)}`;
  const measured =
    window.requests !== undefined ? `${window.requests} requests` : formatDuration(window.duration as number);
  return [
    `${load}, input ${lengthText(requests.input)}, output ${lengthText(requests.output)} tokens${requests.choices > 1 ? `, n ${requests.choices}` : ''};`,
    `${warmup}, then ${measured} measured.`,
    `About ${e.requests.toLocaleString('en')} requests, ${e.tokens.toLocaleString('en')} tokens, at most ${e.peak} in flight, ${formatDuration(e.time)} and the last deadlines.`,
  ].join(' ');
}
