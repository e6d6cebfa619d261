/** `goodput model`: what a full batch of a model on an accelerator does, and the largest batch a TPOT allows. */
import { InputError } from '../base/errors.ts';
import { formatDuration, type Millis, parseDuration, trim } from '../base/units.ts';
import type { BatchRow } from '../model/operating.ts';
import type { LengthPlan } from '../workload/lengths.ts';
import { type Cli, command, JSON_FLAG, text } from './command.ts';
import { basisOf, DEPLOYMENT_FLAGS, type DeploymentFlags, type EngineChoice, engineOf } from './engine-flags.ts';
import { numberFlags } from './load-flags.ts';

interface Flags extends DeploymentFlags {
  readonly context: string;
  readonly output: string;
  readonly tpot?: string;
  readonly batch?: string;
  readonly percentileOf?: 'steps' | 'requests';
  readonly percentile: number;
  readonly maxNumBatchedTokens?: number;
  readonly seed?: number;
  readonly json: boolean;
}

export const model = command({
  func: runModel,
  parameters: {
    flags: {
      ...DEPLOYMENT_FLAGS,
      context: {
        ...text(
          'Tokens each sequence attends to: 2048, or uneven, as uniform:512-8192 (needs --percentile-of)',
          'tokens',
        ),
        optional: false,
        default: '2048',
      },
      output: { ...text('Output tokens of a request', 'tokens'), optional: false, default: '256' },
      tpot: text('Time per output token to meet; none: throughput is all that counts', '10ms'),
      batch: text('Batches to show, as 16,32,64 (default 16,32,64,96,128 and the largest)', 'N,…'),
      percentileOf: {
        kind: 'enum',
        values: ['steps', 'requests'],
        optional: true,
        brief: 'Hold a percentile of TPOT against the limit, over steps or over requests, by simulating the batch',
      },
      percentile: {
        kind: 'parsed',
        parse: numberFlags.positive('percentile'),
        default: '90',
        brief: 'Which percentile',
        placeholder: '90',
      },
      maxNumBatchedTokens: {
        kind: 'parsed',
        parse: numberFlags.whole('max-num-batched-tokens'),
        optional: true,
        brief: 'Tokens in a step at most, in that simulation (default 8192)',
        placeholder: 'N',
      },
      seed: {
        kind: 'parsed',
        parse: numberFlags.whole('seed'),
        optional: true,
        brief: 'Seed of that simulation (default 1)',
        placeholder: 'N',
      },
      json: JSON_FLAG,
    },
  },
  docs: {
    brief: 'Step time, goodput and the largest batch of a model on an accelerator',
    fullDescription:
      'A full batch decodes: its step time, tokens and requests per second, and whether TPOT is met; then the largest\n' +
      'batch that meets it and what keeps it from being larger: TPOT, the KV pool, or compute. By default with step times\n' +
      'calibrated on served measurements, which also says where there are none; with --ideal the closed form.',
  },
});

/** One line of the table. `bound` is what the step waits for. */
export interface ModelRow {
  readonly batch: number;
  readonly step_ms: number;
  readonly tokens_per_s: number;
  readonly meets_tpot: boolean;
  readonly goodput_rps: number;
  readonly bound: 'memory' | 'compute';
  readonly compute_ms: number;
  readonly fits_kv_pool: boolean;
  /** With `--percentile-of`: the percentile that was held against the limit. */
  readonly tpot_percentile_ms?: number;
}

/** Version `goodput.model/1`. Times in ms, GB and MB decimal. */
export interface ModelAnswer {
  readonly schema: 'goodput.model/1';
  readonly model: string;
  readonly gpu: string;
  readonly devices: number;
  readonly tp: number;
  readonly dp: number;
  readonly pp: number;
  readonly weights_dtype: string;
  readonly kv_dtype: string;
  /** `ideal`, or `calibrated (…)`. */
  readonly step: string;
  readonly context: number;
  readonly output: number;
  readonly tpot_ms: number | null;
  readonly percentile: { readonly of: 'steps' | 'requests'; readonly p: number } | null;
  readonly rows: readonly ModelRow[];
  readonly largest_batch: number;
  /** The batch at which TPOT is met exactly, were there enough KV; null without a limit. */
  readonly largest_batch_bound: number | null;
  readonly kv_pool_sequences: number;
  readonly compute_check_ms: number;
  readonly compute_check_batch: number;
  readonly weights_gb: number;
  readonly kv_mb_per_sequence: number;
  readonly bound: 'tpot' | 'kv-pool' | 'compute';
  readonly reserves: { readonly memory_share: number; readonly other_gb: number };
  readonly basis: readonly string[];
  readonly notes: readonly string[];
}

