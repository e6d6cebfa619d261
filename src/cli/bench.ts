/** `goodput bench`: load a server, time every chunk, judge every request, keep everything in a run folder. */
import { randomInt } from 'node:crypto';
import { availableParallelism, cpus, platform, release, totalmem } from 'node:os';
import { InputError, messageOf } from '../base/errors.ts';
import { trim } from '../base/units.ts';
import { type Contract, contractFor, contractOf } from '../core/contract.ts';
import type { Drive } from '../drive/drive.ts';
import type { Report } from '../report/index.ts';
import { type Cli, command, JSON_FLAG } from './command.ts';
import {
  estimate,
  LOAD_FLAGS,
  type LoadFlags,
  type LoadPlan,
  mixOf,
  numberFlags,
  planText,
  resolveLoad,
  withText,
  workloadFacts,
  workloadOf,
  workloadText,
} from './load-plan.ts';
import { cursorOf, healthOf } from './recording.ts';
import type { RunGroup } from './repeat.ts';
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
  readonly rates?: string;
  readonly out?: string;
  readonly name?: string;
  readonly repeat?: number;
  readonly against?: string;
  readonly calibrate: boolean;
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
      rates: {
        kind: 'parsed',
        parse: String,
        optional: true,
        brief: 'Several rates into one folder with one curve: 1,2,4,8, or ramps 1..8/0.5 and 1..64*2',
        placeholder: 'list',
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
      repeat: {
        kind: 'parsed',
        parse: numberFlags.whole('repeat'),
        optional: true,
        brief: 'Measure this often, each run with the next seed (default 3 with --against)',
        placeholder: 'N',
      },
      against: {
        kind: 'parsed',
        parse: String,
        optional: true,
        brief: 'Measure another server in turn with the first, same seeds, and compare the two',
        placeholder: 'URL',
      },
      calibrate: {
        kind: 'boolean',
        default: false,
        brief: "Ask the server's /tokenize what it makes of our words, so that prompts come out at their length",
      },
      yes: { kind: 'boolean', default: false, brief: 'Do not ask before a large plan off loopback' },
      json: JSON_FLAG,
    },
    aliases: { n: 'n', y: 'yes' },
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
  if (flags.rates !== undefined)
    return (await import('./sweep.ts')).sweepBench(this, { ...flags, rates: flags.rates }, url);
  if (flags.repeat !== undefined || flags.against !== undefined) {
    const { repeated } = await import('./repeat.ts');
    const times = flags.repeat ?? 3;
    const asked = new Set<'A' | 'B'>();
    return repeated(this, {
      times,
      seed: flags.seed ?? 1,
      json: flags.json,
      against: flags.against !== undefined,
      once: (side, seed, group) => {
        const again = { ...flags, seed, yes: flags.yes || asked.has(side) };
        asked.add(side);
        return benchOnce(this, again, side === 'A' ? url : flags.against, { group, times });
      },
    });
  }
  const { folder, report } = await benchOnce(this, flags, url);
  const { renderReport, reportJson } = await import('../report/index.ts');
  this.stdout.write(flags.json ? reportJson(report) : renderReport(report, this.stdout));
  if (!flags.json) this.stdout.line(`Run folder: ${folder}  (goodput report ${folder})`);
  else this.stderr.line(`Run folder: ${folder}`);
  this.exit(exitCodeOf(report));
}

/** What `null:` is held against unless told: it answers all at once, so only the first response can be. */
const FLOOR: Contract = contractOf({ ttft: 50 }, { name: 'floor' });

