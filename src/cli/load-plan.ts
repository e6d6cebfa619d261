/** The load flags of `bench` (and later commands that load something), made into a plan, and the plan in words. */
import { InputError } from '../base/errors.ts';
import { formatDuration, type Millis, type PerSecond, parseDuration } from '../base/units.ts';
import type { Contract } from '../core/contract.ts';
import type { Workload } from '../core/request.ts';
import type { WindowPlan } from '../drive/window.ts';
import {
  type ArrivalPlan,
  type ClassPlan,
  closedLoop,
  closedMix,
  hasSessions,
  lengthText,
  type MixPlan,
  meanLength,
  meanTokens,
  openLoop,
  openMix,
  parseArrivals,
  parseLength,
  pauseText,
  prefixLeaves,
  prefixTokens,
  REQUEST_DEFAULTS,
  type RequestPlan,
  replay,
  type TextPlan,
  type Trace,
  traceFormat,
  traceSpan,
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
  readonly workload?: string;
  readonly replay?: string;
  readonly format?: string;
  readonly timeScale?: number;
  readonly rateScale?: number;
  readonly slice?: string;
  readonly cache?: CacheState;
}

/** What a server's prefix cache holds of this run's prompts when it begins. */
export const CACHE_STATES = ['cold', 'warm', 'as-is'] as const;
export type CacheState = (typeof CACHE_STATES)[number];

export interface LoadPlan {
  /** What each request asks for, where no classes or trace say it; its `prompt` and `text` hold for these too. */
  readonly requests: RequestPlan;
  /** Absent in a closed loop and in a replay. */
  readonly arrivals?: ArrivalPlan;
  readonly concurrency?: number;
  readonly window: WindowPlan;
  /** Of a workload file. */
  readonly name?: string;
  readonly classes?: readonly ClassPlan[];
  readonly trace?: Trace;
  /** Contracts of classes that have their own. */
  readonly contracts?: Readonly<Record<string, Contract>>;
  readonly cache?: CacheState;
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
  cache: {
    kind: 'enum',
    values: CACHE_STATES,
    optional: true,
    brief: 'Prefix cache at the start: cold (default), warm (shared prefixes sent once before), as-is',
  },
} as const;

const DEFAULT_RATE: PerSecond = 8;
const DEFAULT_DURATION: Millis = 20_000;

/** The load of plain flags. @throws InputError on flags that contradict each other, and on those that name a file. */
export function loadPlan(flags: LoadFlags): LoadPlan {
  const file = (['workload', 'replay'] as const).find((name) => flags[name] !== undefined);
  if (file) throw new InputError(`--${file}: this command takes its load from flags alone`);
  return planOf(flags, {});
}

/** The load of any flags, with the files they name read. @throws InputError */
export async function resolveLoad(flags: LoadFlags, seed: number): Promise<LoadPlan> {
  if (flags.workload !== undefined && flags.replay !== undefined) {
    throw new InputError('--workload and --replay: each says what arrives; give one of them');
  }
  if (flags.replay === undefined) {
    for (const name of ['format', 'timeScale', 'rateScale', 'slice'] as const) {
      if (flags[name] !== undefined) throw new InputError(`--${dashed(name)}: it is about a trace; give --replay FILE`);
    }
  }
  if (flags.workload !== undefined) {
    const { readWorkload } = await import('./workload-file.ts');
    const { file, name, classes, trace, contracts } = await readWorkload(flags.workload, seed);
    if (classes) refuse(flags, ['input', 'output', 'n'], 'the classes of the workload file say it');
    if (trace) refuse(flags, [...ARRIVAL_FLAGS, 'input', 'output', 'n'], 'the trace says it');
    return planOf(
      {
        ...flags,
        ...(file.rate !== undefined &&
          flags.rate === undefined &&
          flags.concurrency === undefined && { rate: file.rate }),
        ...(file.arrivals !== undefined &&
          flags.arrivals === undefined &&
          flags.concurrency === undefined && { arrivals: file.arrivals }),
        ...(file.burstiness !== undefined &&
          flags.burstiness === undefined &&
          flags.arrivals === undefined &&
          flags.concurrency === undefined && { burstiness: file.burstiness }),
        ...(file.cache !== undefined && flags.cache === undefined && { cache: file.cache }),
      },
      { name, contracts, ...(classes && { classes }), ...(trace && { trace }) },
    );
  }
  if (flags.replay !== undefined) {
    refuse(flags, [...ARRIVAL_FLAGS, 'input', 'output'], 'the trace says it');
    const { readReplay } = await import('./workload-file.ts');
    const trace = await readReplay(
      flags.replay,
      {
        ...(flags.format !== undefined && { format: traceFormat(flags.format, '--format') }),
        ...(flags.timeScale !== undefined && { timeScale: flags.timeScale }),
        ...(flags.rateScale !== undefined && { rateScale: flags.rateScale }),
        ...(flags.slice !== undefined && { slice: flags.slice }),
      },
      seed,
    );
    return planOf(flags, { trace });
  }
  return planOf(flags, {});
}