async function runModel(this: Cli, flags: Flags): Promise<void> {
  const choice = await engineOf(flags);
  const answer = await modelAnswer(choice, await askOf(flags));
  if (flags.json) this.stdout.line(JSON.stringify(answer, null, 2));
  else for (const line of await linesOf(choice, answer)) this.stdout.line(line);
}

interface Ask {
  readonly context: LengthPlan;
  readonly contextMean: number;
  readonly output: LengthPlan;
  readonly outputMean: number;
  readonly tpot?: Millis;
  readonly batches?: readonly number[];
  readonly percentile?: { readonly of: 'steps' | 'requests'; readonly p: number };
  readonly budget?: number;
  readonly seed: number;
}

async function askOf(flags: Flags): Promise<Ask> {
  const { parseLength, meanLength } = await import('../workload/lengths.ts');
  const context = parseLength(flags.context, '--context');
  const output = parseLength(flags.output, '--output');
  if ((context.kind !== 'fixed' || output.kind !== 'fixed') && flags.percentileOf === undefined) {
    throw new InputError(
      '--context and --output of uneven lengths have no one step time; add --percentile-of steps or requests, which simulates them',
    );
  }
  if (flags.percentile >= 100)
    throw new InputError(`--percentile ${flags.percentile} is not below 100; write 90 for p90`);
  const tpot = flags.tpot === undefined ? undefined : parseDuration(flags.tpot, '--tpot');
  if (tpot !== undefined && !(tpot > 0)) throw new InputError(`--tpot: '${flags.tpot}' is not above 0; give 10ms, say`);
  return {
    context,
    contextMean: meanLength(context),
    output,
    outputMean: meanLength(output),
    ...(tpot !== undefined && { tpot }),
    ...(flags.batch !== undefined && { batches: batchesOf(flags.batch) }),
    ...(flags.percentileOf && { percentile: { of: flags.percentileOf, p: flags.percentile } }),
    ...(flags.maxNumBatchedTokens !== undefined && { budget: flags.maxNumBatchedTokens }),
    seed: flags.seed ?? 1,
  };
}

const SHOWN = [16, 32, 64, 96, 128];

function batchesOf(list: string): number[] {
  return list.split(',').map((part) => {
    const n = Number(part);
    if (!Number.isSafeInteger(n) || n < 1 || n > 100_000) {
      throw new InputError(`--batch: '${part}' is not a whole number from 1 to 100000; write 16,32,64`);
    }
    return n;
  });
}

/** What of a batch is held against the TPOT limit, and what it then sustains. */
interface Measured {
  readonly tpot: Millis;
  readonly tokensPerSecond: number;
  readonly rps: number;
}

