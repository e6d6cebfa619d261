/** `goodput plan`: how many of which GPU, at which settings, serve this traffic inside this contract, and how sure that is. */
import { availableParallelism } from 'node:os';
import { InputError, messageOf, oneLine } from '../base/errors.ts';
import { formatDuration } from '../base/units.ts';
import { ENGINE_NAMES } from '../model/engines.ts';
import type { Candidate, Evaluated, PlanAsk, PlanRow, PlanTask, TradeRow } from '../plan/index.ts';
import { EXIT } from './cli.ts';
import { type Cli, command, JSON_FLAG, text } from './command.ts';
import { numberFlags } from './load-flags.ts';
import type { PlanFlags } from './plan-ask.ts';
import { progressBar } from './progress.ts';
import { SLO_FLAGS } from './slo-flags.ts';

interface Flags extends PlanFlags {
  readonly finalists: number;
  readonly threads?: number;
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
      engine: {
        kind: 'enum',
        values: ENGINE_NAMES,
        optional: true,
        brief: 'Whose overheads the calibrated step times take (default: one fit over all)',
      },
      workload: text('Traffic classes, each under its own contract, or a replay, from a YAML file', 'FILE'),
      replay: text('A recorded trace as the traffic, brought to --rate', 'FILE'),
      input: text('Prompt tokens: 512 (default), uniform:a-b, lognormal:mean,cv', 'tokens'),
      output: text('Output tokens: 128 (default), uniform:a-b, lognormal:mean,cv', 'tokens'),
      arrivals: text('Arrival process: poisson (default), constant, gamma:shape', 'process'),
      rate: {
        kind: 'parsed',
        parse: numberFlags.positive('rate'),
        optional: true,
        brief: "Requests (or sessions) a second to serve (default: the workload's, or the trace's own)",
        placeholder: 'N',
      },
      tp: text('Tensor parallelism to try (default 1,2,4,8 as it fits)', '1,2'),
      weights: text(
        'Weight precisions to try (default: the published one, and fp8 where there is hardware)',
        'bf16,fp8',
      ),
      kvDtype: text('KV precisions to try (default bf16)', 'bf16,fp8'),
      chunks: text('Prompt tokens a step to try (default 2048,8192)', '2048,8192'),
      price: { ...text('Price of one GPU an hour: h100-sxm=2.5 (may be repeated)', 'gpu=price'), variadic: true },
      headroom: {
        ...text("Share of each replica's sustainable rate kept free", '20%'),
        optional: false,
        default: '20%',
      },
      profile: text('A calibrated profile, of the one accelerator, precision and --tp given', 'FILE'),
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
  const [p, { askOf }] = await Promise.all([import('../plan/index.ts'), import('./plan-ask.ts')]);
  const asked = await askOf(flags);
  const { ask, grid, prices } = asked;
  const { try: list, excluded } = p.candidates(ask, grid);
  if (list.length === 0) {
    const first = excluded[0];
    throw new InputError(
      `plan: nothing to try fits: ${first ? `${first.label}: ${first.why}` : 'no combination given'}`,
    );
  }
  const threads = Math.min(flags.threads ?? availableParallelism(), MOST_THREADS);
  announce(this, p, ask, list, flags.finalists, threads);
  const tasks: PlanTask[] = list.map((candidate, id) => ({ id, candidate, how: 'steer' as const }));
  const progress = { stage: 'searching', done: 0, total: tasks.length };
  const stop = progressBar(this, () => ({
    share: progress.done / progress.total,
    text: `${progress.stage} ${progress.done} of ${progress.total} operating points on ${threads} threads`,
  }));
  let all: Evaluated[];
  let trade: TradeRow[] = [];
  try {
    const steered = await p.evaluateAll(ask, tasks, threads, (n) => (progress.done = n));
    const found = tasks.flatMap((t) => (typeof steered.get(t.id) === 'object' ? [steered.get(t.id) as Evaluated] : []));
    for (const t of tasks) {
      const answer = steered.get(t.id);
      if (typeof answer === 'string') excluded.push({ label: p.labelOf(t.candidate), why: answer });
    }
    // Confirmed: the best by cost or GPUs, and the best of each accelerator.
    const chosen = finalistsOf(p.rowsOf(ask, found, prices), found, flags.finalists);
    Object.assign(progress, { stage: 'confirming', done: 0, total: Math.max(1, chosen.length) });
    const again: PlanTask[] = chosen.map((e, id) => ({
      id,
      candidate: e.candidate,
      how: 'confirm' as const,
      cap: { cap: e.cap, bound: e.capBound, full: e.full },
    }));
    const confirmed = await p.evaluateAll(ask, again, threads, (n) => (progress.done = n));
    all = found.map((e) => {
      const i = chosen.indexOf(e);
      const c = i >= 0 ? confirmed.get(i) : undefined;
      return typeof c === 'object' ? c : e;
    });
    const top = chosen[0] ?? found[0];
    if (top) trade = tradeOf(p, ask, top);
  } finally {
    stop();
  }
  const rows = p.rowsOf(ask, all, prices);
  if (flags.csv !== undefined) await writeCsv(flags.csv, p.planCsv(rows));
  const { PRESETS } = await import('../core/presets.ts');
  const protect = p.protectText(trade, p.chatPace(ask, PRESETS.chat.contract.limits.tpot as number));
  if (flags.json) {
    const answer = {
      schema: 'goodput.plan/1',
      model: ask.model.name,
      rate: ask.rate,
      traffic: asked.traffic,
      headroom: ask.headroom,
      contract: ask.contract,
      contracts: ask.contracts ?? {},
      basis: ask.profile ? 'profile' : ask.basis,
      engine: ask.engine ?? null,
      method:
        'concurrency capped at the largest batch that meets the pace for the target share of requests; replicas added at the rate one so capped sustains',
      rows,
      excluded,
      trade,
      protect,
      remarks: asked.remarks,
    };
    this.stdout.line(JSON.stringify(answer, null, 2));
  } else {
    const { planLines } = await import('./plan-text.ts');
    for (const line of planLines(asked, { rows, excluded, trade, protect })) this.stdout.line(line);
  }
  if (!rows.some((r) => r.gpus !== null)) this.exit(EXIT.missed);
}

