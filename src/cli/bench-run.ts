/** One measured run of `goodput bench`: into a run folder, and the report of that folder. */
import { messageOf } from '../base/errors.ts';
import { type Contract, contractFor, contractOf } from '../core/contract.ts';
import type { Drive } from '../drive/drive.ts';
import type { Report } from '../report/index.ts';
import { drawnAhead } from '../workload/ahead.ts';
import { type ScrapeFlags, type ScrapePlan, scrapeInto, scrapePlan } from './bench-scrape.ts';
import type { Cli } from './command.ts';
import { confirmPlan } from './confirm.ts';
import { workloadFacts } from './load-facts.ts';
import type { LoadFlags } from './load-flags.ts';
import { type LoadPlan, resolveLoad, workloadOf } from './load-plan.ts';
import { estimate, planText, workloadText } from './load-text.ts';
import { machineFacts } from './machine-facts.ts';
import { plain, warmPrefixes, written } from './prompts-for.ts';
import { publicArguments } from './public-arguments.ts';
import { cursorOf, healthOf } from './recording.ts';
import type { RunGroup } from './repeat.ts';
import type { SloFlags } from './slo-flags.ts';
import { type OpenTarget, openTarget, type TargetFlags } from './target.ts';
import { VERSION } from './version.ts';

export interface BenchFlags extends LoadFlags, ScrapeFlags, SloFlags, TargetFlags {
  readonly seed?: number;
  readonly maxInFlight?: number;
  readonly retries?: number;
  readonly coolDown: boolean;
  readonly gpus?: number;
  readonly rates?: string;
  readonly out?: string;
  readonly name?: string;
  readonly repeat?: number;
  readonly against?: string;
  readonly calibrate: boolean;
  readonly yes: boolean;
  readonly json: boolean;
}

/** What `null:` is held against unless told: it answers all at once, so only the first response can be. */
const FLOOR: Contract = contractOf({ ttft: 50 }, { name: 'floor' });

/**
 * One measured run into a run folder, and its report.
 * @param repeats where it stands among repeated runs, and what was told before them: the load is said once, each target once.
 */
export async function benchOnce(
  cli: Cli,
  flags: BenchFlags,
  url: string | undefined,
  repeats?: { readonly group: RunGroup; readonly times: number; readonly told: 'nothing' | 'load' | 'all' },
): Promise<{ folder: string; report: Report }> {
  const { contractOfFlags } = await import('./slo-flags.ts');
  const chosen = await contractOfFlags(flags);
  const toItself = url === 'null:' && chosen.isDefault;
  const contract = toItself ? FLOOR : chosen.contract;
  const isDefault = chosen.isDefault && !toItself;
  const plan = await resolveLoad(flags, flags.seed ?? 1);
  const scrapes = await scrapePlan(flags);
  const { hostClock } = await import('./host.ts');
  const host = hostClock();
  const say = (line: string): void => cli.stderr.line(line);

  const target = await openTarget(cli, url, flags, host.clock);
  try {
    const load = await written(flags, plan, target, say);
    const told = repeats?.told ?? 'nothing';
    if (told !== 'all') {
      say(`Target    ${target.text}`);
      for (const note of target.notes) say(`          ${note}`);
    }
    if (told === 'nothing') {
      say(`Load      ${planText(load, contract, flags.maxInFlight)}`);
      say(`Contract  ${await contractLine(contract, isDefault)}`);
    }
    const planned = estimate(load, contract, flags.maxInFlight);
    const times = repeats?.times ?? 1;
    await confirmPlan(target, flags.yes, { requests: times * planned.requests, tokens: times * planned.tokens });
    const folder = await measure(cli, flags, contract, isDefault, load, target, host, {
      ...(repeats && { group: repeats.group }),
      ...(scrapes && { scrapes }),
    });

    const [{ openRun }, { reportOfRun }, { reportJson }] = await Promise.all([
      import('../store/index.ts'),
      import('./run-report.ts'),
      import('../report/index.ts'),
    ]);
    const run = await openRun(folder, { wallNow: Date.now() });
    const report = await reportOfRun(run).finally(() => run.close());
    const { writeFileSync } = await import('node:fs');
    try {
      writeFileSync(`${folder}/report.json`, reportJson(report));
    } catch (error) {
      say(
        `goodput: the report could not be kept in the run folder (${messageOf(error)}); 'goodput report' makes it again`,
      );
    }
    return { folder, report };
  } finally {
    await target.close();
  }
}

type Host = ReturnType<typeof import('./host.ts').hostClock>;

