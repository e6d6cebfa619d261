/** `goodput plan`: how many of which GPU, at which settings, serve this traffic inside this contract, and how sure that is. */
import { availableParallelism } from 'node:os';
import { InputError, messageOf, oneLine } from '../base/errors.ts';
import { formatDuration, parseShare, trim } from '../base/units.ts';
import type { CapFound, Evaluated, PlanAsk, PlanRow, PlanTask, TradeRow } from '../plan/index.ts';
import { limitsText } from '../report/contract-text.ts';
import type { MixPlan } from '../workload/index.ts';
import { progressBar } from './calibrate-collect.ts';
import { type Cli, command, JSON_FLAG, text } from './command.ts';
import { numberFlags } from './load-flags.ts';
import { contractOfFlags, SLO_FLAGS, type SloFlags } from './slo-flags.ts';

interface Flags extends SloFlags {
  readonly model: string;
  readonly gpu: string;
  readonly workload?: string;
  readonly input?: string;
  readonly output?: string;
  readonly arrivals?: string;
  readonly rate: number;
  readonly tp?: string;
  readonly weights?: string;
  readonly kvDtype?: string;
  readonly chunks: string;
  readonly price?: readonly string[];
  readonly headroom: string;
  readonly profile?: string;
  readonly ideal: boolean;
  readonly finalists: number;
  readonly threads?: number;
  readonly seed: number;
  readonly csv?: string;
  readonly json: boolean;
}

const whole = (flag: string, value: string, brief: string) =>
  ({ kind: 'parsed', parse: numberFlags.whole(flag), default: value, brief, placeholder: 'N' }) as const;

export const plan = command({
  func: runPlan,
  parameters: {
    flags: {
      model: { ...text('A model of the catalogue, or the path of a config.json', 'name'), optional: false },
      gpu: { ...text('Accelerators to try: h100-sxm,h200-sxm', 'a,b,c'), optional: false },
      workload: text('Traffic classes from a YAML file', 'FILE'),
      input: text('Prompt tokens: 512 (default), uniform:a-b, lognormal:mean,cv', 'tokens'),
      output: text('Output tokens: 128 (default), uniform:a-b, lognormal:mean,cv', 'tokens'),
      arrivals: text('Arrival process: poisson (default), constant, gamma:shape', 'process'),
      rate: {
        kind: 'parsed',
        parse: numberFlags.positive('rate'),
        brief: 'Requests (or sessions) a second to serve',
        placeholder: 'N',
      },
      tp: text('Tensor parallelism to try (default 1,2,4,8 as it fits)', '1,2'),
      weights: text(
        'Weight precisions to try (default: the published one, and fp8 where there is hardware)',
        'bf16,fp8',
      ),
      kvDtype: text('KV precisions to try (default bf16)', 'bf16,fp8'),
      chunks: { ...text('Prompt tokens a step to try', '2048,8192'), optional: false, default: '2048,8192' },
      price: { ...text('Price of one GPU an hour: h100-sxm=2.5 (may be repeated)', 'gpu=price'), variadic: true },
      headroom: {
        ...text("Share of each replica's sustainable rate kept free", '20%'),
        optional: false,
        default: '20%',
      },
      profile: text('A calibrated profile, for the one accelerator given at one device', 'FILE'),
      ideal: { kind: 'boolean', default: false, brief: 'Ideal step times instead of calibrated ones' },
      finalists: whole('finalists', '4', 'How many of the best are confirmed by replications'),
      threads: {
        kind: 'parsed',
        parse: numberFlags.whole('threads'),
        optional: true,
        brief: 'Worker threads (default: all cores)',
        placeholder: 'N',
      },
      seed: whole('seed', '1', 'Seed of everything drawn'),
      ...SLO_FLAGS,
      csv: text('Write all rows to this file', 'FILE'),
      json: JSON_FLAG,
    },
  },
  docs: {
    brief: 'Plan GPUs, settings and replicas for a workload under a contract',
    fullDescription:
      'For each accelerator, parallelism, precision and chunk budget: the largest batch that still meets the pace for the\n' +
      'target share of requests, the rate a replica so capped sustains (by simulation), then replicas with headroom, GPUs\n' +
      'and cost. All are searched quickly, the best confirmed by replications. Exit codes: 0 a plan, 1 nothing holds the contract.',
  },
});