/** One measured run into a run folder, and its report. @param repeats where it stands among repeated runs. */
async function benchOnce(
  cli: Cli,
  flags: Flags,
  url: string | undefined,
  repeats?: { readonly group: RunGroup; readonly times: number },
): Promise<{ folder: string; report: Report }> {
  const { contractOfFlags } = await import('./slo-flags.ts');
  const chosen = await contractOfFlags(flags);
  const toItself = url === 'null:' && chosen.isDefault;
  const contract = toItself ? FLOOR : chosen.contract;
  const isDefault = chosen.isDefault && !toItself;
  const plan = await resolveLoad(flags, flags.seed ?? 1);
  const { hostClock } = await import('./host.ts');
  const host = hostClock();
  const say = (line: string): void => cli.stderr.line(line);

  const target = await openTarget(cli, url, flags, host.clock);
  try {
    const load = await written(flags, plan, target, say);
    say(`Target    ${target.text}`);
    for (const note of target.notes) say(`          ${note}`);
    say(`Load      ${planText(load, contract, flags.maxInFlight)}`);
    say(`Contract  ${await contractLine(contract, isDefault)}`);
    const planned = estimate(load, contract, flags.maxInFlight);
    const times = repeats?.times ?? 1;
    await confirm(cli, flags, target, { requests: times * planned.requests, tokens: times * planned.tokens });
    const folder = await measure(cli, flags, contract, isDefault, load, target, host, repeats?.group);

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

/** The plan with its texts as this target gets them: salted unless told not to, and to the server's own count on request. */
async function written(
  flags: Flags,
  plan: LoadPlan,
  target: OpenTarget,
  say: (line: string) => void,
): Promise<LoadPlan> {
  const load: LoadPlan = { ...plan, requests: { ...plan.requests, prompt: target.prompt } };
  if (target.prompt === 'none') return load;
  const salt = plan.cache === 'as-is' ? 0 : randomInt(1, 2 ** 20);
  let measured = { tokensPerWord: 1, overhead: 0 };
  if (flags.calibrate) {
    const { calibrate } = await import('./prompt-tokens.ts');
    const key = flags.apiKeyEnv === undefined ? undefined : process.env[flags.apiKeyEnv];
    const found = await calibrate(target.name, target.model ?? '', target.dialect === 'openai.chat', {
      ...(key && { authorization: `Bearer ${key}` }),
    });
    if (found) {
      measured = found;
      say(
        `Prompts   by the server's own tokenizer a word is ${trim(found.tokensPerWord, 4)} tokens, and it adds ${found.overhead}; lengths are corrected by that`,
      );
    } else say('Prompts   the server has no /tokenize to calibrate by; a word is taken as one token');
  }
  return withText(load, { salt, ...measured });
}

/** How texts are made differs from run to run by its salt: it stands apart from what is asked. */
function plain({ text: _, ...requests }: LoadPlan['requests']): Omit<LoadPlan['requests'], 'text'> {
  return requests;
}

/** Sends every shared prefix once, so that the cache holds it when the warm-up begins. Outside all figures. */
async function warmPrefixes(
  load: LoadPlan,
  seed: number,
  target: OpenTarget,
): Promise<{ sent: number; failed: number }> {
  const mix = mixOf(load);
  let sent = 0;
  let failed = 0;
  if (!mix) return { sent, failed };
  const { MixSource } = await import('../workload/index.ts');
  for (const { tokens, blocks, prompt } of new MixSource(mix, seed).prefixes()) {
    if (sent >= MAX_WARM) break;
    sent++;
    const ok = await new Promise<boolean>((resolve) => {
      let finished = false;
      target.engine.submit(
        {
          operation: WARM_OPERATIONS + sent,
          attempt: 0,
          class: 'warm',
          inputTokens: tokens + 1,
          outputTokens: 1,
          choices: 1,
          stream: true,
          ignoreEos: true,
          prefixBlocks: blocks,
          ...(target.prompt === 'text' && { prompt }),
        },
        {
          dispatched: () => {},
          connected: () => {},
          sent: () => {},
          headers: () => {},
          event: (_t, event) => {
            if (event.finishes?.length) finished = true;
          },
          ended: (_t, ending) => resolve(ending.kind === 'closed' || finished),
        },
      );
    });
    if (!ok) failed++;
  }
  return { sent, failed };
}

/** More prefixes than this are not warmed one by one. */
const MAX_WARM = 1000;
/** Numbers no operation of a run has. */
const WARM_OPERATIONS = 2 ** 40;

type Host = ReturnType<typeof import('./host.ts').hostClock>;

/** Runs the load into a run folder. @returns the folder. */
async function measure(
  cli: Cli,
  flags: Flags,
  contract: Contract,
  isDefault: boolean,
  load: LoadPlan,
  target: OpenTarget,
  host: Host,
  group?: RunGroup,
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

  if (load.cache === 'warm') {
    const { sent, failed } = await warmPrefixes(load, seed, target);
    cli.stderr.line(
      `Cache     ${sent} shared prefixes sent once before the warm-up${failed > 0 ? `, ${failed} of them in vain` : ''}`,
    );
  }
  const watch = selfWatch();
  const running = drive(
    workloadOf(load, seed),
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
