/** `goodput bench --rates 1,2,4,8`: several rates into one folder, with one curve. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { InputError } from '../base/errors.ts';
import { formatDuration } from '../base/units.ts';
import type { Contract } from '../core/contract.ts';
import { steerPoint } from '../drive/capacity/assess.ts';
import { curveNotes } from '../drive/capacity/outcome.ts';
import type { CurvePoint, Probe, ProbeRequest } from '../drive/capacity/types.ts';
import type { Drive } from '../drive/index.ts';
import { type CapacityReport, type CurveRow, renderCapacity } from '../report/curve-report.ts';
import { capacityExit } from './capacity.ts';
import { drained, liveProbe, loneRequest, probeLine } from './capacity-live.ts';
import { showLine } from './capacity-progress.ts';
import { rowOf } from './capacity-report.ts';
import { hasSessionsIn } from './capacity-task.ts';
import type { Cli } from './command.ts';
import type { HostClock } from './host.ts';
import type { LoadFlags } from './load-flags.ts';
import type { LoadPlan } from './load-plan.ts';
import { plain, warmPrefixes, written } from './prompts-for.ts';
import type { SloFlags } from './slo-flags.ts';
import type { OpenTarget, TargetFlags } from './target.ts';

/** No sweep of so many runs was meant. */
const MOST = 200;

/**
 * Reads `1,2,4,8`, or ramps: `1..8` in steps of 1, `1..8/0.5` of another width, `1..64*2` by a factor. @throws InputError.
 */