async function runPlan(this: Cli, flags: Flags): Promise<void> {
  const p = await import('../plan/index.ts');
  const { ask, grid, isDefault, prices } = await askOf(flags);
  const { try: list, excluded } = p.candidates(ask, grid);
  if (list.length === 0) {
    const first = excluded[0];
    throw new InputError(
      `plan: nothing to try fits: ${first ? `${first.label}: ${first.why}` : 'no combination given'}`,
    );
  }
  const threads = flags.threads ?? availableParallelism();
  const tasks: PlanTask[] = list.map((candidate, id) => ({ id, candidate, how: 'steer' as const }));
  let done = 0;
  let total = tasks.length;
  let stage = 'searching';
  const stop = progressBar(this, () => ({
    share: done / total,
    text: `${stage} ${done} of ${total} operating points on ${threads} threads`,
  }));
  let all: Evaluated[];
  let trade: TradeRow[] = [];
  try {
    const steered = await p.evaluateAll(ask, tasks, threads, (n) => (done = n));
    const found = tasks.flatMap((t) => (typeof steered.get(t.id) === 'object' ? [steered.get(t.id) as Evaluated] : []));
    for (const t of tasks) {
      const answer = steered.get(t.id);
      if (typeof answer === 'string') excluded.push({ label: p.labelOf(t.candidate), why: answer });
    }
    // Confirmed: the best by cost or GPUs, and the best of each accelerator.
    const ranked = p.rowsOf(ask, found, prices);
    const chosen = finalistsOf(ranked, found, flags.finalists);
    stage = 'confirming';
    done = 0;
    total = Math.max(1, chosen.length);
    const again: PlanTask[] = chosen.map((e, id) => ({
      id,
      candidate: e.candidate,
      how: 'confirm' as const,
      cap: { cap: e.cap, bound: e.capBound } satisfies CapFound,
    }));
    const confirmed = await p.evaluateAll(ask, again, threads, (n) => (done = n));
    all = found.map((e) => {
      const i = chosen.indexOf(e);
      const c = i >= 0 ? confirmed.get(i) : undefined;
      return typeof c === 'object' ? c : e;
    });
    const top = chosen[0] ?? found[0];
    if (top) {
      const beside = [1, 4, 16, 64, 128, 256, 512].filter((b) => b < 0.8 * top.cap || b > 1.25 * top.cap);
      const batches = [...beside, top.cap].sort((a, b) => a - b);
      const replica = p.replicaOf(ask, top.candidate);
      trade = p.tradeRows(ask, replica, batches);
    }
  } finally {
    stop();
  }
  const rows = p.rowsOf(ask, all, prices);
  if (flags.csv !== undefined) {
    const { writeFileSync } = await import('node:fs');
    try {
      writeFileSync(flags.csv, p.planCsv(rows));
    } catch (error) {
      throw new InputError(`--csv ${oneLine(flags.csv)}: cannot be written (${messageOf(error)}); choose another file`);
    }
  }
  const protect = p.protectText(ask, trade);
  if (flags.json) {
    const { contract } = ask;
    this.stdout.line(
      JSON.stringify(
        {
          schema: 'goodput.plan/1',
          model: ask.model.name,
          rate: ask.rate,
          headroom: ask.headroom,
          contract,
          basis: ask.basis,
          rows,
          excluded,
          trade,
          protect,
        },
        null,
        2,
      ),
    );
  } else {
    const origin = isDefault ? `'${ask.contract.name}', since none was given: ` : '';
    for (const line of lines(ask, rows, excluded, trade, protect, `${origin}${limitsText(ask.contract)}`))
      this.stdout.line(line);
  }
  if (!rows.some((r) => r.gpus !== null)) this.exit(1);
}

function finalistsOf(ranked: readonly PlanRow[], found: readonly Evaluated[], count: number): Evaluated[] {
  const of = (r: PlanRow): Evaluated | undefined =>
    found.find(
      (e) =>
        e.candidate.gpu.id === r.gpu &&
        e.candidate.tp === r.tp &&
        e.candidate.weights === r.weights &&
        e.candidate.kv === r.kv &&
        e.candidate.chunk === r.chunk,
    );
  const feasible = ranked.filter((r) => r.gpus !== null);
  const best = feasible.slice(0, count);
  for (const gpu of new Set(feasible.map((r) => r.gpu))) {
    const first = feasible.find((r) => r.gpu === gpu) as PlanRow;
    if (!best.includes(first)) best.push(first);
  }
  return best.flatMap((r) => of(r) ?? []);
}

