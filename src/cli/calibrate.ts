/** `goodput calibrate`: fits step time to a client's own records, or runs the measurement made for it first. */
import { InputError, oneLine } from '../base/errors.ts';
import { trim } from '../base/units.ts';
import type { CalibrationRun } from '../plan/calibrate.ts';
import type { Profile } from '../plan/profile.ts';
import { type Cli, command, JSON_FLAG } from './command.ts';
import { numberFlags } from './load-flags.ts';
import { TARGET_FLAGS, type TargetFlags } from './target.ts';

export interface CalibrateFlags extends TargetFlags {
  readonly collect?: string;
  readonly output: string;
  readonly name?: string;
  readonly maxBatch?: number;
  readonly prompts?: string;
  readonly heldTokens?: number;
  readonly rounds?: number;
  readonly maxTime: string;
  readonly maxNumSeqs?: number;
  readonly maxNumBatchedTokens?: number;
  readonly oneReplica: boolean;
  readonly seed: number;
  readonly out: string;
  readonly yes: boolean;
  readonly json: boolean;
}

const whole = (flag: string, brief: string) =>
  ({ kind: 'parsed', parse: numberFlags.whole(flag), optional: true, brief, placeholder: 'N' }) as const;
const wholeOr = (flag: string, value: string, brief: string) =>
  ({ kind: 'parsed', parse: numberFlags.whole(flag), default: value, brief, placeholder: 'N' }) as const;
const given = (brief: string, placeholder: string) =>
  ({ kind: 'parsed', parse: String, optional: true, brief, placeholder }) as const;
const textOr = (value: string, brief: string, placeholder: string) =>
  ({ kind: 'parsed', parse: String, default: value, brief, placeholder }) as const;

export const calibrate = command({
  func: runCalibrate,
  parameters: {
    flags: {
      collect: given('Measure this endpoint by design, then fit', 'URL'),
      output: textOr('profile.yaml', 'Where the profile goes', 'FILE'),
      name: given('Name of the profile', 'name'),
      maxBatch: whole('max-batch', 'Largest batch to hold (default 32): what the server runs at once'),
      prompts: given('Shortest and longest prompt of the measurement (default 32-1024)', 'LOW-HIGH'),
      heldTokens: whole('held-tokens', 'Tokens each held sequence generates (default 48)'),
      rounds: whole('rounds', 'How often the whole design is run (default 3)'),
      maxTime: textOr('5m', 'No request is sent after this', '5m'),
      maxNumSeqs: whole('max-num-seqs', "The server's batch limit, when it is not to be seen in the runs"),
      maxNumBatchedTokens: whole(
        'max-num-batched-tokens',
        "The server's prompt tokens a step (default: 8192, or what the runs show)",
      ),
      oneReplica: {
        kind: 'boolean',
        default: false,
        brief: 'One replica answered, though its streams do not go in step: fit whole requests',
      },
      seed: wholeOr('seed', '1', 'Seed of prompts and resampling'),
      out: textOr('runs', 'Folder for run folders', 'DIR'),
      ...TARGET_FLAGS,
      yes: { kind: 'boolean', default: false, brief: 'Do not ask before a large plan off loopback' },
      json: JSON_FLAG,
    },
    aliases: { o: 'output', y: 'yes' },
    positional: {
      kind: 'array',
      parameter: {
        brief: 'Run folder of a client that was the only load on one replica',
        parse: String,
        placeholder: 'RUN',
      },
    },
  },
  docs: {
    brief: "Fit an engine's step time to your own measurements",
    fullDescription:
      'goodput calibrate RUN… fits run folders of bench: one client, one replica, no other load, a token a chunk.\n' +
      'goodput calibrate --collect URL measures by design first: lone prompts at six lengths, batches held from 1 to the\n' +
      'largest at short and long contexts, prompts sent into steady decoding, all prompts different.\n' +
      'The profile goes to --output, for plan --profile. Exit codes: 0 fitted, 2 bad input, 3 not measurable.',
  },
});

