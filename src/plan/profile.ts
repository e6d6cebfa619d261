/**
 * A profile: what was fitted to somebody's own measurements, with the range it was seen in. YAML on disk; docs/calibrate.md
 * is its reference.
 */
import { parse, stringify } from 'yaml';
import { z } from 'zod';
import { InputError, messageOf, oneLine } from '../base/errors.ts';
import { SCHEDULERS, type SchedulerName } from '../sim/build.ts';
import type { Fit } from './fit.ts';
import type { FitError } from './fit-error.ts';
import { COEFFICIENTS, type CoefficientName, type Values } from './form.ts';
import type { Observed } from './observations.ts';
import { mostDecoding, type Seen } from './seen.ts';

export const PROFILE_SCHEMA = 'goodput.profile/1';

const amount = z.number().finite().nonnegative();
const share = z.number().finite().nullable();
const range = z.tuple([amount, amount]);
const means = z.object({ measured: amount, simulated: amount });
const error = z.object({ decode: share, prefill: share, lone: share, bias: share, observations: amount });

const profileShape = z.object({
  schema: z.literal(PROFILE_SCHEMA),
  name: z.string(),
  /** Where it was measured: address, model, software, as the runs say. */
  target: z.record(z.string(), z.unknown()),
  runs: z.array(z.string()),
  form: z.enum(['sum', 'max']),
  coefficients: z.partialRecord(
    z.enum(Object.keys(COEFFICIENTS) as [CoefficientName, ...CoefficientName[]]),
    z.object({ value: amount, low: amount, high: amount, unit: z.string().optional() }),
  ),
  unseparated: z.array(z.string()),
  /** Mean over typical step time: 1, or more where steps stall. */
  stall_factor: z.number().finite().min(1),
  range: z.object({ sequences: range, context: range, prompt: range }),
  limits: z.object({
    max_seqs: z.number().int().positive().nullable(),
    max_seqs_from: z.enum(['seen', 'given', 'default']),
    max_batched_tokens: z.number().int().positive(),
    max_batched_tokens_from: z.enum(['seen', 'given', 'default']).optional(),
    /** Tokens of context the KV pool held, where requests were seen to wait for it. */
    kv_tokens: z.number().int().positive().optional(),
    /** How batches are put together, where it is not continuous batching: docs/simulator.md. */
    scheduler: z.enum(SCHEDULERS).optional(),
  }),
  fit: z.object({
    condition: z.number(),
    blocks: amount,
    observations: z.object({ decode: amount, prefill: amount, lone: amount }),
    together: z.number(),
    fitted: error,
    held_out: error,
    held_out_run: error.nullable(),
    other_form: z.object({ form: z.enum(['sum', 'max']), error: z.number() }).nullable(),
    /** What it was fitted to; absent in profiles from before there was a choice: `steps`. */
    method: z.enum(['steps', 'steps and requests', 'requests']).optional(),
    /** The runs' own arrivals simulated with it: means, ms. */
    replayed: z.object({ requests: amount, ttft: means, tpot: means, e2e: means }).optional(),
  }),
  remarks: z.array(z.string()),
});

export type Profile = z.infer<typeof profileShape>;

/** The coefficients' values alone. */
export function valuesOfProfile(p: Pick<Profile, 'coefficients'>): Values {
  return Object.fromEntries(Object.entries(p.coefficients).map(([name, e]) => [name, e.value])) as Values;
}

export interface ProfileFacts {
  readonly name: string;
  readonly target: Readonly<Record<string, unknown>>;
  readonly runs: readonly string[];
  readonly maxSeqs: number | undefined;
  /** The limit, where the runs show it. */
  readonly seenMaxSeqs: number | undefined;
  readonly budget: number;
  readonly budgetFrom: 'seen' | 'given' | 'default';
  readonly kvTokens: number | undefined;
  readonly scheduler: SchedulerName | undefined;
  readonly method: 'steps' | 'steps and requests' | 'requests';
  readonly seen: readonly Seen[];
  readonly heldOutRun: FitError | undefined;
  readonly remarks: readonly string[];
}

