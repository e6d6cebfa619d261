/** The forms a step's time may take, as sums of few coefficients, and which columns of data each coefficient has. */
import type { Observation } from './observations.ts';

/** Coefficients by name. Times in ms: a step, a sequence, 1,000 tokens of KV, … */
export const COEFFICIENTS = {
  step: { unit: 'ms a step', means: 'weights read, launches, scheduling: whatever a step costs that is not below' },
  sequence: { unit: 'ms a decoding sequence', means: 'sampling, scheduling and sending of one more sequence' },
  kv: { unit: 'ms per 1,000 tokens of context', means: 'reading the KV cache' },
  prefill_step: { unit: 'ms a step with prefill', means: 'what a step costs more when it holds prompt tokens' },
  prefill_token: { unit: 'ms per 1,000 prompt tokens', means: 'linear layers over prompt tokens' },
  prefill_square: { unit: 'ms per 10^6 (F² − p²)', means: 'attention of a prompt from p to F over itself' },
  work_step: { unit: 'ms a step', means: 'the other bound: computing, or the host, whichever it is' },
  work_token: { unit: 'ms per 1,000 tokens', means: 'the other bound: each token of the step, decoded or of a prompt' },
  work_square: { unit: 'ms per 10^6 (F² − p²)', means: 'the other bound: attention of a prompt over itself' },
  entry: { unit: 'ms a request', means: 'from sending to the queue and from the first token back to the client' },
} as const;

export type CoefficientName = keyof typeof COEFFICIENTS;

/** `sum`: everything adds. `max`: the longer of what reads memory and what computes (or schedules). */
export type FormName = 'sum' | 'max';

export interface Form {
  readonly name: FormName;
  readonly columns: readonly CoefficientName[];
  /** Which columns are given up first when the data cannot tell some apart. */
  readonly giveUp: readonly CoefficientName[];
}

export const FORMS: Readonly<Record<FormName, Form>> = {
  sum: {
    name: 'sum',
    columns: ['step', 'sequence', 'kv', 'prefill_step', 'prefill_token', 'prefill_square', 'entry'],
    giveUp: ['prefill_square', 'prefill_step', 'sequence', 'kv', 'entry', 'prefill_token', 'step'],
  },
  max: {
    name: 'max',
    columns: ['step', 'sequence', 'kv', 'work_step', 'work_token', 'work_square', 'entry'],
    giveUp: ['work_square', 'work_step', 'sequence', 'kv', 'entry', 'work_token', 'step'],
  },
};

/** Which of the two bounds an observation is under: always 0 in a sum. */
export type Side = 0 | 1;

/** Fills `x` with the observation's columns under `form`. */
export function columnsOf(form: Form, o: Observation, side: Side, x: Float64Array): void {
  x.fill(0);
  if (form.name === 'sum') {
    x[0] = o.steps;
    x[1] = o.sequences;
    x[2] = o.kv / 1000;
    x[3] = o.prefillSteps;
    x[4] = o.prefillTokens / 1000;
    x[5] = o.prefillSquares / 1e6;
  } else if (side === 0) {
    x[0] = o.steps;
    x[1] = o.sequences;
    x[2] = o.kv / 1000;
  } else {
    // Only the steps with prompt tokens are bound by work; those of a stretch before them read memory.
    const bound = o.prefillTokens > 0 ? o.prefillSteps / o.steps : 1;
    x[0] = o.steps * (1 - bound);
    x[1] = o.sequences * (1 - bound);
    x[2] = (o.kv * (1 - bound)) / 1000;
    x[3] = o.steps * bound;
    x[4] = (o.sequences * bound + o.prefillTokens) / 1000;
    x[5] = o.prefillSquares / 1e6;
  }
  x[6] = o.entry;
}

export type Values = Readonly<Partial<Record<CoefficientName, number>>>;

/** Predicted duration of an observation, ms. */
export function predicted(form: FormName, v: Values, o: Observation): number {
  const entry = (v.entry ?? 0) * o.entry;
  const memory = (v.step ?? 0) * o.steps + (v.sequence ?? 0) * o.sequences + ((v.kv ?? 0) * o.kv) / 1000;
  if (form === 'sum') {
    return (
      entry +
      memory +
      (v.prefill_step ?? 0) * o.prefillSteps +
      ((v.prefill_token ?? 0) * o.prefillTokens) / 1000 +
      ((v.prefill_square ?? 0) * o.prefillSquares) / 1e6
    );
  }
  const bound = o.prefillTokens > 0 ? o.prefillSteps / o.steps : 1;
  const work =
    memory * (1 - bound) +
    (v.work_step ?? 0) * o.steps * bound +
    ((v.work_token ?? 0) * (o.sequences * bound + o.prefillTokens)) / 1000 +
    ((v.work_square ?? 0) * o.prefillSquares) / 1e6;
  return entry + Math.max(memory, work);
}