const ARRIVAL_FLAGS = ['rate', 'arrivals', 'burstiness', 'concurrency'] as const;
const dashed = (name: string): string => name.replace(/[A-Z]/g, (c) => `-${c.toLowerCase()}`);

function refuse(flags: LoadFlags, names: readonly (keyof LoadFlags)[], why: string): void {
  const given = names.find((name) => flags[name] !== undefined);
  if (given) throw new InputError(`--${dashed(given)}: ${why}; leave it out`);
}

type Read = Pick<LoadPlan, 'name' | 'classes' | 'trace' | 'contracts'>;

function planOf(flags: LoadFlags, read: Read): LoadPlan {
  if (flags.duration !== undefined && flags.requests !== undefined) {
    throw new InputError('--duration and --requests: each ends the measurement; give one of them');
  }
  if (flags.concurrency !== undefined) {
    for (const name of ['rate', 'arrivals', 'burstiness'] as const) {
      if (flags[name] !== undefined) {
        throw new InputError(`--concurrency and --${name}: a closed loop has no arrival process; give one of them`);
      }
    }
    if (read.classes?.some((c) => c.session)) {
      throw new InputError('--concurrency: sessions arrive in an open loop; give --rate in sessions per second');
    }
  }
  if (flags.cache === 'warm' && !read.classes?.some((c) => c.prefix)) {
    throw new InputError(
      "--cache: 'warm' sends the shared prefixes of a workload's classes once before; there are none",
    );
  }
  const rate = flags.rate ?? DEFAULT_RATE;
  const { trace } = read;
  const open = flags.concurrency === undefined && !trace;
  const sessions = read.classes?.some((c) => c.session) ?? false;
  return {
    requests: {
      ...REQUEST_DEFAULTS,
      ...(flags.input !== undefined && { input: parseLength(flags.input, '--input') }),
      ...(flags.output !== undefined && { output: parseLength(flags.output, '--output') }),
      choices: flags.n ?? 1,
      stream: flags.stream,
      ignoreEos: flags.ignoreEos,
    },
    ...read,
    ...(open && { arrivals: parseArrivals(flags.arrivals ?? 'poisson', rate, flags.burstiness) }),
    ...(flags.concurrency !== undefined && { concurrency: flags.concurrency }),
    cache: flags.cache ?? 'cold',
    window: trace
      ? traceWindow(trace, flags)
      : {
          warmup: flags.warmup === undefined ? 'auto' : parseDuration(flags.warmup, '--warmup'),
          ...(flags.requests !== undefined
            ? { requests: flags.requests }
            : { duration: flags.duration === undefined ? DEFAULT_DURATION : windowLength(flags.duration) }),
          ...(open && { rate }),
          ...(sessions && { sessions }),
        },
  };
}

/** A trace is measured whole, from its first request on, unless the user says otherwise. */
function traceWindow(trace: Trace, flags: LoadFlags): WindowPlan {
  const span = traceSpan(trace) / 1000;
  const warmup = flags.warmup === undefined ? 0 : parseDuration(flags.warmup, '--warmup');
  if (warmup >= span) throw new InputError(`--warmup: the trace is over after ${formatDuration(span)}`);
  const rate = (1000 * trace.length) / span;
  if (flags.requests !== undefined) return { warmup, requests: flags.requests, rate };
  const duration = flags.duration === undefined ? span - warmup : windowLength(flags.duration);
  return { warmup, duration: Math.min(duration, span - warmup), rate, whole: true };
}