/** Runs the load into a run folder. @returns the folder. */
async function measure(
  cli: Cli,
  flags: BenchFlags,
  contract: Contract,
  isDefault: boolean,
  load: LoadPlan,
  target: OpenTarget,
  host: Host,
  { group, scrapes }: { readonly group?: RunGroup; readonly scrapes?: ScrapePlan },
): Promise<string> {
  const [{ createRun }, { drive, selfWatch }, { showProgress }] = await Promise.all([
    import('../store/index.ts'),
    import('../drive/index.ts'),
    import('./progress.ts'),
  ]);
  const seed = flags.seed ?? 1;
  const run = await createRun(
    flags.out ?? 'runs',
    flags.name ?? 'bench',
    {
      epochWall: host.epochWall,
      seed,
      contract,
      workload: {
        text: workloadText(load, seed),
        ...(load.arrivals && { arrivals: load.arrivals, rate: load.arrivals.rate }),
        ...(load.concurrency !== undefined && { concurrency: load.concurrency, closed_loop: true }),
        ...workloadFacts(load),
        requests: plain(load.requests),
        ...(load.requests.text && { prompts: load.requests.text }),
        window: load.window,
        default_contract: isDefault,
        ...(group && { group }),
        ...(flags.gpus !== undefined && { gpus: flags.gpus }),
        ...(flags.maxInFlight !== undefined && { max_in_flight: flags.maxInFlight }),
        ...(flags.retries !== undefined && { retries: flags.retries }),
      },
      target: target.facts,
      versions: { goodput: VERSION, node: process.version },
      machine: machineFacts(host),
      command: ['bench', ...publicArguments(cli)],
    },
    { clock: host.clock },
  );
  const problem = await target.warm(connections(load, contract));
  if (problem) cli.stderr.line(`          not all connections could be opened beforehand: ${problem}`);

  if (load.cache === 'warm') {
    const { sent, failed } = await warmPrefixes(load, seed, target);
    cli.stderr.line(
      `Cache     ${sent} shared prefixes sent once before the warm-up${failed > 0 ? `, ${failed} of them in vain` : ''}`,
    );
  }
  const endScrapes = scrapes && (await scrapeInto(run.folder, scrapes, host, cli));
  const watch = selfWatch();
  const offers = workloadOf(load, seed);
  const running = drive(
    load.concurrency === undefined ? drawnAhead(offers, host.clock) : offers,
    target.engine,
    host.clock,
    {
      contract,
      ...(load.contracts && { contractFor: contractFor(contract, load.contracts) }),
      seed,
      window: load.window,
      coolDown: flags.coolDown,
      ...(flags.maxInFlight !== undefined && { maxInFlight: flags.maxInFlight }),
      ...(flags.retries !== undefined && { retry: { retries: flags.retries, backoff: 500 } }),
    },
    run,
  );
  run.track(() => cursorOf(running));
  const display = showProgress(cli.stderr, () => running.progress());
  const release1 = onInterrupt(cli, running);
  try {
    const result = await running.done;
    run.writeHealth(healthOf(result, watch, target));
  } finally {
    display.stop();
    watch.stop();
    release1();
    await endScrapes?.();
    await run.close();
  }
  return run.folder;
}

/** Ctrl-C once stops the arrivals, twice ends at once; a third is the system's. */
function onInterrupt(cli: Cli, running: Drive): () => void {
  let times = 0;
  const handler = (): void => {
    times++;
    if (times === 1) {
      cli.stderr.line('\nStopping: no new requests; waiting for those in flight. Ctrl-C again to end now.');
      running.stop();
    } else {
      running.abort();
      process.off('SIGINT', handler);
    }
  };
  const terminate = (): void => running.abort();
  process.on('SIGINT', handler);
  process.on('SIGTERM', terminate);
  return () => {
    process.off('SIGINT', handler);
    process.off('SIGTERM', terminate);
  };
}

/** Connections opened beforehand: what is likely in flight in the first seconds. */
function connections(load: LoadPlan, contract: Contract): number {
  return Math.min(
    estimate(load, contract).peak,
    load.concurrency ?? Math.ceil(2 * (load.arrivals?.rate ?? load.window.rate ?? 1)) + 8,
    256,
  );
}

async function contractLine(contract: Contract, isDefault: boolean): Promise<string> {
  const { limitsText } = await import('../report/index.ts');
  const origin = isDefault
    ? `the '${contract.name}' preset, since none was given: `
    : contract.name === 'custom'
      ? ''
      : `'${contract.name}': `;
  return `${origin}${limitsText(contract)}`;
}