async function askOf(flags: Flags) {
  const [m, w, p, { modelOf }] = await Promise.all([
    import('../model/index.ts'),
    import('../workload/index.ts'),
    import('../plan/index.ts'),
    import('./engine-flags.ts'),
  ]);
  const { contract, isDefault } = await contractOfFlags(flags);
  const model = await modelOf(flags.model);
  const gpus = list(flags.gpu, '--gpu').map((name) => m.accelerator(name));
  const numbers = (value: string, flag: string): number[] => list(value, flag).map(numberFlags.whole(flag.slice(2)));
  let mix: MixPlan;
  if (flags.workload !== undefined) {
    if (flags.input ?? flags.output)
      throw new InputError('--workload and --input or --output: each says what requests ask for; give one of them');
    const { readWorkload } = await import('./workload-file.ts');
    const read = await readWorkload(flags.workload, flags.seed);
    if (!read.classes?.length)
      throw new InputError(
        `${flags.workload}: a replayed trace has its own rate; plan from classes, or from --input and --output`,
      );
    mix = { classes: read.classes, prompt: 'none' };
  } else {
    const length = (value: string | undefined, flag: string, otherwise: string) =>
      w.parseLength(value ?? otherwise, flag);
    mix = {
      classes: [
        {
          name: 'default',
          share: 1,
          input: length(flags.input, '--input', '512'),
          output: length(flags.output, '--output', '128'),
          choices: 1,
          stream: true,
          ignoreEos: true,
        },
      ],
      prompt: 'none',
    };
  }
  const { process, burstiness } = w.parseArrivals(flags.arrivals ?? 'poisson', flags.rate);
  const headroom = parseShare(flags.headroom, '--headroom');
  if (headroom >= 1) throw new InputError('--headroom: all of the rate cannot be kept free; write 20%');
  const prices = new Map<string, number>();
  for (const entry of flags.price ?? []) {
    for (const part of entry.split(',')) {
      const [name = '', value] = part.split('=');
      const price = Number(value);
      if (value === undefined || !(price > 0))
        throw new InputError(`--price: '${oneLine(part)}' is not gpu=price; write h100-sxm=2.5`);
      prices.set(m.accelerator(name).id, price);
    }
  }
  const unpriced = prices.size > 0 ? gpus.find((g) => !prices.has(g.id)) : undefined;
  if (unpriced) throw new InputError(`--price: ${unpriced.id} has none; give one for every --gpu, or for none`);
  let profile: PlanAsk['profile'];
  if (flags.profile !== undefined) {
    if (gpus.length !== 1) throw new InputError('--profile: it holds for one accelerator; give that one as --gpu');
    if (flags.ideal) throw new InputError('--profile and --ideal: give one of them');
    const { readFile } = await import('node:fs/promises');
    const content = await readFile(flags.profile, 'utf8').catch((error: unknown) => {
      throw new InputError(
        `--profile ${oneLine(flags.profile ?? '')}: cannot be read (${messageOf(error)}); make it with goodput calibrate`,
      );
    });
    profile = { gpu: (gpus[0] as (typeof gpus)[number]).id, profile: p.parseProfile(content, flags.profile) };
  }
  const fast = model.weights === 'bf16' && gpus.some((g) => g.flops.fp8 !== undefined);
  const weights =
    flags.weights === undefined
      ? [model.weights, ...(fast && !profile ? (['fp8'] as const) : [])]
      : list(flags.weights, '--weights').map((d) => m.parseDtype(d, '--weights'));
  const grid = {
    gpus,
    tps: profile
      ? [1]
      : flags.tp === undefined
        ? [1, 2, 4, 8].filter((t) => model.heads % t === 0)
        : numbers(flags.tp, '--tp'),
    weights,
    kvs:
      flags.kvDtype === undefined
        ? (['bf16'] as const)
        : list(flags.kvDtype, '--kv-dtype').map((d) => m.parseDtype(d, '--kv-dtype')),
    chunks: profile ? [profile.profile.limits.max_batched_tokens] : numbers(flags.chunks, '--chunks'),
  };
  const ask: PlanAsk = {
    model,
    mix,
    process: { process, ...(burstiness !== undefined && { burstiness }) },
    rate: flags.rate,
    contract,
    seed: flags.seed,
    basis: flags.ideal ? 'ideal' : 'calibrated',
    headroom,
    ...(profile && { profile }),
  };
  return { ask, grid, isDefault, prices };
}

