/** The designed measurement of `goodput calibrate --collect`, into a run folder like any other. */
import { availableParallelism, cpus, platform, release, totalmem } from 'node:os';
import { InputError, MeasurementError, oneLine } from '../base/errors.ts';
import { formatDuration, type Millis, parseDuration, trim } from '../base/units.ts';
import { contractOf } from '../core/contract.ts';
import type { RequestRecord } from '../core/record.ts';
import { drive, selfWatch } from '../drive/index.ts';
import { DESIGN_DEFAULTS, type DesignPlan, DesignWorkload, designCost, type PromptFor } from '../plan/design.ts';
import { createRun } from '../store/index.ts';
import { textSource } from '../workload/index.ts';
import type { CalibrateFlags } from './calibrate.ts';
import type { Cli } from './command.ts';
import { confirmPlan } from './confirm.ts';
import { type HostClock, hostClock } from './host.ts';
import { progressBar } from './progress.ts';
import { cursorOf, healthOf } from './recording.ts';
import { type OpenTarget, openTarget } from './target.ts';
import { VERSION } from './version.ts';

/** Quick engines are measured for at least this long, ms. */
const FILL: Millis = 60_000;

/** @returns the run folder. */
export async function collect(cli: Cli, flags: CalibrateFlags, url: string): Promise<string> {
  const host = hostClock();
  const [shortPrompt, longPrompt] = promptRange(flags.prompts);
  const limit = parseDuration(flags.maxTime, '--max-time');
  const plan: DesignPlan = {
    ...DESIGN_DEFAULTS,
    shortPrompt,
    longPrompt,
    ...(flags.maxBatch !== undefined && { largestBatch: flags.maxBatch }),
    ...(flags.heldTokens !== undefined && { heldTokens: flags.heldTokens }),
    ...(flags.rounds !== undefined ? { rounds: flags.rounds } : { fill: Math.min(FILL, limit / 2) }),
    until: limit,
  };
  const target = await openTarget(cli, url, flags, host.clock);
  try {
    if (target.prompt !== 'text') {
      throw new InputError(`${target.name}: there is no engine to calibrate; give a server's URL`);
    }
    const cost = designCost(plan);
    cli.stderr.line(`Target    ${target.text}`);
    cli.stderr.line(
      `Design    ${plan.rounds} rounds${plan.fill === undefined ? '' : ` (more, until ${formatDuration(plan.fill)} have passed)`}: lone prompts of ${shortPrompt} to ${longPrompt} tokens, batches of 1 to ${plan.largestBatch}, prompts into decoding, a mix; ` +
        `${cost.requests.toLocaleString('en')} requests, ${cost.tokens.toLocaleString('en')} tokens, at most ${formatDuration(limit)}. Nobody else should use the server meanwhile.`,
    );
    await confirmPlan(target, flags.yes, cost);
    const salt = 1 + (Math.floor(host.epochWall) % (2 ** 20 - 1));
    const prompts = await promptMaker(target, flags.seed, salt, host);
    cli.stderr.line(`          ${prompts.note}`);
    return await measure(cli, flags, target, host, plan, new DesignWorkload(plan, prompts.write));
  } finally {
    await target.close();
  }
}

function promptRange(text: string | undefined): [number, number] {
  if (text === undefined) return [DESIGN_DEFAULTS.shortPrompt, DESIGN_DEFAULTS.longPrompt];
  const m = /^(\d+)-(\d+)$/.exec(text);
  const [low, high] = [Number(m?.[1]), Number(m?.[2])];
  if (!(low >= 8 && high >= 4 * low)) {
    throw new InputError(
      `--prompts: '${text}' is not LOW-HIGH with LOW from 8 on and HIGH at least four times that; write 32-1024`,
    );
  }
  return [low, high];
}