export function profileOf(fit: Fit, observed: Observed | undefined, facts: ProfileFacts): Profile {
  const seen = facts.seenMaxSeqs;
  return {
    schema: PROFILE_SCHEMA,
    name: facts.name,
    target: { ...facts.target },
    runs: [...facts.runs],
    form: fit.form,
    coefficients: Object.fromEntries(
      Object.entries(fit.coefficients).map(([name, e]) => [
        name,
        {
          value: tidy(e.value),
          low: tidy(e.low),
          high: tidy(e.high),
          unit: COEFFICIENTS[name as CoefficientName].unit,
        },
      ]),
    ),
    unseparated: [...fit.unseparated],
    stall_factor: tidy(fit.stallFactor),
    range: observed ? rangeOf(observed) : rangeOfSeen(facts.seen),
    limits: {
      max_seqs: seen ?? facts.maxSeqs ?? null,
      max_seqs_from: seen !== undefined ? 'seen' : facts.maxSeqs !== undefined ? 'given' : 'default',
      max_batched_tokens: facts.budget,
      max_batched_tokens_from: facts.budgetFrom,
      ...(facts.kvTokens !== undefined && { kv_tokens: facts.kvTokens }),
      ...(facts.scheduler !== undefined && { scheduler: facts.scheduler }),
    },
    fit: {
      condition: tidy(fit.condition),
      blocks: fit.blocks,
      observations: { ...fit.observations },
      together: tidy(observed?.together ?? 0),
      fitted: tidyError(fit.fitted),
      held_out: tidyError(fit.heldOut),
      held_out_run: facts.heldOutRun ? tidyError(facts.heldOutRun) : null,
      other_form: fit.otherForm && { form: fit.otherForm.form, error: tidy(fit.otherForm.error) },
      method: facts.method,
    },
    remarks: [...facts.remarks],
  };
}

const HEAD = `# A step-time profile, fitted by 'goodput calibrate' to one client's own records. Times in ms.
# Use it with --profile. It holds for this model, this hardware, this precision and parallelism, inside 'range'.
`;

export function profileText(profile: Profile): string {
  return HEAD + stringify(profile, { lineWidth: 120 });
}

function rangeOf(observed: Observed): Profile['range'] {
  const batches = observed.observations.map((o) => o.sequences / o.steps).filter((b) => b > 0);
  const prompts = observed.observations.filter((o) => o.prefillTokens > 0).map((o) => o.prefillTokens);
  return {
    sequences: [Math.floor(Math.min(...spanOf(batches))), Math.ceil(Math.max(...spanOf(batches)))],
    context: [observed.context[0], observed.context[1]],
    prompt: spanOf(prompts),
  };
}

function rangeOfSeen(seen: readonly Seen[]): Profile['range'] {
  const [shortest, longest] = spanOf(seen.map((s) => s.input));
  const end = seen.reduce((most, s) => Math.max(most, s.input + s.output), 0);
  return { sequences: [1, mostDecoding(seen)], context: [shortest, end], prompt: [shortest, longest] };
}

/** @param where the file's name, for errors. @throws InputError */
export function parseProfile(text: string, where: string): Profile {
  let value: unknown;
  try {
    value = parse(text, { maxAliasCount: 10 });
  } catch (e) {
    throw new InputError(
      `${oneLine(where)}: is not YAML (${oneLine(messageOf(e), 120)}); make it with goodput calibrate`,
    );
  }
  const schema = (value as { schema?: unknown } | null)?.schema;
  if (schema !== PROFILE_SCHEMA) {
    throw new InputError(
      `${oneLine(where)}: its schema is ${schema === undefined ? 'missing' : `'${oneLine(String(schema), 60)}'`}, not ${PROFILE_SCHEMA}; make it with goodput calibrate`,
    );
  }
  const read = profileShape.safeParse(value);
  if (!read.success) {
    const issue = read.error.issues[0];
    throw new InputError(
      `${oneLine(where)}: ${oneLine(issue?.path.join('.') || 'the profile', 80)}: ${oneLine(issue?.message ?? 'is not valid', 120)}; make it again with goodput calibrate`,
    );
  }
  return read.data;
}

const tidy = (x: number): number => Number(x.toPrecision(6));

function tidyError(e: FitError): FitError {
  const t = (x: number | null): number | null => (x === null ? null : tidy(x));
  return { decode: t(e.decode), prefill: t(e.prefill), lone: t(e.lone), bias: t(e.bias), observations: e.observations };
}

function spanOf(values: readonly number[]): [number, number] {
  let low = Number.POSITIVE_INFINITY;
  let high = 0;
  for (const v of values) {
    low = Math.min(low, v);
    high = Math.max(high, v);
  }
  return [Number.isFinite(low) ? low : 0, high];
}