export function parseRates(text: string, flag = '--rates'): number[] {
  const rates = text.split(',').flatMap((part) => {
    const ramp = /^\s*([\d.]+)\s*\.\.\s*([\d.]+)\s*(?:([/*])\s*([\d.]+))?\s*$/.exec(part);
    if (!ramp) return [Number(part.trim() || Number.NaN)];
    const [from, to, by] = [Number(ramp[1]), Number(ramp[2]), Number(ramp[4] ?? 1)];
    const factor = ramp[3] === '*';
    if (!(from > 0) || !(to >= from) || !(factor ? by > 1 : by > 0)) return [Number.NaN];
    const steps = Math.floor((factor ? Math.log(to / from) / Math.log(by) : (to - from) / by) + 1e-9);
    if (steps >= MOST) throw new InputError(`${flag}: '${part.trim()}' is ${steps + 1} rates; take wider steps`);
    return Array.from({ length: steps + 1 }, (_, i) =>
      Number((factor ? from * by ** i : from + i * by).toPrecision(12)),
    );
  });
  for (const rate of rates) {
    if (!(rate > 0) || !Number.isFinite(rate)) {
      throw new InputError(`${flag}: '${text}' is not a list of rates above 0; write 1,2,4,8 or 1..8/0.5 or 1..64*2`);
    }
  }
  if (new Set(rates).size < rates.length) {
    throw new InputError(
      `${flag}: '${text}' names a rate twice; for replications use goodput capacity, or bench --repeat`,
    );
  }
  if (rates.length > MOST)
    throw new InputError(`${flag}: ${rates.length} rates are more than ${MOST}; take wider steps`);
  return rates;
}

export interface SweepFlags extends LoadFlags, SloFlags, TargetFlags {
  readonly rates: string;
  readonly seed?: number;
  readonly repeat?: number;
  readonly against?: string;
  readonly calibrate: boolean;
  readonly maxInFlight?: number;
  readonly gpus?: number;
  readonly out?: string;
  readonly name?: string;
  readonly yes: boolean;
  readonly json: boolean;
}

/** `bench` with `--rates`. */
export async function sweepBench(cli: Cli, flags: SweepFlags, url: string | undefined): Promise<void> {
  for (const name of ['rate', 'concurrency', 'replay', 'repeat', 'against'] as const) {
    if (flags[name] !== undefined)
      throw new InputError(`--rates and --${name}: a sweep offers its own rates; leave --${name} out`);
  }
  const rates = parseRates(flags.rates);
  const seed = flags.seed ?? 1;
  const [{ contractOfFlags }, { resolveLoad, workloadOf }, { hostClock }, { openTarget }, { limitsText }] =
    await Promise.all([
      import('./slo-flags.ts'),
      import('./load-plan.ts'),
      import('./host.ts'),
      import('./target.ts'),
      import('../report/contract-text.ts'),
    ]);
  const { contract } = await contractOfFlags(flags);
  const plan = await resolveLoad({ ...flags, rate: Math.max(...rates) }, seed);
  if (!plan.arrivals) throw new InputError('--rates: a trace has its own arrivals; scale it with --rate-scale');
  const { arrivals } = plan;
  const host = hostClock();
  const target = await openTarget(cli, url, flags, host.clock);
  try {
    if (!target.local && !flags.yes) {
      throw new InputError(
        `this puts ${rates.length} rates up to ${Math.max(...rates)}/s on ${target.name}; add --yes to do it`,
      );
    }
    const load = await written(flags, plan, target, (line) => cli.stderr.line(line));
    const problem = await target.warm(16);
    if (problem) cli.stderr.line(`          not all connections could be opened beforehand: ${problem}`);
    await sweep(cli, {
      rates,
      seed,
      contract,
      load,
      target,
      host,
      workload: (rate, seed) => workloadOf({ ...load, arrivals: { ...arrivals, rate } }, seed),
      out: flags.out ?? 'runs',
      name: flags.name ?? 'sweep',
      json: flags.json,
      about: { target: target.text, contract: `${contract.name}: ${limitsText(contract)}` },
      ...(flags.gpus !== undefined && { gpus: flags.gpus }),
      ...(flags.maxInFlight !== undefined && { maxInFlight: flags.maxInFlight }),
    });
  } finally {
    await target.close();
  }
}

export interface SweepTask {
  readonly rates: readonly number[];
  readonly seed: number;
  readonly contract: Contract;
  readonly load: LoadPlan;
  readonly target: OpenTarget;
  readonly host: HostClock;
  readonly workload: (rate: number, seed: number) => ReturnType<typeof import('./load-plan.ts').workloadOf>;
  readonly out: string;
  readonly name: string;
  readonly gpus?: number;
  readonly maxInFlight?: number;
  readonly json: boolean;
  readonly about: Readonly<Record<string, string>>;
}

/** Requests a rate is measured by: those asked for, or as many as its rate offers in the window. */
const WARMUP_SECONDS = 5;

/** Runs every rate in order, the server idle in between. Ctrl-C reports the rates that were done. */
export async function sweep(cli: Cli, task: SweepTask): Promise<void> {
  const { contract, host, target, load, seed } = task;
  const { makeFolder } = await import('../store/folder.ts');
  const folder = makeFolder(task.out, task.name, host.epochWall);
  mkdirSync(`${folder}/probes`, { recursive: true });
  let stopped = false;
  let current: { request: ProbeRequest; running: Drive } | undefined;
  const interrupt = (): void => {
    stopped = true;
    cli.stderr.line('\nStopping: the rates that were measured are reported.');
    current?.running.abort();
    process.off('SIGINT', interrupt);
  };
  process.on('SIGINT', interrupt);
  let asked: ProbeRequest | undefined;
  const live = {
    target,
    contract,
    host,
    workload: task.workload,
    folder: `${folder}/probes`,
    sessions: hasSessionsIn(load),
    about: (rate: number) => ({ arrivals: { ...load.arrivals, rate }, requests: plain(load.requests) }),
    ...(task.maxInFlight !== undefined && { maxInFlight: task.maxInFlight }),
    ...(load.contracts && { contracts: load.contracts }),
    began: (running: Drive) => {
      current = { request: asked as ProbeRequest, running };
      return showLine(cli.stderr, () => probeLine(asked as ProbeRequest, running.progress()));
    },
  };
  const points: CurvePoint[] = [];
  const runs: string[] = [];
  const began = host.clock.now();
  try {
    const calm = await loneRequest(live, seed);
    const warm = load.window.warmup === 'auto' ? Math.max(1000 * WARMUP_SECONDS, 2 * calm.e2e) : load.window.warmup;
    const { window } = load;
    const total = task.rates.reduce(
      (ms, rate) => ms + warm + (window.duration ?? (1000 * (window.requests as number)) / rate),
      0,
    );
    cli.stderr.line(
      `Sweep     ${task.rates.length} rates, about ${formatDuration(total)} and the last deadlines of each`,
    );
    for (const [i, rate] of task.rates.entries()) {
      if (stopped) break;
      if (i > 0 && calm.ttft !== undefined && !(await drained(live, calm.ttft, seed + i))) {
        cli.stderr.line('          the server has not come to rest a minute after the last run; going on all the same');
      }
      asked = {
        rate,
        seed: seed + i,
        requests: window.requests ?? Math.max(1, Math.round((rate * (window.duration as number)) / 1000)),
        warmup: Math.ceil((rate * warm) / 1000),
        role: 'steer',
        why: `rate ${i + 1} of ${task.rates.length} of the sweep`,
      };
      if (load.cache === 'warm') await warmPrefixes(load, asked.seed, target);
      const { measure, run } = await liveProbe(live, asked);
      if (!measure) break;
      const point = sweepPoint({ request: asked, measure }, contract.attainment);
      points.push(point);
      runs.push(run.slice(folder.length + 1));
      const why = point.verdict === 'void' || point.unstable ? `  (${point.because})` : '';
      cli.stderr.line(
        `${String(rate).padStart(8)}/s  ${point.verdict}  ${(100 * point.attainment).toFixed(1)} % good${why}`,
      );
      writeFileSync(`${folder}/capacity.json`, json(reportOf(task, points, runs, host.clock.now() - began)));
    }
  } finally {
    process.off('SIGINT', interrupt);
  }
  const report = reportOf(task, points, runs, host.clock.now() - began);
  cli.stdout.write(task.json ? json(report) : renderCapacity(report, cli.stdout));
  (task.json ? cli.stderr : cli.stdout).line(`Run folder: ${folder}  (goodput report ${folder})`);
  cli.exit(capacityExit(report));
}

/** One run at a rate: its verdict is what its own interval shows, which is indicative. */
function sweepPoint(probe: Probe, target: number): CurvePoint {
  const point = steerPoint(probe, target);
  if (point.verdict === 'void' || point.unstable || point.low >= target || point.high < target) return point;
  return { ...point, verdict: 'undecided', because: 'the interval of this one run holds the target' };
}

function reportOf(
  task: SweepTask,
  points: readonly CurvePoint[],
  runs: readonly string[],
  elapsed: number,
): CapacityReport {
  const rows: CurveRow[] = points.map((p, i) => ({ ...rowOf(p, true), run: runs[i] as string }));
  return {
    schema: 'goodput.capacity/1',
    end: 'sweep',
    unit: hasSessionsIn(task.load) ? 'sessions' : 'requests',
    capacity: { low: null, high: null, confidence: 0.95 },
    target: task.contract.attainment,
    probes: rows,
    curve: [...rows].filter((r) => r.verdict !== 'void').sort((a, b) => a.rate - b.rate),
    goodput_at_capacity_rps: null,
    per_gpu_rps: null,
    goodput_per_gpu_rps: null,
    gpus: task.gpus ?? null,
    bracket: { low: null, high: null },
    binding: null,
    notes: [
      ...voidNotes(points),
      ...curveNotes(points),
      "A sweep's verdicts rest on one run a rate; 'goodput capacity' decides by replications.",
    ],
    runs: points.length,
    offered: points.reduce((n, p) => n + p.offered, 0),
    seconds: elapsed / 1000,
    about: task.about,
  };
}

/** Rates that are in no curve, and why. */
function voidNotes(points: readonly CurvePoint[]): string[] {
  const voids = points.filter((p) => p.verdict === 'void');
  const first = voids[0];
  if (!first) return [];
  return [
    `${voids.length === points.length ? 'No rate could be measured' : `Left out: ${voids.map((p) => `${p.rate}/s`).join(', ')}`}: ${first.because}.${voids.length > 1 ? ' The others are void like it.' : ''}`,
  ];
}

const json = (report: CapacityReport): string => `${JSON.stringify(report, null, 2)}\n`;