/** Two prompts tell how many tokens the server makes of a word, and how many it adds. */
async function promptMaker(
  target: OpenTarget,
  seed: number,
  salt: number,
  host: HostClock,
): Promise<{ readonly note: string; readonly write: PromptFor }> {
  const plain = textSource(seed, { salt, tokensPerWord: 1, overhead: 0 });
  // Short ones: a server may cut long prompts, and then a long one says too little.
  const words = [24, 96] as const;
  const counted: (number | undefined)[] = [];
  for (const [i, n] of words.entries()) {
    const record = await ask(target, host, plain.text([{ purpose: 'answer', key: i, tokens: n }]), n);
    if (record?.outcome !== 'completed') {
      const why = record ? `${record.outcome} (${record.reason || record.detail})` : 'without a record';
      throw new MeasurementError(
        `${target.name}: a first request ended ${oneLine(why, 160)}; try it with goodput bench --requests 1`,
      );
    }
    counted.push(record.usage?.input);
  }
  const [a, b] = counted;
  const known = a !== undefined && b !== undefined && b > a;
  const tokensPerWord = known ? (b - a) / (words[1] - words[0]) : 1;
  const overhead = known ? Math.max(0, Math.round(a - tokensPerWord * words[0])) : 0;
  const source = textSource(seed, { salt, tokensPerWord, overhead });
  return {
    note: known
      ? `a word is ${trim(tokensPerWord, 3)} tokens here, and ${overhead} are added to each prompt`
      : 'the server does not say how many tokens a prompt has: a word is taken as one, and prefill is only as right as that',
    write: (operation, tokens) =>
      source.text([{ purpose: 'prompt', key: operation, tokens: Math.max(1, tokens - overhead) }]),
  };
}

/** One request by itself. */
async function ask(
  target: OpenTarget,
  host: HostClock,
  prompt: string,
  tokens: number,
): Promise<RequestRecord | undefined> {
  const records: RequestRecord[] = [];
  const spec = {
    operation: 0,
    attempt: 0,
    class: 'default',
    inputTokens: tokens,
    outputTokens: 2,
    choices: 1,
    stream: true,
    ignoreEos: true,
    prompt,
  };
  const offers = [{ at: 0, spec }];
  const sink = {
    add: (r: RequestRecord) => void records.push(r),
    full: false,
    drained: () => Promise.resolve(),
    close: () => Promise.resolve(),
  };
  const contract = contractOf({}, { deadline: 60_000 });
  const workload = { next: () => offers.shift(), ended: () => [] };
  await drive(workload, target.engine, host.clock, { contract, seed: 1, window: { warmup: 0, requests: 1 } }, sink)
    .done;
  return records.at(-1);
}

async function measure(
  cli: Cli,
  flags: CalibrateFlags,
  target: OpenTarget,
  host: HostClock,
  plan: DesignPlan,
  workload: DesignWorkload,
): Promise<string> {
  const deadline: Millis = plan.until + 120_000;
  const contract = contractOf({}, { deadline });
  const run = await createRun(
    flags.out,
    flags.name ?? 'calibrate',
    {
      epochWall: host.epochWall,
      seed: flags.seed,
      contract,
      workload: {
        text: `designed measurement, ${plan.rounds} rounds, seed ${flags.seed}`,
        design: plan,
        closed_loop: true,
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
      command: ['calibrate', '--collect', target.name],
    },
    { clock: host.clock },
  );
  await target.warm(plan.largestBatch + 8);
  const watch = selfWatch();
  const window = { warmup: 0, duration: deadline, whole: true };
  const running = drive(
    workload,
    target.engine,
    host.clock,
    { contract, seed: flags.seed, window, coolDown: false },
    run,
  );
  run.track(() => cursorOf(running));
  const stop = progressBar(cli, () => {
    const done = workload.total - workload.left;
    const { elapsed, inFlight } = running.progress();
    return {
      share: done / workload.total,
      text: `phase ${done} of ${workload.total}, ${phaseText(workload)}, ${inFlight} in flight, ${formatDuration(elapsed)}`,
    };
  });
  const interrupt = (): void => running.stop();
  process.once('SIGINT', interrupt);
  try {
    const result = await running.done;
    run.writeHealth(healthOf(result, watch, target));
  } finally {
    stop();
    watch.stop();
    process.off('SIGINT', interrupt);
    await run.close();
  }
  cli.stderr.line(`Run folder: ${run.folder}`);
  return run.folder;
}

function phaseText({ phase }: DesignWorkload): string {
  if (!phase) return 'ending';
  if (phase.kind === 'lone') return `a lone prompt of ${phase.prompt}`;
  if (phase.kind === 'hold') return `${phase.batch} held at ${phase.prompt}`;
  if (phase.kind === 'mix') return `${phase.slots} at a time, all lengths`;
  return `prompts into ${phase.batch} decoding`;
}
