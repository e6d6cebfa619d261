/** Load flags, and the files they name, made into a plan; and the plan made into a workload. */
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
  type MixPlan,
  openLoop,
  openMix,
  parseArrivals,
  parseLength,
  REQUEST_DEFAULTS,
  type RequestPlan,
  replay,
  type TextPlan,
  type Trace,
  traceArrivals,
  traceFormat,
  traceSpan,
} from '../workload/index.ts';
import type { CacheState, LoadFlags } from './load-flags.ts';

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
    for (const name of ['format', 'timeScale', 'rateScale', 'slice', 'sessions'] as const) {
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
        ...(flags.sessions && { sessions: true }),
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
  const arrivals = traceArrivals(trace);
  const span = traceSpan(arrivals) / 1000;
  const sessions = trace.sessions !== undefined && { sessions: true };
  const warmup = flags.warmup === undefined ? 0 : parseDuration(flags.warmup, '--warmup');
  if (warmup >= span) throw new InputError(`--warmup: the trace is over after ${formatDuration(span)}`);
  const rate = (1000 * arrivals.length) / span;
  if (flags.requests !== undefined) return { warmup, requests: flags.requests, rate, ...sessions };
  const duration = flags.duration === undefined ? span - warmup : windowLength(flags.duration);
  return { warmup, duration: Math.min(duration, span - warmup), rate, whole: true, ...sessions };
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