export async function modelAnswer(choice: EngineChoice, ask: Ask): Promise<ModelAnswer> {
  const m = await import('../model/index.ts');
  const { on, step, reserves } = choice;
  const { limitsFor } = await import('../sim/limits.ts');
  limitsFor(on, {}, reserves); // says it when nothing fits
  const pool = m.kvPoolSequences(on, ask.contextMean, reserves);
  if (pool < 1) {
    throw new InputError(
      `${choice.text}: the KV pool does not hold one sequence of ${ask.contextMean} tokens; use a shorter --context, more devices, a smaller precision or a larger accelerator`,
    );
  }
  const measure = ask.percentile ? await simulated(choice, ask) : undefined;
  const rowOf = (batch: number): BatchRow & Partial<Measured> => {
    const row = m.batchRow(
      on,
      step,
      { batch, context: ask.contextMean, output: ask.outputMean, ...(ask.tpot !== undefined && { tpot: ask.tpot }) },
      reserves,
    );
    if (!measure || !row.fitsPool) return row;
    const seen = measure(batch);
    const meetsTpot = ask.tpot === undefined || seen.tpot <= ask.tpot;
    return { ...row, ...seen, meetsTpot, goodput: meetsTpot ? seen.rps : 0 };
  };
  const found = measure
    ? largestMeasured(measure, pool, ask.tpot)
    : largestBound(m.decodeMs, choice, ask, m.largestBatchUnder(on, step, askUnder(ask), reserves));
  const ideal = (batch: number) => m.idealRow(on, batch, ask.contextMean, ask.outputMean).bound;
  const bound = found.bound === 'tpot' && ideal(Math.max(1, found.largest)) === 'compute' ? 'compute' : found.bound;
  const batches = [...new Set(ask.batches ?? [...SHOWN, ...(found.largest > 0 ? [found.largest] : [])])].sort(
    (a, b) => a - b,
  );
  const rows = batches.map((batch) => rowOf(batch));
  const checked = ask.batches ? (batches.at(-1) as number) : Math.max(...SHOWN);
  const computeMs = (2000 * m.activeParams(on.model) * checked) / (m.devicePeak(on) * m.devices(on));
  return {
    schema: 'goodput.model/1',
    model: on.model.name,
    gpu: on.accelerator.id,
    devices: m.devices(on),
    tp: on.tp,
    dp: on.dp,
    pp: on.pp ?? 1,
    weights_dtype: on.weights,
    kv_dtype: on.kv,
    step: step.label,
    context: ask.contextMean,
    output: ask.outputMean,
    tpot_ms: ask.tpot ?? null,
    percentile: ask.percentile ?? null,
    rows: rows.map((r) => ({
      batch: r.batch,
      step_ms: r.stepMs,
      tokens_per_s: r.tokensPerSecond,
      meets_tpot: r.meetsTpot,
      goodput_rps: r.goodput,
      bound: ideal(r.batch),
      compute_ms: r.computeMs,
      fits_kv_pool: r.fitsPool,
      ...(r.tpot !== undefined && { tpot_percentile_ms: r.tpot }),
    })),
    largest_batch: found.largest,
    largest_batch_bound: found.real,
    kv_pool_sequences: pool,
    compute_check_ms: computeMs,
    compute_check_batch: checked,
    weights_gb: m.weightBytes(on.model, on.weights) / 1e9,
    kv_mb_per_sequence: m.kvBytesPerSequence(on.model, ask.contextMean, on.kv) / 1e6,
    bound,
    reserves: { memory_share: reserves.share, other_gb: reserves.other / 1e9 },
    basis: basisOf(choice),
    notes: notesOf(
      { ...found, bound },
      rows.map((r) => r.batch).filter((b) => ideal(b) === 'compute'),
      ask,
      pool,
    ),
  };
}

function askUnder(ask: Ask): { context: number; tpot?: Millis } {
  return { context: ask.contextMean, ...(ask.tpot !== undefined && { tpot: ask.tpot }) };
}

interface Largest {
  readonly largest: number;
  readonly real: number | null;
  readonly bound: 'tpot' | 'kv-pool';
}

/** The whole largest batch with the real-valued one at which the step takes exactly `tpot`. */
function largestBound(
  decodeMs: typeof import('../model/index.ts').decodeMs,
  { step }: EngineChoice,
  ask: Ask,
  under: { readonly largest: number; readonly bound: 'tpot' | 'kv-pool' },
): Largest {
  if (ask.tpot === undefined) return { ...under, real: null };
  const at = (batch: number): Millis => decodeMs(step, batch, ask.contextMean);
  let low = under.largest;
  if (under.bound === 'kv-pool') {
    let high = 2 * low + 1;
    while (at(high) <= ask.tpot && high < 1e7) high *= 2;
    while (high - low > 1) {
      const mid = Math.floor((low + high) / 2);
      if (at(mid) <= ask.tpot) low = mid;
      else high = mid;
    }
  }
  // Between whole batches the step is taken as linear; below one, from the step that reads the weights alone.
  const before = low > 0 ? at(low) : 2 * at(1) - at(2);
  const after = at(low + 1);
  const real = after > before ? low + Math.min(1, Math.max(0, (ask.tpot - before) / (after - before))) : low;
  return { ...under, real };
}

function largestMeasured(measure: (batch: number) => Measured, pool: number, tpot?: Millis): Largest {
  if (tpot === undefined) return { largest: pool, real: null, bound: 'kv-pool' };
  if (measure(pool).tpot <= tpot) return { largest: pool, real: null, bound: 'kv-pool' };
  let low = 0;
  let high = pool;
  while (high - low > 1) {
    const mid = (low + high) >> 1;
    if (measure(mid).tpot <= tpot) low = mid;
    else high = mid;
  }
  return { largest: low, real: null, bound: 'tpot' };
}

