/** `goodput capacity`: the highest rate a server sustains within the contract, as an interval. */
import { mkdirSync } from 'node:fs';
import { InputError, MeasurementError, messageOf, oneLine } from '../base/errors.ts';
import { formatDuration, type Millis, parseDuration, parseShare, trim } from '../base/units.ts';
import type { Contract } from '../core/contract.ts';
import type { CapacityOutcome, Probe, ProbeMeasure, ProbeRequest, SearchPlan } from '../drive/capacity/index.ts';
import type { Drive } from '../drive/index.ts';
import { livePlan, simulatedPlan } from './capacity-plan.ts';
import { keepSearch, readSearch, SEARCH_SCHEMA, type StoredSearch } from './capacity-store.ts';
import { EXIT } from './cli.ts';
import { type Cli, command, JSON_FLAG, text } from './command.ts';
import { DEPLOYMENT_FLAGS, type DeploymentFlags } from './engine-flags.ts';
import { LOAD_FLAGS, type LoadFlags, numberFlags } from './load-flags.ts';
import { type LoadPlan, resolveLoad, workloadOf } from './load-plan.ts';
import { SLO_FLAGS, type SloFlags } from './slo-flags.ts';
import { TARGET_FLAGS, type TargetFlags } from './target.ts';

interface Flags extends Omit<LoadFlags, 'rate' | 'duration' | 'requests' | 'warmup'>, SloFlags, TargetFlags {
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

/** Time a search on a live server may take, unsaid. */
const LIVE_BUDGET: Millis = 60 * 60_000;

export const capacity = command({
  func: runCapacity,
  parameters: {
    flags: {
      ...LOAD,
      ...SLO_FLAGS,
      ...TARGET_FLAGS,
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
      requests: whole(
        'requests',
        'Measured requests of each of those (default 500, simulated 2000), or more where needed',
      ),
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
    },
    aliases: { n: 'n', y: 'yes' },
    positional: {
      kind: 'tuple',
      parameters: [
        {
          brief: 'Endpoint, as http://host:8000; none: the embedded engine',
          parse: String,
          placeholder: 'URL',
          optional: true,
        },
      ],
    },
  },
  docs: {
    brief: 'Find the highest rate that meets the attainment target',
    fullDescription:
      'First almost unloaded; then rates are doubled and halved with short runs that only steer; then the last rate that\n' +
      'passes and the first that fails are confirmed by independent replications, on which the interval rests.\n' +
      'Ctrl-C reports what is known; --resume goes on from there.\n' +
      'Exit codes: 0 found, 1 infeasible at any rate, 2 bad input, 3 undecided, or the client was the bottleneck.',
  },
});

async function runCapacity(this: Cli, flags: Flags, url?: string): Promise<void> {
  if (flags.concurrency !== undefined) {
    throw new InputError(
      '--concurrency: a closed loop slows down with the server, so that it is never offered more than it can serve and has no capacity to find; leave it out',
    );
  }
  const stored = flags.resume === undefined ? undefined : readSearch(flags.resume);
  const { contractOfFlags } = await import('./slo-flags.ts');
  const contract = stored?.contract ?? (await contractOfFlags(flags)).contract;
  if (contract.attainment >= 1) {
    throw new InputError('--attainment: that every request is good can be refuted and never shown; ask for 99.9%, say');
  }
  if (flags.replay !== undefined) {
    throw new InputError(
      '--replay: a trace has one rate, its own; look at several with bench --replay FILE --rate-scale x',
    );
  }
  const { requests: _cohort, ...loadFlags } = flags;
  const load: LoadPlan = stored
    ? { ...(await resolveLoad(loadFlags, 1)), ...stored.load }
    : await resolveLoad(loadFlags, flags.seed ?? 1);
  const simulated = stored?.target.simulated ?? flags.simulate;
  if (simulated && url !== undefined) throw new InputError(`--simulate and ${oneLine(url, 100)}: give one of them`);
  const task: Task = { flags, contract, load, ...(stored && { stored }) };
  const found = simulated
    ? await onSimulation(this, task)
    : await onServer(this, url ?? stored?.target.url ?? undefined, task);
  const [{ capacityReport }, { renderCapacity }] = await Promise.all([
    import('./capacity-report.ts'),
    import('../report/curve-report.ts'),
  ]);
  const { limitsText } = await import('../report/contract-text.ts');
  const report = capacityReport(
    found.outcome,
    {
      target: found.name,
      load: found.load,
      contract: `${contract.name}: ${limitsText(contract)}; ${trim(100 * contract.attainment, 4)} % must be good`,
      ...(found.basis && { basis: found.basis }),
    },
    flags.gpus ?? stored?.gpus ?? undefined,
  );
  const json = `${JSON.stringify(report, null, 2)}\n`;
  if (found.folder !== undefined) {
    const { writeFileSync } = await import('node:fs');
    try {
      writeFileSync(`${found.folder}/capacity.json`, json);
    } catch (error) {
      this.stderr.line(`goodput: the result could not be kept in ${oneLine(found.folder)} (${messageOf(error)})`);
    }
  }
  this.stdout.write(flags.json ? json : renderCapacity(report, this.stdout));
  if (found.folder !== undefined) {
    const say = flags.json ? this.stderr : this.stdout;
    say.line(`Run folder: ${found.folder}`);
    if (report.end === 'interrupted' || report.end === 'client-bound')
      say.line(`Go on with: goodput capacity --resume ${found.folder}`);
  }
  this.exit(exitOf(found.outcome));
}

function exitOf({ end }: CapacityOutcome): number {
  if (end === 'found' || end === 'above-range') return EXIT.ok;
  return end === 'infeasible' ? EXIT.missed : EXIT.invalid;
}

interface Task {
  readonly flags: Flags;
  readonly contract: Contract;
  readonly load: LoadPlan;
  readonly stored?: StoredSearch;
}

interface Found {
  readonly outcome: CapacityOutcome;
  readonly name: string;
  readonly load: string;
  readonly basis?: string;
  readonly folder?: string;
}

/** A plan as the flags change it. */
function planned(plan: SearchPlan, flags: Flags): SearchPlan {
  const resolution = flags.resolution === undefined ? plan.resolution : parseShare(flags.resolution, '--resolution');
  if (!(resolution >= 0.005 && resolution <= 1)) {
    throw new InputError(`--resolution: '${flags.resolution}' is not between 0.5% and 100%`);
  }
  const replications = flags.replications ?? plan.replications;
  if (replications < 3) {
    throw new InputError(
      `--replications ${replications}: fewer than 3 independent runs show no spread to trust; give 3 or more`,
    );
  }
  return {
    ...plan,
    resolution,
    replications,
    ...(flags.requests !== undefined && { confirmRequests: flags.requests }),
    ...(flags.steer !== undefined && { steerRequests: flags.steer }),
    ...(flags.maxRate !== undefined && { maxRate: flags.maxRate }),
    ...(flags.guess !== undefined && { guess: flags.guess }),
  };
}

/** The load at another rate. */
function atRate(load: LoadPlan, rate: number): LoadPlan {
  if (!load.arrivals) throw new InputError('capacity is about rates, and this load has no arrival process of its own');
  return { ...load, arrivals: { ...load.arrivals, rate } };
}

// ---- simulated ----

async function onSimulation(cli: Cli, { flags, contract, load, stored }: Task): Promise<Found> {
  const [{ basisOf, engineOf }, { limitsFor, ContinuousReplica }, { lengthText }, { probeOf }, { runSearch }] =
    await Promise.all([
      import('./engine-flags.ts'),
      import('../sim/index.ts'),
      import('../workload/index.ts'),
      import('../plan/probe.ts'),
      import('../drive/capacity/index.ts'),
    ]);
  if (flags.model === undefined || flags.gpu === undefined) {
    throw new InputError('--simulate: say what to simulate, with --model llama-3.1-8b --gpu h100-sxm, say');
  }
  if (flags.dialect !== undefined) throw new InputError('--dialect: a simulated engine speaks none; leave it out');
  const choice = await engineOf(deploymentFlags(flags));
  const limits = limitsFor(choice.on, replicaFlags(flags), choice.reserves);
  const seed = flags.seed ?? 1;
  const guess = await guessOf(choice, load, contract, limits.maxSeqs);
  const plan =
    stored?.plan ??
    planned({ ...simulatedPlan(contract.attainment, seed), ...(guess !== undefined && startFrom(guess)) }, flags);
  const requests = { ...load.requests, prompt: 'none' as const };
  const target = {
    contract,
    cluster: () => new ContinuousReplica(choice.step, limits),
    ...(load.contracts && { contracts: load.contracts }),
    workload: (rate: number, seed: number) => workloadOf(atRate({ ...load, requests }, rate), seed),
  };
  await announce(cli, choice.text, plan, undefined);
  const interrupted = interruption(cli);
  const budget = flags.budget === undefined ? undefined : parseDuration(flags.budget, '--budget');
  const began = performance.now();
  const probes = [...(stored?.probes ?? [])];
  try {
    const outcome = await runSearch(
      plan,
      {
        run: async (request) => {
          const measure = probeOf(target, request);
          tell(cli, request, measure);
          // Between simulated runs the process hears its signals.
          await new Promise((resolve) => setImmediate(resolve));
          return measure;
        },
        enough: () => interrupted.now() || (budget !== undefined && performance.now() - began > budget),
      },
      probes,
    );
    return {
      outcome,
      name: `${choice.text}, simulated`,
      load: `${load.arrivals?.process ?? 'poisson'}, input ${lengthText(load.requests.input)}, output ${lengthText(load.requests.output)} tokens, seed ${seed}`,
      basis: basisOf(choice).join('; '),
    };
  } finally {
    interrupted.forget();
  }
}

function deploymentFlags(flags: Flags): DeploymentFlags {
  const { model, gpu, tp, weights, kvDtype, gpuMemoryUtilization, ideal } = flags;
  return {
    model: model as string,
    gpu: gpu as string,
    ideal,
    ...(tp !== undefined && { tp }),
    ...(weights !== undefined && { weights }),
    ...(kvDtype !== undefined && { kvDtype }),
    ...(gpuMemoryUtilization !== undefined && { gpuMemoryUtilization }),
  };
}

function replicaFlags(flags: Flags) {
  return {
    prefixCaching: false,
    ...(flags.maxNumSeqs !== undefined && { maxSeqs: flags.maxNumSeqs }),
    ...(flags.maxNumBatchedTokens !== undefined && { maxBatchedTokens: flags.maxNumBatchedTokens }),
    ...(flags.kvBlocks !== undefined && { kvBlocks: flags.kvBlocks }),
  };
}

/** What full batches of the largest size that meets TPOT would sustain: an upper guess, queueing and prefill left out. */
async function guessOf(
  choice: Awaited<ReturnType<typeof import('./engine-flags.ts').engineOf>>,
  load: LoadPlan,
  contract: Contract,
  maxSeqs: number,
): Promise<number | undefined> {
  const [{ idealRow, largestBatch }, { meanLength }] = await Promise.all([
    import('../model/index.ts'),
    import('../workload/index.ts'),
  ]);
  const output = meanLength(load.requests.output);
  const context = Math.round(meanLength(load.requests.input) + output / 2);
  const batch = Math.min(maxSeqs, largestBatch(choice.on, context, contract.limits.tpot, choice.reserves).largest);
  if (batch < 1) return undefined;
  const piece = { ms: 0, slope: 0, untilKv: 0 };
  choice.step.decode(batch, batch * context, piece);
  const guess = (1000 * batch) / (output * (piece.ms || idealRow(choice.on, batch, context, output).stepMs));
  return Number.isFinite(guess) && guess > 0 ? guess : undefined;
}

function startFrom(guess: number): Pick<SearchPlan, 'guess' | 'unloadedRate'> {
  return { guess: Number(guess.toPrecision(3)), unloadedRate: Number((guess / 200).toPrecision(2)) };
}

// ---- live ----

async function onServer(cli: Cli, url: string | undefined, { flags, contract, load, stored }: Task): Promise<Found> {
  const [{ openTarget }, { hostClock }, live, { runSearch, runTime }, { lengthText }, store, { showLine }] =
    await Promise.all([
      import('./target.ts'),
      import('./host.ts'),
      import('./capacity-live.ts'),
      import('../drive/capacity/index.ts'),
      import('../workload/index.ts'),
      import('../store/folder.ts'),
      import('./capacity-progress.ts'),
    ]);
  const budget = flags.budget === undefined ? LIVE_BUDGET : parseDuration(flags.budget, '--budget');
  const host = hostClock();
  const target = await openTarget(cli, url, flags, host.clock);
  const interrupted = interruption(cli);
  try {
    const requests = { ...load.requests, prompt: target.prompt };
    const workload = (rate: number, seed: number) => workloadOf(atRate({ ...load, requests }, rate), seed);
    if (!target.local && !flags.yes && stored === undefined) {
      throw new InputError(
        `this loads ${target.name} beyond what it can serve, for up to ${formatDuration(budget)}; add --yes to do it`,
      );
    }
    const problem = await target.warm(16);
    if (problem) cli.stderr.line(`          not all connections could be opened beforehand: ${problem}`);
    const seed = stored?.plan.seed ?? flags.seed ?? 1;
    const alone = { target, contract, host, workload };
    const calm = await calmOf(alone, seed, live.loneRequest);
    const plan =
      stored?.plan ??
      planned({ ...livePlan(contract.attainment, seed, calm.e2e), ...(await liveGuess(flags, load, contract)) }, flags);
    await announce(cli, target.text, plan, budget);

    const folder = flags.resume ?? store.makeFolder(flags.out ?? 'runs', flags.name ?? 'capacity', host.epochWall);
    const runs = `${folder}/probes`;
    mkdirSync(runs, { recursive: true });
    const kept: (Probe & { run?: string })[] = [...(stored?.probes ?? [])];
    const keep = (): void =>
      keepSearch(folder, {
        schema: SEARCH_SCHEMA,
        plan,
        contract,
        load: {
          requests: load.requests,
          ...(load.arrivals && { arrivals: load.arrivals }),
          ...(load.classes && { classes: load.classes }),
          ...(load.contracts && { contracts: load.contracts }),
        },
        target: { url: url ?? null, simulated: false, name: target.name },
        gpus: flags.gpus ?? stored?.gpus ?? null,
        probes: kept,
      });
    keep();
    const began = host.clock.now();
    let current: ProbeRequest | undefined;
    const probes = {
      ...alone,
      folder: runs,
      ...(load.contracts && { contracts: load.contracts }),
      ...(flags.maxInFlight !== undefined && { maxInFlight: flags.maxInFlight }),
      about: (rate: number) => ({ arrivals: { ...load.arrivals, rate }, requests: load.requests }),
      began: (running: Drive) => {
        const display = showLine(cli.stderr, () => live.probeLine(current as ProbeRequest, running.progress()));
        const release = interrupted.onto(() => running.abort());
        return () => {
          display();
          release();
        };
      },
    };
    const outcome = await runSearch(
      plan,
      {
        run: async (request) => {
          current = request;
          if (kept.length > 0 && !(await live.drained(probes, calm.ttft, request.seed % 1_000_000))) {
            cli.stderr.line(
              '          the server has not come to rest a minute after the last run; going on all the same',
            );
          }
          const { measure, run } = await live.liveProbe(probes, request);
          if (measure === undefined) return undefined;
          tell(cli, request, measure);
          kept.push({ request, measure, run: run.slice(folder.length + 1) });
          keep();
          return measure;
        },
        enough: (next, done) => {
          if (interrupted.now()) return true;
          const last = done.at(-1)?.measure.e2eP95 ?? calm.e2e;
          const over = host.clock.now() - began + runTime(next, last) > budget;
          if (over)
            cli.stderr.line(`          the budget of ${formatDuration(budget)} leaves no time for the next run`);
          return over;
        },
      },
      stored?.probes ?? [],
    );
    return {
      outcome,
      name: target.text,
      load: `${load.arrivals?.process ?? 'poisson'}, input ${lengthText(load.requests.input)}, output ${lengthText(load.requests.output)} tokens, seed ${seed}`,
      folder,
    };
  } finally {
    interrupted.forget();
    await target.close();
  }
}

/** The middle of three lone requests: what the server does when nothing else is there. */
async function calmOf(
  alone: Parameters<typeof import('./capacity-live.ts').loneRequest>[0],
  seed: number,
  lone: typeof import('./capacity-live.ts').loneRequest,
): Promise<{ readonly ttft: Millis; readonly e2e: Millis }> {
  const three = [await lone(alone, seed + 11), await lone(alone, seed + 12), await lone(alone, seed + 13)];
  const ok = three.filter((r) => r.ttft !== undefined).sort((a, b) => a.e2e - b.e2e);
  const middle = ok[Math.floor(ok.length / 2)];
  if (!middle) {
    const { outcome, detail } = three[0] as (typeof three)[0];
    throw new MeasurementError(
      `three lone requests got no output (${outcome}${detail ? `: ${oneLine(detail, 120)}` : ''}); look with 'goodput bench --rate 1 --requests 5'`,
    );
  }
  return { ttft: middle.ttft as number, e2e: middle.e2e };
}

/** Live, a named accelerator and a model of the catalogue give the search a place to start. */
async function liveGuess(flags: Flags, load: LoadPlan, contract: Contract): Promise<{ guess?: number }> {
  if (flags.gpu === undefined) return {};
  if (flags.model === undefined) throw new InputError('--gpu: to guess the knee also name the model, with --model');
  const { engineOf } = await import('./engine-flags.ts');
  const guess = await guessOf(await engineOf(deploymentFlags(flags)), load, contract, flags.maxNumSeqs ?? 256);
  return guess === undefined ? {} : { guess: Number(guess.toPrecision(3)) };
}

// ---- what is told ----

/** What is going to happen and how long it will take, before it starts. */
async function announce(cli: Cli, where: string, plan: SearchPlan, budget: Millis | undefined): Promise<void> {
  const { searchCost } = await import('../drive/capacity/cost.ts');
  const cost = searchCost(plan);
  const at = (rate: number): string => `${formatDuration((1000 * cost.offered) / rate)} at ${trim(rate, 3)}/s`;
  const time = plan.guess === undefined ? [1, 10, 100].map(at).join(', ') : at(plan.guess);
  cli.stderr.line(`Target    ${oneLine(where)}`);
  cli.stderr.line(
    `Search    from ${trim(plan.unloadedRate, 3)}/s${plan.guess === undefined ? '' : `, then about ${trim(plan.guess, 3)}/s`}; about ${cost.runs} runs and ${cost.offered.toLocaleString('en')} requests: ${budget === undefined ? 'simulated, so seconds to minutes' : `${time} of capacity, at most ${formatDuration(budget)}`}`,
  );
}

function tell(cli: Cli, request: ProbeRequest, m: ProbeMeasure): void {
  const state = m.clientBound.length > 0 ? `void: ${m.clientBound[0]}` : `${trim(100 * m.attainment, 4)} % good`;
  cli.stderr.line(`${`${trim(request.rate, 4)}/s`.padStart(10)}  ${state}  (${request.why})`);
}

interface Interruption {
  readonly now: () => boolean;
  /** Called when it comes, until released. */
  readonly onto: (run: () => void) => () => void;
  readonly forget: () => void;
}

/** Ctrl-C once ends the search and reports what is known; twice is the system's. */
function interruption(cli: Cli): Interruption {
  let stopped = false;
  const listeners = new Set<() => void>();
  const handler = (): void => {
    stopped = true;
    cli.stderr.line('\nStopping: what is known is reported. Ctrl-C again to leave at once.');
    for (const run of listeners) run();
    process.off('SIGINT', handler);
    process.off('SIGTERM', handler);
  };
  process.on('SIGINT', handler);
  process.on('SIGTERM', handler);
  return {
    now: () => stopped,
    onto: (run) => {
      listeners.add(run);
      return () => listeners.delete(run);
    },
    forget: () => {
      process.off('SIGINT', handler);
      process.off('SIGTERM', handler);
    },
  };
}