/** More threads than this only take memory. */
const MOST_THREADS = 64;

type PlanRoom = typeof import('../plan/index.ts');

/** What is going to be done and about how long it takes: a closed loop of the first candidate is timed for it. */
function announce(
  cli: Cli,
  p: PlanRoom,
  ask: PlanAsk,
  list: readonly Candidate[],
  finalists: number,
  threads: number,
): void {
  const sample = 200 + 2 * SAMPLE_BATCH;
  // Once to be compiled, once to be timed.
  p.pace(ask, p.replicaOf(ask, list[0] as Candidate), SAMPLE_BATCH);
  const began = performance.now();
  p.pace(ask, p.replicaOf(ask, list[0] as Candidate), SAMPLE_BATCH);
  const each = (performance.now() - began) / sample;
  const confirmed = Math.min(list.length, finalists + new Set(list.map((c) => c.gpu.id)).size - 1);
  const [steer, confirm] = [p.simulatedRequests(ask, 'steer'), p.simulatedRequests(ask, 'confirm')];
  const on = (points: number): number => Math.ceil(points / Math.min(points, threads));
  const time = each * (on(list.length) * steer + on(confirmed) * confirm);
  cli.stderr.line(
    `Plan      ${list.length} operating points, ${confirmed} of them confirmed: about ${Math.round((list.length * steer + confirmed * confirm) / 1000).toLocaleString('en')} thousand simulated requests on ${threads} threads, roughly ${formatDuration(Math.max(1000, Number(time.toPrecision(1))))}`,
  );
}

const SAMPLE_BATCH = 32;

/** Batches beside the cap, for the trade. */
function tradeOf(p: PlanRoom, ask: PlanAsk, top: Evaluated): TradeRow[] {
  const replica = p.replicaOf(ask, top.candidate);
  const most = p.mostSequences(ask, replica);
  const beside = [1, 4, 16, 64, 128, 256, 512].filter((b) => b <= most && (b < 0.8 * top.cap || b > 1.25 * top.cap));
  return p.tradeRows(
    ask,
    replica,
    [...beside, top.cap].sort((a, b) => a - b),
  );
}

async function writeCsv(file: string, csv: string): Promise<void> {
  const { writeFile } = await import('node:fs/promises');
  await writeFile(file, csv).catch((error: unknown) => {
    throw new InputError(`--csv ${oneLine(file)}: cannot be written (${messageOf(error)}); choose another file`);
  });
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
