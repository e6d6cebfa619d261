/** `goodput simulate`: the report of `bench`, in virtual time, of a serving system that is not there. */
import { InputError, messageOf, oneLine } from '../base/errors.ts';
import { formatDuration, parseDuration } from '../base/units.ts';
import type { Contract } from '../core/contract.ts';
import type { Cluster, SchedulerName, SimDone, SystemPlan } from '../sim/index.ts';
import { type Cli, command, JSON_FLAG, text } from './command.ts';
import {
  basisOf,
  DEPLOYMENT_FLAGS,
  type DeploymentFlags,
  type EngineChoice,
  engineOf,
  frontendOf,
} from './engine-flags.ts';
import { LOAD_FLAGS, type LoadFlags, numberFlags } from './load-flags.ts';
import { loadPlan, workloadOf } from './load-plan.ts';
import { exitCodeOf } from './report.ts';
import { SLO_FLAGS, type SloFlags } from './slo-flags.ts';
import { VERSION } from './version.ts';

interface SystemFlags {
  readonly maxNumSeqs?: number;
  readonly maxNumBatchedTokens?: number;
  readonly maxModelLen?: number;
  readonly kvBlocks?: number;
  readonly enablePrefixCaching: boolean;
  readonly maxQueue?: number;
  readonly scheduler: SchedulerName;
  readonly replicas: number;
  readonly router: 'round-robin' | 'least-loaded' | 'prefix-affinity';
  readonly prefillReplicas?: number;
  readonly kvLink?: number;
  readonly draftTokens?: number;
  readonly acceptance?: number;
  readonly draftModel?: string;
  readonly frontend?: string;
}

interface Flags extends DeploymentFlags, LoadFlags, SloFlags, SystemFlags {
  readonly seed?: number;
  readonly out?: string;
  readonly name?: string;
  readonly chromeTrace?: string;
  readonly json: boolean;
}

const whole = (name: string, brief: string) =>
  ({ kind: 'parsed', parse: numberFlags.whole(name), optional: true, brief, placeholder: 'N' }) as const;