async function runCalibrate(this: Cli, flags: CalibrateFlags, ...runs: string[]): Promise<void> {
  if (flags.collect === undefined && runs.length === 0) {
    throw new InputError('calibrate: nothing to fit; give run folders, or --collect URL to measure now');
  }
  const folders = [...runs];
  if (flags.collect !== undefined) {
    const { collect } = await import('./calibrate-collect.ts');
    folders.push(await collect(this, flags, flags.collect));
  }
  const { calibrate: calibrated, profileText } = await import('../plan/index.ts');
  const read: CalibrationRun[] = [];
  for (const folder of folders) read.push(await readRun(folder));
  const { profile } = calibrated(read, {
    name: flags.name ?? nameOf(read),
    budget: flags.maxNumBatchedTokens ?? DEFAULT_BUDGET,
    budgetGiven: flags.maxNumBatchedTokens !== undefined,
    oneReplica: flags.oneReplica,
    seed: flags.seed,
    ...(flags.maxNumSeqs !== undefined && { maxSeqs: flags.maxNumSeqs }),
  });
  const { writeFileSync } = await import('node:fs');
  try {
    writeFileSync(flags.output, profileText(profile));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new InputError(`--output ${oneLine(flags.output)}: cannot be written (${code}); choose another file`);
  }
  if (flags.json) this.stdout.line(JSON.stringify(profile, null, 2));
  else for (const line of profileLines(profile)) this.stdout.line(line);
  this.stderr.line(`Profile: ${flags.output}`);
}

/** vLLM's for an API server. */
const DEFAULT_BUDGET = 8192;

/** A run folder's receipts. */
async function readRun(folder: string): Promise<CalibrationRun> {
  const [{ openRun }, { ReceiptReader }, { SeenReader }] = await Promise.all([
    import('../store/index.ts'),
    import('../plan/index.ts'),
    import('../plan/seen.ts'),
  ]);
  const run = await openRun(folder, { wallNow: Date.now() });
  const reader = new ReceiptReader();
  const whole = new SeenReader();
  try {
    await run.records((record) => {
      reader.add(record);
      whole.add(record);
    });
  } finally {
    run.close();
  }
  return { name: folder, receipts: reader.finish(), seen: whole.finish(), target: run.meta.target };
}

function nameOf(runs: readonly CalibrationRun[]): string {
  const model = runs[0]?.target.model;
  return typeof model === 'string' ? oneLine(model, 80) : 'profile';
}

export function profileLines(p: Profile): string[] {
  const percent = (x: number | null): string => (x === null ? '–' : `${trim(100 * x, 2)} %`);
  const { fit, range } = p;
  const lines = [
    `Profile '${p.name}': step time as ${p.form === 'sum' ? 'a sum of its parts' : 'the longer of reading and computing'}`,
  ];
  for (const [name, e] of Object.entries(p.coefficients)) {
    const span = `[${trim(e.low, 4)}, ${trim(e.high, 4)}]`;
    lines.push(`  ${name.padEnd(15)} ${trim(e.value, 4).padStart(9)}  ${span.padEnd(20)} ${e.unit ?? ''}`);
  }
  lines.push(
    `Condition number ${trim(fit.condition, 3)}; ${fit.observations.decode} decode steps, ${fit.observations.prefill} stretches with prefill, ${fit.observations.lone} lone prompts, ${fit.blocks} blocks of time`,
    'Median error        decode  prefill  lone prompt  mean over typical',
  );
  const row = (label: string, e: Profile['fit']['fitted']): string =>
    `  ${label.padEnd(16)} ${percent(e.decode).padStart(7)} ${percent(e.prefill).padStart(8)} ${percent(e.lone).padStart(12)} ${percent(e.bias).padStart(18)}`;
  lines.push(row('held out', fit.held_out), row('fitted', fit.fitted));
  if (fit.held_out_run) lines.push(row('the last run', fit.held_out_run));
  if (fit.replayed) {
    const { requests, ttft, tpot, e2e } = fit.replayed;
    const pair = (name: string, m: { measured: number; simulated: number }): string =>
      `${name} ${trim(m.measured, 4)} → ${trim(m.simulated, 4)} ms`;
    lines.push(
      `Its own arrivals simulated (${requests} requests, measured → simulated means): ${pair('TTFT', ttft)}, ${pair('TPOT', tpot)}, ${pair('E2E', e2e)}`,
    );
  }
  lines.push(
    `Seen: batches of ${range.sequences.join(' to ')}, contexts of ${range.context.join(' to ')}, prompts of ${range.prompt.join(' to ')} tokens; batch limit ${p.limits.max_seqs ?? 'unknown'} (${p.limits.max_seqs_from}), ${p.limits.max_batched_tokens} tokens a step (${p.limits.max_batched_tokens_from ?? 'given'})${p.limits.kv_tokens ? `, KV for ${p.limits.kv_tokens} tokens (seen)` : ''}${p.limits.scheduler ? `, ${p.limits.scheduler} batching` : ''}`,
  );
  for (const s of p.unseparated) lines.push(`Not separated: ${s}.`);
  for (const s of p.remarks) lines.push(`Note: ${s}.`);
  return lines;
}