function windowLength(text: string): Millis {
  const ms = parseDuration(text, '--duration');
  if (ms <= 0) throw new InputError(`--duration: '${text}' measures nothing; give 30s, say`);
  return ms;
}

export function workloadOf(plan: LoadPlan, seed: number): Workload {
  const { trace, requests, arrivals } = plan;
  if (trace) {
    const { choices, stream, ignoreEos, prompt, text } = requests;
    return replay({ trace, choices, stream, ignoreEos, prompt, ...(text && { text }) }, seed);
  }
  const mix = mixOf(plan);
  if (mix) return arrivals ? openMix(mix, arrivals, seed) : closedMix(mix, plan.concurrency as number, seed);
  return arrivals ? openLoop(requests, arrivals, seed) : closedLoop(requests, plan.concurrency as number, seed);
}

/** The classes of a workload file as a mix; undefined without any. */
export function mixOf({ classes, requests }: LoadPlan): MixPlan | undefined {
  if (!classes) return undefined;
  const { prompt, text } = requests;
  return { classes, prompt, ...(text && { text }) };
}

/** The plan with its texts made as `text` says. */
export function withText(plan: LoadPlan, text: TextPlan): LoadPlan {
  return { ...plan, requests: { ...plan.requests, text } };
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
  const { window, arrivals, concurrency, trace } = plan;
  const warmup = window.warmup === 'auto' ? WARMUP_GUESS : window.warmup;
  const rate = trace ? window.rate : arrivals?.rate;
  const length = window.duration ?? (rate === undefined ? 0 : (1000 * (window.requests as number)) / rate);
  const mix = mixOf(plan);
  const each = mix ? meanTokens(mix) : undefined;
  // Of sessions each arrival is several requests.
  const arriving =
    rate === undefined
      ? Math.max(window.requests ?? 0, concurrency as number)
      : Math.ceil((rate * (warmup + length)) / 1000);
  const requests = Math.ceil((trace ? Math.min(trace.length, arriving) : arriving) * (each?.requests ?? 1));
  const tokens = trace
    ? (requests * (sum(trace.input) + sum(trace.output) * plan.requests.choices)) / trace.length
    : each
      ? arriving * (each.input + each.output)
      : requests * (meanLength(plan.requests.input) + meanLength(plan.requests.output) * plan.requests.choices);
  const deadline = Math.max(contract.deadline, ...Object.values(plan.contracts ?? {}).map((c) => c.deadline));
  const open =
    rate === undefined ? (concurrency as number) : Math.ceil((rate * (each?.requests ?? 1) * deadline) / 1000);
  return {
    requests,
    tokens: Math.round(tokens),
    peak: Math.min(requests, open, maxInFlight ?? Number.POSITIVE_INFINITY),
    time: warmup + length,
  };
}

function sum(x: Int32Array): number {
  let total = 0;
  for (const n of x) total += n;
  return total;
}

/** The plan in a sentence or two, before anything is sent. */
export function planText(plan: LoadPlan, contract: Contract, maxInFlight?: number): string {
  const e = estimate(plan, contract, maxInFlight);
  const { arrivals, window, requests, trace } = plan;
  const mix = mixOf(plan);
  const sessions = mix !== undefined && hasSessions(mix);
  const load = trace
    ? `${trace.length.toLocaleString('en')} requests of ${trace.name} (${trace.format}) as they arrived${trace.notes.length > 0 ? `, ${trace.notes.join(', ')}` : ''}`
    : arrivals
      ? `${arrivals.rate} ${sessions ? 'sessions' : 'requests'}/s (${arrivals.process}${arrivals.process === 'gamma' ? ` ${arrivals.burstiness}` : ''}, open loop)`
      : `a closed loop of ${plan.concurrency} slots (it slows down with the server, so it cannot show capacity)`;
  const warmup =
    window.warmup === 'auto'
      ? 'a warm-up of at least one p95 E2E'
      : window.warmup === 0 && trace
        ? 'no warm-up'
        : `a warm-up of ${formatDuration(window.warmup)}`;
  const measured =
    window.requests !== undefined
      ? `${window.requests} ${sessions ? 'sessions' : 'requests'}`
      : formatDuration(window.duration as number);
  const asked = trace
    ? ''
    : mix
      ? `, ${mix.classes.map((c) => classText(c, mix)).join('; ')}`
      : `, input ${lengthText(requests.input)}, output ${lengthText(requests.output)} tokens${requests.choices > 1 ? `, n ${requests.choices}` : ''}`;
  return [
    `${load}${asked};`,
    `${warmup}, then ${measured} measured.`,
    `About ${e.requests.toLocaleString('en')} requests, ${e.tokens.toLocaleString('en')} tokens, at most ${e.peak} in flight, ${formatDuration(e.time)} and the last deadlines.`,
  ].join(' ');
}