function list(value: string, flag: string): string[] {
  const parts = value
    .split(',')
    .map((s) => s.trim())
    .filter((s) => s !== '');
  if (parts.length === 0) throw new InputError(`${flag}: '${value}' names nothing; write a list like a,b`);
  return [...new Set(parts)];
}

function lines(
  ask: PlanAsk,
  rows: readonly PlanRow[],
  excluded: readonly { label: string; why: string }[],
  trade: readonly TradeRow[],
  protect: readonly string[],
  contract: string,
): string[] {
  const basis = ask.profile
    ? `calibrated by the profile '${ask.profile.profile.name}'`
    : ask.basis === 'ideal'
      ? 'IDEAL step times: no real engine is this fast'
      : 'calibrated step times (served rows)';
  const out = [
    `Plan for ${ask.model.name} at ${ask.rate}/s, ${trim(100 * ask.headroom, 3)} % headroom; ${basis}`,
    `Contract ${contract}, for ${trim(100 * ask.contract.attainment, 4)} %`,
    'Method   cap the batch at the largest that meets the pace for that share of requests, find the rate such a replica',
    '         sustains by simulation, then add replicas. * frontier; ~ rate not confirmed by replications',
    '',
    `  ${'replica'.padEnd(26)}${'chunk'.padStart(6)}${'cap'.padStart(5)}${'rate/replica'.padStart(16)}${'replicas'.padStart(9)}${'GPUs'.padStart(6)}${'cost/h'.padStart(9)}${'TTFT p90'.padStart(10)}${'TPOT p90'.padStart(10)}  why`,
  ];
  const ms = (x: number | null): string => (x === null ? '–' : formatDuration(x));
  for (const r of rows.slice(0, 24)) {
    const replica = `${r.tp} × ${r.gpu} ${r.weights}${r.kv === 'bf16' ? '' : ` kv ${r.kv}`}`;
    const rate =
      r.gpus === null
        ? '0'
        : r.confirmed
          ? `${trim(r.rate_low ?? 0, 3)} to ${r.rate_high === null ? '?' : trim(r.rate_high, 3)}`
          : `~${trim(r.rate, 3)}`;
    out.push(
      `${r.frontier ? '*' : ' '} ${replica.padEnd(26)}${String(r.chunk).padStart(6)}${String(r.cap).padStart(5)}${rate.padStart(16)}${String(r.replicas ?? '–').padStart(9)}${String(r.gpus ?? '–').padStart(6)}${(r.cost_per_hour === null ? '–' : trim(r.cost_per_hour, 4)).padStart(9)}${ms(r.ttft_p90_ms).padStart(10)}${ms(r.tpot_p90_ms).padStart(10)}  ${r.why}`,
    );
  }
  if (rows.length > 24) out.push(`  … and ${rows.length - 24} more, in --json and --csv`);
  if (excluded.length > 0) {
    out.push('', 'Not tried:');
    for (const e of excluded.slice(0, 12)) out.push(`  ${e.label}: ${e.why}`);
  }
  if (trade.length > 0) {
    out.push(
      '',
      'What a larger batch buys and costs (a replica of the first row, its batch kept full):',
      '   batch  requests/s   tokens/s   TPOT p90   E2E p90',
    );
    for (const t of trade)
      out.push(
        `  ${String(t.batch).padStart(6)}${trim(t.requestsPerSecond, 3).padStart(12)}${trim(t.tokensPerSecond, 4).padStart(11)}${ms(t.tpotP90).padStart(11)}${ms(t.e2eP90).padStart(10)}`,
      );
    out.push(...protect.map((s) => `  ${s}`));
  }
  const beyond = new Set(rows.filter((r) => r.gpus !== null).flatMap((r) => r.beyond));
  if (beyond.size > 0) out.push('', 'Beyond the data of the step model:', ...[...beyond].map((b) => `  ${b}`));
  return out;
}