/** The flags of a serving system's scheduler, by vLLM's names where it has one. */
export const SYSTEM_FLAGS = {
  maxNumSeqs: whole('max-num-seqs', 'Sequences in a batch at most (default 256)'),
  maxNumBatchedTokens: whole('max-num-batched-tokens', 'Tokens in a step at most (default 8192)'),
  maxModelLen: whole('max-model-len', 'Longest prompt and output together'),
  kvBlocks: whole('kv-blocks', 'KV blocks of 16 tokens a replica (default: what memory leaves)'),
  enablePrefixCaching: { kind: 'boolean', default: true, brief: 'Keep prompt blocks for later prompts' },
  maxQueue: whole('max-queue', 'Refuse requests when this many wait (default: no bound)'),
  scheduler: {
    kind: 'enum',
    values: ['continuous', 'static'],
    default: 'continuous',
    brief: 'Continuous batching with chunked prefill, or whole batches one after the other',
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

export const simulate = command({
  func: runSimulate,
  parameters: {
    flags: {
      ...DEPLOYMENT_FLAGS,
      ...LOAD_FLAGS,
      ...SLO_FLAGS,
      ...SYSTEM_FLAGS,
      seed: whole('seed', 'Seed of everything drawn (default 1)'),
      out: text('Also keep every request in a run folder under here', 'DIR'),
      name: text('Name of the run folder (default simulate)', 'name'),
      chromeTrace: text('Write the schedule as a Chrome trace (chrome://tracing, Perfetto)', 'FILE'),
      json: JSON_FLAG,
    },
    aliases: { n: 'n' },
  },
  docs: {
    brief: 'Report on a simulated serving system as on a measured one',
    fullDescription:
      'The same load, contract and report as `bench`, in virtual time, with iteration-level scheduling as vLLM does it:\n' +
      'token budget, chunked prefill, KV blocks, preemption, prefix cache; several replicas, split prefill and decode\n' +
      'pools, speculative decoding. With --out the run can be reported, compared and judged again like any other.\n' +
      'Exit codes: 0 the attainment target is met, 1 it is missed, 2 bad input.',
  },
});

async function runSimulate(this: Cli, flags: Flags): Promise<void> {
  const { contractOfFlags } = await import('./slo-flags.ts');
  const [{ contract, isDefault }, choice] = await Promise.all([contractOfFlags(flags), engineOf(flags)]);
  const plan = loadPlan(flags);
  if (plan.requests.choices > 1)
    throw new InputError(`--n ${flags.n}: a simulated request has one choice; raise --rate by as much instead`);
  const load = { ...plan, requests: { ...plan.requests, prompt: 'none' as const } };
  const seed = flags.seed ?? 1;
  const system = await systemPlanOf(choice, flags, seed);
  const { systemOf } = await import('../sim/index.ts');
  const { plannedWindow } = await import('./simulated-run.ts');
  const simulated = {
    workload: () => workloadOf(load, seed),
    cluster: () => systemOf(system),
    window: load.window,
    deadline: contract.deadline,
  };
  const arrival = load.arrivals
    ? `${load.arrivals.process} ${load.arrivals.rate}/s`
    : `closed loop of ${load.concurrency}`;
  const facts: RunDescription = {
    target: `simulated: ${choice.text}${systemText(system)}, step times ${choice.step.label}`,
    model: choice.on.model.name,
    dialect: 'simulated',
    workload: `${arrival}, seed ${seed}`,
    ...(load.arrivals && { asked_rps: load.arrivals.rate }),
    ...(!load.arrivals && { closed_loop: true }),
    gpus: choice.on.tp * choice.on.dp * ((system.replicas ?? 1) + (system.prefill?.replicas ?? 0)),
    default_contract: isDefault,
  };
  const window = plannedWindow(simulated);
  const run = { flags, contract, choice, seed, load, system, facts, simulated, window };
  const { report, phases, gauges } = await simulateRun(this, run);
  const { renderReport, reportJson } = await import('../report/index.ts');
  if (flags.json) this.stdout.write(reportJson(report));
  else {
    this.stdout.write(renderReport(report, this.stdout));
    for (const line of await phaseLines(phases, gauges)) this.stdout.line(line);
  }
  this.exit(exitCodeOf(report));
}

interface RunDescription {
  readonly target: string;
  readonly model: string;
  readonly dialect: string;
  readonly workload: string;
  readonly asked_rps?: number;
  readonly closed_loop?: boolean;
  readonly gpus: number;
  readonly default_contract: boolean;
}

interface Run {
  readonly flags: Flags;
  readonly contract: Contract;
  readonly choice: EngineChoice;
  readonly seed: number;
  readonly load: ReturnType<typeof loadPlan>;
  readonly system: SystemPlan;
  readonly facts: RunDescription;
  readonly simulated: import('./simulated-run.ts').SimulatedLoad;
  readonly window: import('../core/cohort.ts').Window;
}

async function simulateRun(cli: Cli, run: Run) {
  const { flags, contract, simulated, window, facts } = run;
  const [core, { recordOf, unsentRecord, systemOf }, { buildReport, spreadOf }, { cohortSimulation }, { PhaseFold }] =
    await Promise.all([
      import('../core/index.ts'),
      import('../sim/index.ts'),
      import('../report/index.ts'),
      import('./simulated-run.ts'),
      import('./phases.ts'),
    ]);
  const cohort = new core.CohortReducer(contract, window);
  const throughput = new core.ThroughputReducer(window);
  const phases = new PhaseFold();
  const trace = flags.chromeTrace === undefined ? undefined : await traceFile(flags.chromeTrace);
  const folder = flags.out === undefined ? undefined : await openFolder(run, flags.out);
  let cluster: Cluster | undefined;
  const add = (record: import('../core/record.ts').RequestRecord): void => {
    cohort.add(record);
    throughput.add(record);
    folder?.add(record);
  };
  const simulation = cohortSimulation(
    {
      ...simulated,
      cluster: () => (cluster = systemOf({ ...run.system, ...(trace && { observe: trace.observe }) })),
    },
    window,
    (done: SimDone) => {
      const record = recordOf(done);
      add(record);
      if (core.inCohort(window, record.operation, record.stamps.scheduled, record.session)) phases.add(record);
      trace?.request(done);
    },
    (offer, t) => add(unsentRecord(offer, t)),
  );
  try {
    while (!simulation.run(() => folder?.full === true || trace?.full() === true)) {
      await folder?.drained();
      await trace?.drained();
    }
  } finally {
    await trace?.close(cli);
    const { offered } = simulation.summary();
    await folder?.close(offered, window);
  }
  const remarks = ['simulated: nothing was measured', ...basisOf(run.choice), ...phases.sentences()];
  if (folder) {
    const [{ openRun }, { reportOfRun }] = await Promise.all([import('../store/index.ts'), import('./run-report.ts')]);
    const stored = await openRun(folder.folder, { wallNow: Date.now() });
    const report = await reportOfRun(stored, { remarks }).finally(() => stored.close());
    const { reportJson } = await import('../report/index.ts');
    const { writeFileSync } = await import('node:fs');
    try {
      writeFileSync(`${folder.folder}/report.json`, reportJson(report));
    } catch (error) {
      cli.stderr.line(`goodput: the report could not be kept in the run folder (${messageOf(error)})`);
    }
    cli.stderr.line(`Run folder: ${folder.folder}  (goodput report ${folder.folder})`);
    return { report, phases, gauges: cluster?.gauges() };
  }
  const fold = cohort.finish();
  const sendLag = spreadOf(fold.columns.sendLag);
  const report = buildReport({
    contract,
    cohort: fold,
    throughput: throughput.finish(),
    client: { ...(sendLag && { sendLag }), unsent: fold.ledger.unsent - fold.unsentAfterFailure, dropped: 0 },
    facts: { name: flags.name ?? 'simulate', ...facts, remarks },
  });
  return { report, phases, gauges: cluster?.gauges() };
}

/** Shared by commands that simulate a system named by flags. */
export async function systemPlanOf(choice: EngineChoice, flags: SystemFlags, seed: number): Promise<SystemPlan> {
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
      ...(flags.maxModelLen !== undefined && { maxLength: flags.maxModelLen }),
      ...(flags.kvBlocks !== undefined && { kvBlocks: flags.kvBlocks }),
      ...(flags.maxQueue !== undefined && { maxQueue: flags.maxQueue }),
    },
    reserves,
  );
  const { modelOf } = await import('./engine-flags.ts');
  const draft =
    flags.draftModel === undefined
      ? undefined
      : m.deployment(await modelOf(flags.draftModel), on.accelerator, { tp: on.tp });
  return {
    step: choice.step,
    limits,
    scheduler: flags.scheduler,
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

function systemText(plan: SystemPlan): string {
  const { replicas = 1, router, prefill, speculation, scheduler, limits } = plan;
  return [
    prefill
      ? `, ${prefill.replicas} prefill and ${replicas} decode replicas`
      : replicas > 1
        ? `, ${replicas} replicas (${router})`
        : '',
    scheduler === 'static' ? ', static batching' : '',
    speculation ? `, ${speculation.draftTokens} tokens drafted at acceptance ${speculation.acceptance}` : '',
    `, batch ≤ ${limits.maxSeqs}, step ≤ ${limits.maxBatchedTokens} tokens, ${limits.kvBlocks} KV blocks of ${limits.blockTokens}`,
  ].join('');
}

async function phaseLines(
  phases: import('./phases.ts').PhaseFold,
  gauges: ReturnType<Cluster['gauges']> | undefined,
): Promise<string[]> {
  const { table } = await import('../report/text.ts');
  const rows = phases.rows().map((r) => [r.name, ...[r.mean, r.p50, r.p90, r.p99].map(formatDuration)]);
  if (rows.length === 0) return [];
  const lines = [
    '',
    'Phases (server time of completed requests)',
    ...table([['', 'mean', 'p50', 'p90', 'p99'], ...rows]),
  ];
  if (gauges) {
    const hits =
      gauges.prefixQueries > 0
        ? `, ${((100 * gauges.prefixHits) / gauges.prefixQueries).toFixed(1)} % of prompt tokens cached`
        : '';
    lines.push('', `${gauges.steps.toLocaleString('en')} steps, ${gauges.preemptions} preemptions${hits}`);
  }
  return lines;
}

/** A file of trace events, written as they come. */
async function traceFile(path: string) {
  const [{ createWriteStream }, { chromeTrace }] = await Promise.all([import('node:fs'), import('../sim/index.ts')]);
  const file = createWriteStream(path);
  let failure: string | undefined;
  file.on('error', (error) => {
    failure ??= messageOf(error);
  });
  const trace = chromeTrace((piece) => void file.write(piece));
  return {
    observe: trace.observe,
    request: trace.request,
    full: () => file.writableNeedDrain && failure === undefined,
    drained: async () => {
      if (!file.writableNeedDrain || failure !== undefined) return;
      await new Promise<void>((resolve) => {
        file.once('drain', resolve);
        file.once('close', resolve);
      });
    },
    close: async (cli: Cli) => {
      const left = trace.close();
      await new Promise<void>((resolve) => {
        if (failure !== undefined) resolve();
        else {
          file.once('close', () => resolve());
          file.end();
        }
      });
      if (failure !== undefined)
        throw new InputError(`--chrome-trace ${oneLine(path)}: cannot be written (${failure}); name another file`);
      if (left > 0) cli.stderr.line(`goodput: the trace is full; ${left} later events were left out`);
    },
  };
}

/** The run folder of a simulation: its epoch is virtual, its time of writing the wall's. */
async function openFolder(run: Run, out: string) {
  const [{ createRun }, { hostClock }] = await Promise.all([import('../store/index.ts'), import('./host.ts')]);
  const { flags, contract, seed, load, facts, system } = run;
  const host = hostClock();
  const { target, model, dialect, workload: words, default_contract, gpus } = facts;
  const writer = await createRun(
    out,
    flags.name ?? 'simulate',
    {
      epochWall: host.epochWall,
      seed,
      contract,
      workload: {
        text: words,
        ...(load.arrivals
          ? { arrivals: load.arrivals, rate: load.arrivals.rate }
          : { concurrency: load.concurrency, closed_loop: true }),
        requests: load.requests,
        window: load.window,
        default_contract,
        gpus,
      },
      target: { kind: 'simulated', endpoint: target, model, dialect, limits: system.limits },
      versions: { goodput: VERSION, node: process.version },
      machine: { simulated: true },
      command: ['simulate', ...process.argv.slice(3)],
    },
    { clock: host.clock },
  );
  let added = 0;
  let end: { offered: number; window: Run['window'] } | undefined;
  writer.track(() => ({ offered: end?.offered ?? added, open: [], window: run.window }));
  return {
    folder: writer.folder,
    add: (record: Parameters<typeof writer.add>[0]) => {
      added++;
      writer.add(record);
    },
    get full() {
      return writer.full;
    },
    drained: () => writer.drained(),
    close: async (offered: number, window: Run['window']) => {
      // Requests still open when the cohort was final are outside it: the load that kept the system busy.
      end = { offered: Math.min(offered, added), window };
      writer.writeHealth({ unsent: 0, dropped: writer.counts.dropped, simulated: true });
      await writer.close();
    },
  };
}