function classText(c: ClassPlan, { classes }: MixPlan): string {
  const total = classes.reduce((all, one) => all + one.share, 0);
  const parts = [
    c.dataset
      ? `prompts of ${c.dataset.name} (${c.dataset.entries.length.toLocaleString('en')} of ${c.dataset.available.toLocaleString('en')}, then again)`
      : `input ${lengthText(c.input)}`,
    `output ${c.dataset?.entries.some((entry) => entry.outputTokens !== undefined) ? 'of the file' : lengthText(c.output)} tokens`,
    c.prefix &&
      `a prefix of ${prefixTokens(c.prefix)} tokens shared by ${prefixLeaves(c.prefix) === 1 ? 'all' : `${prefixLeaves(c.prefix)} groups`}`,
    c.session &&
      `${lengthText(c.session.turns)} turns with ${pauseText(c.session.think)} between (earlier answers synthetic)`,
    c.images && `${c.images.count} images of ${c.images.width}×${c.images.height}`,
    c.tools && `${c.tools.length} tools`,
    c.choices > 1 && `n ${c.choices}`,
  ].filter(Boolean);
  return `${((100 * c.share) / total).toFixed(0)} % ${c.name}: ${parts.join(', ')}`;
}

/** The workload in words for `run.json` and the report. */
export function workloadText(plan: LoadPlan, seed: number): string {
  const { arrivals, trace, classes } = plan;
  const unit = classes?.some((c) => c.session) ? ' sessions' : '';
  const arriving = trace
    ? `replay of ${trace.name}`
    : arrivals
      ? `${arrivals.process} ${arrivals.rate}${unit}/s`
      : `closed loop of ${plan.concurrency}`;
  return [
    arriving,
    plan.name && `workload ${plan.name}`,
    plan.cache && plan.cache !== 'cold' && `cache ${plan.cache}`,
    `seed ${seed}`,
  ]
    .filter(Boolean)
    .join(', ');
}

/** The workload for `run.json`: what was asked, without prompts; long lists by their size. */
export function workloadFacts(plan: LoadPlan): Record<string, unknown> {
  const { trace, classes, contracts, cache, name } = plan;
  return {
    ...(name !== undefined && { name }),
    ...(cache && { cache }),
    ...(trace && {
      replay: {
        file: trace.name,
        format: trace.format,
        requests: trace.length,
        span_ms: (trace.at[trace.length - 1] as number) / 1000,
        classes: trace.classes,
        notes: trace.notes,
      },
    }),
    ...(classes && {
      classes: classes.map(({ dataset, tools, input, output, ...rest }) => ({
        ...rest,
        input: lengthText(input),
        output: lengthText(output),
        ...(tools && { tools: tools.map((tool) => tool.name) }),
        ...(dataset && {
          dataset: {
            file: dataset.name,
            sample: dataset.entries.length,
            available: dataset.available,
            skipped: dataset.skipped,
          },
        }),
      })),
    }),
    ...(contracts &&
      Object.keys(contracts).length > 0 && {
        contracts: Object.fromEntries(
          Object.entries(contracts).map(([key, c]) => [
            key,
            { ...c, deadline: Number.isFinite(c.deadline) ? c.deadline : null },
          ]),
        ),
      }),
  };
}

/** Contracts of classes as `workloadFacts` stored them. */
export function storedContracts(workload: Readonly<Record<string, unknown>>): Readonly<Record<string, Contract>> {
  const stored = workload.contracts;
  if (typeof stored !== 'object' || stored === null) return {};
  return Object.fromEntries(
    Object.entries(stored as Record<string, Contract & { deadline: number | null }>).map(([name, c]) => [
      name,
      { ...c, deadline: c.deadline ?? Number.POSITIVE_INFINITY },
    ]),
  );
}
