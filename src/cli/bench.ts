/** `goodput bench`: load a server, time every chunk, judge every request, keep everything in a run folder. */
import { availableParallelism, cpus, platform, release, totalmem } from 'node:os';
import { InputError, messageOf } from '../base/errors.ts';
import type { Contract } from '../core/contract.ts';
import type { Drive } from '../drive/drive.ts';
import { type Cli, command, JSON_FLAG } from './command.ts';
import { estimate, LOAD_FLAGS, type LoadFlags, loadPlan, numberFlags, planText, workloadOf } from './load-plan.ts';
import { exitCodeOf } from './report.ts';
import { SLO_FLAGS, type SloFlags } from './slo-flags.ts';
import { type OpenTarget, openTarget, TARGET_FLAGS, type TargetFlags } from './target.ts';
import { VERSION } from './version.ts';

interface Flags extends LoadFlags, SloFlags, TargetFlags {
  readonly seed?: number;
  readonly maxInFlight?: number;
  readonly retries?: number;
  readonly coolDown: boolean;
  readonly gpus?: number;
  readonly out?: string;
  readonly name?: string;
  readonly yes: boolean;
  readonly json: boolean;
}

/** Off loopback, a plan beyond one of these asks first. */
export const ASK_BEYOND = { requests: 1000, tokens: 1_000_000 } as const;

export const bench = command({
  func: runBench,
  parameters: {
    flags: {
      ...LOAD_FLAGS,
      ...SLO_FLAGS,
      ...TARGET_FLAGS,
      seed: {
        kind: 'parsed',
        parse: seed,
        optional: true,
        brief: 'Seed of everything drawn (default 1)',
        placeholder: 'N',
      },
      maxInFlight: {
        kind: 'parsed',
        parse: numberFlags.whole('max-in-flight'),
        optional: true,
        brief: 'What would exceed this is counted as unsent',
        placeholder: 'N',
      },
      retries: {
        kind: 'parsed',
        parse: numberFlags.whole('retries'),
        optional: true,
        brief: 'Retry refused and broken requests this often, folded into one operation (default: never)',
        placeholder: 'N',
      },
      coolDown: { kind: 'boolean', default: true, brief: 'Keep up the load until the measured requests are final' },
      gpus: {
        kind: 'parsed',
        parse: numberFlags.whole('gpus'),
        optional: true,
        brief: 'GPUs behind the endpoint, for goodput per GPU',
        placeholder: 'N',
      },
      out: {
        kind: 'parsed',
        parse: String,
        optional: true,
        brief: 'Folder for run folders (default runs)',
        placeholder: 'DIR',
      },
      name: {
        kind: 'parsed',
        parse: String,
        optional: true,
        brief: 'Name of the run (default bench)',
        placeholder: 'name',
      },
      yes: { kind: 'boolean', default: false, brief: 'Do not ask before a large plan off loopback' },
      json: JSON_FLAG,
    },
    aliases: { y: 'yes' },
    positional: {
      kind: 'tuple',
      parameters: [
        {
          brief:
            "Endpoint, as http://host:8000 or …/v1/chat/completions; 'null:' measures the tool itself; none: the embedded engine",
          parse: String,
          placeholder: 'URL',
          optional: true,
        },
      ],
    },
  },
  docs: {
    brief: 'Load a streaming server, time every chunk and judge every request',
    fullDescription:
      'Without a URL it measures an embedded engine on loopback, so that the whole path can be tried anywhere.\n' +
      'Ctrl-C once ends the arrivals and reports what was offered; twice ends at once, what is open is undecided.\n' +
      'Exit codes: 0 the attainment target is met, 1 it is missed, 2 bad input, 3 the client was the bottleneck.',
  },
});