async function simulated({ on, step, reserves }: EngineChoice, ask: Ask): Promise<(batch: number) => Measured> {
  const [{ heldBatch, limitsFor }, { lengthDraw }, { quantile }] = await Promise.all([
    import('../sim/index.ts'),
    import('../workload/lengths.ts'),
    import('../stats/quantile.ts'),
  ]);
  const limits = limitsFor(
    on,
    {
      maxLength: Number.POSITIVE_INFINITY,
      ...(ask.budget !== undefined && { maxBatchedTokens: ask.budget, maxSeqs: 1 }),
    },
    reserves,
  );
  const context = lengthDraw(ask.context);
  const output = lengthDraw(ask.output);
  const known = new Map<number, Measured>();
  const { of, p } = ask.percentile as NonNullable<Ask['percentile']>;
  return (batch) => {
    let seen = known.get(batch);
    if (!seen) {
      const spread = heldBatch(step, limits, {
        batch,
        // A sequence's context grows by its output: on average over its life it is what was asked.
        input: (u) => Math.max(1, context(u) - Math.round(ask.outputMean / 2)),
        output,
        seed: ask.seed,
      });
      const tpot = quantile(of === 'steps' ? spread.steps : spread.requests, p / 100) ?? Number.POSITIVE_INFINITY;
      seen = { tpot, tokensPerSecond: spread.tokensPerSecond, rps: spread.rps };
      known.set(batch, seen);
    }
    return seen;
  };
}

function notesOf(
  found: { readonly largest: number; readonly bound: string },
  computeBound: readonly number[],
  ask: Ask,
  pool: number,
): string[] {
  const notes: string[] = [];
  if (ask.tpot === undefined) {
    notes.push(
      `no latency objective: goodput equals throughput, and the largest batch is what the KV pool holds, ${pool} sequences`,
    );
  } else if (found.largest === 0) {
    notes.push(`not even one sequence meets a TPOT of ${formatDuration(ask.tpot)}: no batch has any goodput`);
  } else if (found.bound === 'kv-pool') {
    notes.push(`the KV pool binds, not latency: it holds ${pool} sequences, and all of them meet the TPOT`);
  } else if (found.bound === 'compute') {
    notes.push('compute binds at the largest batch: FLOPs, not bytes, make the step as long as the TPOT');
  } else {
    notes.push('TPOT binds: a larger batch would have more throughput and no goodput');
  }
  if (computeBound.length > 0) {
    notes.push(
      `compute binds the step at batch ${computeBound.join(', ')}: there FLOPs at peak take longer than bytes`,
    );
  }
  if (ask.percentile) {
    notes.push(
      `p${ask.percentile.p} TPOT of ${ask.percentile.of}, prompts computed between the decodes: ${
        ask.percentile.of === 'steps'
          ? 'one value a step and sequence; prefill steps are in its tail'
          : 'one mean a request; a prefill step is averaged over the request'
      }`,
    );
  }
  return notes;
}

async function linesOf(choice: EngineChoice, a: ModelAnswer): Promise<string[]> {
  const { table, wrapText } = await import('../report/text.ts');
  const of = a.percentile ? `p${a.percentile.p} TPOT of ${a.percentile.of}` : undefined;
  const number = (x: number, digits: number): string =>
    x.toLocaleString('en', { maximumFractionDigits: digits, minimumFractionDigits: digits });
  const rows = a.rows.map((r) => [
    String(r.batch),
    number(r.step_ms, 2),
    ...(of ? [r.tpot_percentile_ms === undefined ? '–' : number(r.tpot_percentile_ms, 2)] : []),
    number(r.tokens_per_s, 0),
    r.fits_kv_pool ? (a.tpot_ms === null ? '–' : r.meets_tpot ? 'yes' : 'no') : 'no KV room',
    number(r.goodput_rps, 1),
    r.bound,
  ]);
  const reserve = `${a.reserves.memory_share} of memory less ${a.reserves.other_gb} GB a device`;
  return [
    `${choice.text}, step times ${a.step}`,
    `context ${trim(a.context, 6)} tokens, ${trim(a.output, 6)} output tokens${a.tpot_ms === null ? '' : `, TPOT ≤ ${formatDuration(a.tpot_ms)}`}`,
    '',
    ...table([['batch', 'step ms', ...(of ? [of] : []), 'tokens/s', 'TPOT met', 'requests/s', 'bound'], ...rows]),
    '',
    `largest batch     ${a.largest_batch}${a.largest_batch_bound === null ? '' : ` (TPOT's bound ${number(a.largest_batch_bound, 2)})`}, bound by ${a.bound}`,
    `KV pool           ${a.kv_pool_sequences} sequences (${reserve}; weights ${number(a.weights_gb, 2)} GB, KV ${number(a.kv_mb_per_sequence, 1)} MB a sequence)`,
    `compute check     ${number(a.compute_check_ms, 2)} ms for the FLOPs of batch ${a.compute_check_batch} at peak`,
    '',
    ...[...a.notes, ...a.basis].map((note) => wrapText(note, 100, '- ', '  ')),
  ];
}
