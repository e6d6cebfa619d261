/** `goodput simulate`: the report of `bench`, in virtual time, of a serving system that is not there. */
import { InputError, messageOf } from '../base/errors.ts';
import { formatDuration } from '../base/units.ts';
import type { Contract, ContractFor } from '../core/contract.ts';
import type { RequestSpec } from '../core/request.ts';
import type { Cluster, SimDone, SystemPlan } from '../sim/index.ts';
import { type Cli, command, JSON_FLAG, text } from './command.ts';
import { DEPLOYMENT_FLAGS } from './engine-flags.ts';
import { LOAD_FLAGS, type LoadFlags } from './load-flags.ts';
import type { LoadPlan } from './load-plan.ts';
import { exitCodeOf } from './report.ts';
import { type EngineFlags, type SimulatedEngine, SYSTEM_FLAGS, simulatedEngine, whole } from './simulate-engine.ts';
import { openFolder, traceFile } from './simulate-outputs.ts';
import { SLO_FLAGS, type SloFlags } from './slo-flags.ts';

export interface SimulateFlags extends EngineFlags, LoadFlags, SloFlags {
  readonly seed?: number;
  readonly out?: string;
  readonly name?: string;
  readonly chromeTrace?: string;
  readonly json: boolean;
}

export const simulate = command({
  func: runSimulate,
  parameters: {
    flags: {
      ...DEPLOYMENT_FLAGS,
      model: { ...DEPLOYMENT_FLAGS.model, optional: true },
      gpu: { ...DEPLOYMENT_FLAGS.gpu, optional: true },
      profile: text('Step times of a profile from calibrate, instead of --model and --gpu', 'FILE'),
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

async function runSimulate(this: Cli, flags: SimulateFlags): Promise<void> {
  const [{ contractOfFlags }, { resolveLoad, workloadOf }, { workloadText }, { contractFor }] = await Promise.all([
    import('./slo-flags.ts'),
    import('./load-plan.ts'),
    import('./load-text.ts'),
    import('../core/contract.ts'),
  ]);
  const { contract, isDefault } = await contractOfFlags(flags);
  const seed = flags.seed ?? 1;
  const plan = await resolveLoad(flags, seed);
  if (plan.requests.choices > 1)
    throw new InputError(`--n ${flags.n}: a simulated request has one choice; raise --rate by as much instead`);
  const load = { ...plan, requests: { ...plan.requests, prompt: 'none' as const } };
  const contractOf = contractFor(contract, load.contracts);
  const engine = await simulatedEngine(flags, seed);
  const { system } = engine;
  const { systemOf } = await import('../sim/index.ts');
  const { plannedWindow } = await import('./simulated-run.ts');
  const simulated = {
    workload: () => workloadOf(load, seed),
    cluster: () => systemOf(system),
    window: load.window,
    deadline: load.contracts ? (spec: RequestSpec) => contractOf(spec.class).deadline : contract.deadline,
  };
  const facts: RunDescription = {
    target: `simulated: ${engine.text}${systemText(system)}, step times ${engine.step.label}`,
    model: engine.model,
    dialect: 'simulated',
    workload: workloadText(load, seed),
    ...(load.arrivals && { asked_rps: load.arrivals.rate }),
    ...(load.concurrency !== undefined && { closed_loop: true }),
    gpus: engine.devices * ((system.replicas ?? 1) + (system.prefill?.replicas ?? 0)),
    default_contract: isDefault,
  };
  const window = plannedWindow(simulated);
  const run = { flags, contract, contractOf, engine, seed, load, system, facts, simulated, window };
  const { report, phases, gauges } = await simulateRun(this, run);
  const { renderReport, reportJson } = await import('../report/index.ts');
  if (flags.json) this.stdout.write(reportJson(report));
  else {
    this.stdout.write(renderReport(report, this.stdout));
    for (const line of await phaseLines(phases, gauges)) this.stdout.line(line);
  }
  this.exit(exitCodeOf(report));
}

export interface RunDescription {
  readonly target: string;
  readonly model: string;
  readonly dialect: string;
  readonly workload: string;
  readonly asked_rps?: number;
  readonly closed_loop?: boolean;
  readonly gpus: number;
  readonly default_contract: boolean;
}

/** A simulation and what it is reported as. */
export interface SimulateRun {
  readonly flags: SimulateFlags;
  readonly contract: Contract;
  readonly contractOf: ContractFor;
  readonly engine: SimulatedEngine;
  readonly seed: number;
  readonly load: LoadPlan;
  readonly system: SystemPlan;
  readonly facts: RunDescription;
  readonly simulated: import('./simulated-run.ts').SimulatedLoad;
  readonly window: import('../core/cohort.ts').Window;
}

async function simulateRun(cli: Cli, run: SimulateRun) {
  const { flags, contract, simulated, window, facts } = run;
  const [
    core,
    { recordOf, unsentRecord, systemOf },
    { buildReport, classReports, spreadOf },
    { cohortSimulation },
    { PhaseFold },
  ] = await Promise.all([
    import('../core/index.ts'),
    import('../sim/index.ts'),
    import('../report/index.ts'),
    import('./simulated-run.ts'),
    import('./phases.ts'),
  ]);
  const cohort = new core.CohortReducer(contract, window, run.contractOf);
  const classes = new Map(
    (run.load.classes ?? []).map(({ name }) => [name, new core.CohortReducer(contract, window, run.contractOf)]),
  );
  for (const name of Object.keys(run.load.contracts ?? {}))
    if (!classes.has(name)) classes.set(name, new core.CohortReducer(contract, window, run.contractOf));
  const throughput = new core.ThroughputReducer(window);
  const phases = new PhaseFold();
  const trace = flags.chromeTrace === undefined ? undefined : await traceFile(flags.chromeTrace);
  const folder = flags.out === undefined ? undefined : await openFolder(run, flags.out);
  let cluster: Cluster | undefined;
  const add = (record: import('../core/record.ts').RequestRecord): void => {
    cohort.add(record);
    classes.get(record.class)?.add(record);
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
  const remarks = ['simulated: nothing was measured', ...run.engine.basis(), ...phases.sentences()];
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
    ...(classes.size > 0 && {
      classes: classReports(
        [...classes].map(([name, own]) => ({ name, contract: run.contractOf(name), fold: own.finish() })),
      ),
    }),
    contract,
    cohort: fold,
    throughput: throughput.finish(),
    client: { ...(sendLag && { sendLag }), unsent: fold.ledger.unsent - fold.unsentAfterFailure, dropped: 0 },
    facts: { name: flags.name ?? 'simulate', ...facts, remarks },
  });
  return { report, phases, gauges: cluster?.gauges() };
}

function systemText(plan: SystemPlan): string {
  const { replicas = 1, router, prefill, speculation, scheduler, limits } = plan;
  return [
    prefill
      ? `, ${prefill.replicas} prefill and ${replicas} decode replicas`
      : replicas > 1
        ? `, ${replicas} replicas (${router})`
        : '',
    scheduler !== undefined && scheduler !== 'continuous' ? `, ${scheduler} batching` : '',
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