async function runBench(this: Cli, flags: Flags, url?: string): Promise<void> {
  const { contractOfFlags } = await import('./slo-flags.ts');
  const { contract, isDefault } = await contractOfFlags(flags);
  const plan = loadPlan(flags);
  const { hostClock } = await import('./host.ts');
  const host = hostClock();
  const say = (line: string): void => this.stderr.line(line);

  const target = await openTarget(this, url, flags, host.clock);
  try {
    const load = { ...plan, requests: { ...plan.requests, prompt: target.prompt } };
    say(`Target    ${target.text}`);
    for (const note of target.notes) say(`          ${note}`);
    say(`Load      ${planText(load, contract, flags.maxInFlight)}`);
    say(`Contract  ${await contractLine(contract, isDefault)}`);
    await confirm(this, flags, target, estimate(load, contract, flags.maxInFlight));
    const folder = await measure(this, flags, contract, isDefault, load, target, host);

    const [{ openRun }, { reportOfRun }, { renderReport, reportJson }] = await Promise.all([
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
    this.stdout.write(flags.json ? reportJson(report) : renderReport(report, this.stdout));
    if (!flags.json) this.stdout.line(`Run folder: ${folder}  (goodput report ${folder})`);
    else say(`Run folder: ${folder}`);
    this.exit(exitCodeOf(report));
  } finally {
    await target.close();
  }
}

type Host = ReturnType<typeof import('./host.ts').hostClock>;

/** Runs the load into a run folder. @returns the folder. */
async function measure(
  cli: Cli,
  flags: Flags,
  contract: Contract,
  isDefault: boolean,
  load: ReturnType<typeof loadPlan>,
  target: OpenTarget,
  host: Host,
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
        text: `${load.arrivals ? `${load.arrivals.process} ${load.arrivals.rate}/s` : `closed loop of ${load.concurrency}`}, seed ${seed}`,
        ...(load.arrivals
          ? { arrivals: load.arrivals, rate: load.arrivals.rate }
          : { concurrency: load.concurrency, closed_loop: true }),
        requests: load.requests,
        window: load.window,
        default_contract: isDefault,
        ...(flags.gpus !== undefined && { gpus: flags.gpus }),
        ...(flags.maxInFlight !== undefined && { max_in_flight: flags.maxInFlight }),
        ...(flags.retries !== undefined && { retries: flags.retries }),
      },
      target: target.facts,
      versions: { goodput: VERSION, node: process.version },
      machine: {
        platform: `${platform()} ${release()}`,
        cpus: availableParallelism(),
        cpu: cpus()[0]?.model.trim() ?? 'unknown',
        memory_bytes: totalmem(),
        epoch_monotonic_ms: host.epochMonotonic,
      },
      command: ['bench', ...publicArguments(cli)],
    },
    { clock: host.clock },
  );
  const problem = await target.warm(connections(load, contract));
  if (problem) cli.stderr.line(`          not all connections could be opened beforehand: ${problem}`);

  const watch = selfWatch();
  const running = drive(
    workloadOf(load, seed),
    target.engine,
    host.clock,
    {
      contract,
      seed,
      window: load.window,
      coolDown: flags.coolDown,
      ...(flags.maxInFlight !== undefined && { maxInFlight: flags.maxInFlight }),
      ...(flags.retries !== undefined && { retry: { retries: flags.retries, backoff: 500 } }),
    },
    run,
  );
  let offered = 0;
  run.track(() => {
    offered = running.progress().offered;
    return {
      offered,
      open: running.open().map((o) => ({ ...o, attempt: 0 })),
      ...(running.window && { window: running.window }),
    };
  });
  const display = showProgress(cli.stderr, () => running.progress());
  const release1 = onInterrupt(cli, running);
  try {
    const result = await running.done;
    const readings = watch.readings();
    run.writeHealth({
      event_loop_ms: readings.eventLoop,
      cpu: readings.cpu,
      unsent: result.unsent,
      dropped: result.dropped,
      stopped: result.stopped,
      offered: result.offered,
      attempts: result.attempts,
      stale_connections: result.stale,
      max_in_flight: result.maxInFlight,
      ...(target.evidence && { evidence: target.evidence() }),
    });
  } finally {
    display.stop();
    watch.stop();
    release1();
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

async function confirm(
  cli: Cli,
  flags: Flags,
  target: OpenTarget,
  plan: { requests: number; tokens: number },
): Promise<void> {
  if (target.local || flags.yes || (plan.requests <= ASK_BEYOND.requests && plan.tokens <= ASK_BEYOND.tokens)) return;
  const what = `this puts about ${plan.requests} requests and ${plan.tokens} tokens on ${target.name}`;
  if (!process.stdin.isTTY) throw new InputError(`${what}; add --yes to do it`);
  const { createInterface } = await import('node:readline/promises');
  const asking = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await asking.question(`${what[0]?.toUpperCase()}${what.slice(1)}. Go on? [y/N] `);
  asking.close();
  if (!/^y(es)?$/i.test(answer.trim())) throw new InputError('nothing was sent');
  void cli;
}

/** Connections opened beforehand: what is likely in flight in the first seconds. */
function connections(load: ReturnType<typeof loadPlan>, contract: Contract): number {
  return Math.min(
    estimate(load, contract).peak,
    load.concurrency ?? Math.ceil(2 * (load.arrivals?.rate ?? 1)) + 8,
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

/** The command line without what may be secret: values of headers and bodies. */
function publicArguments(_cli: Cli): string[] {
  const args = process.argv.slice(3);
  return args.map((arg, i) => {
    if (/^--?(header|body)$/.test(args[i - 1] ?? '')) return '…';
    if (/^--(header|body)=/.test(arg)) return `${arg.slice(0, arg.indexOf('='))}=…`;
    return /^[a-z]+:\/\//i.test(arg) ? redacted(arg) : arg;
  });
}

function redacted(url: string): string {
  try {
    const u = new URL(url);
    return `${u.protocol}//${u.host}${u.pathname}${u.search ? '?…' : ''}`;
  } catch {
    return '…';
  }
}

function seed(text: string): number {
  const n = Number(text);
  if (!Number.isSafeInteger(n) || n < 0) throw new InputError(`--seed: '${text}' is not a whole number from 0 on`);
  return n;
}
