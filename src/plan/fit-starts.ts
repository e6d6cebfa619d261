/** Where a fit to whole requests begins, and how large a little of each coefficient is: from what the requests look like. */
import { FORMS, type Form, type Values } from './form.ts';
import { Normal, nonNegative } from './least-squares.ts';
import type { Seen } from './seen.ts';

export function contextOf(seen: readonly Seen[]): number {
  let tokens = 0;
  let sum = 0;
  for (const s of seen) {
    tokens += s.output;
    sum += s.output * (s.input + s.output / 2);
  }
  return sum / Math.max(1, tokens);
}

/** A little of each coefficient: what changes a typical request by a few percent. */
export function scalesOf(form: Form, seen: readonly Seen[]): Float64Array {
  const { tpot, ttft, input } = typical(seen);
  const context = contextOf(seen) / 1000;
  const of: Record<string, number> = {
    step: tpot,
    sequence: tpot / 4,
    kv: tpot / Math.max(0.05, context) / 4,
    prefill_step: ttft / 4,
    prefill_token: ttft / (input / 1000),
    prefill_square: ttft / (input ** 2 / 1e6),
    work_step: tpot,
    work_token: ttft / (input / 1000),
    work_square: ttft / (input ** 2 / 1e6),
    entry: ttft,
  };
  return Float64Array.from(form.columns, (name) => 0.02 * (of[name] ?? 1));
}

function typical(seen: readonly Seen[]): { tpot: number; ttft: number; input: number } {
  const low = (values: number[]): number => {
    const sorted = values.sort((a, b) => a - b);
    return sorted[Math.floor(sorted.length / 5)] ?? 1;
  };
  return {
    tpot: Math.max(0.01, low(seen.flatMap((s) => (s.tpot === undefined ? [] : [s.tpot])))),
    ttft: Math.max(0.05, low(seen.map((s) => s.ttft))),
    input: Math.max(1, low(seen.map((s) => s.input))),
  };
}

/**
 * Beginnings: a step as long as the quickest tokens, and the prompt's cost from the quickest first tokens of prompts of like
 * length, which waited least.
 */
export function startsOf(seen: readonly Seen[]): Values[] {
  const { tpot } = typical(seen);
  const line = new Normal(3);
  const byInput = [...seen].sort((a, b) => a.input - b.input);
  const size = Math.max(5, Math.ceil(byInput.length / 12));
  for (let i = 0; i < byInput.length; i += size) {
    const bin = byInput.slice(i, i + size).sort((a, b) => a.ttft / a.input - b.ttft / b.input);
    const quick = bin[Math.floor(bin.length / 10)]!;
    const x = quick.input / 1000;
    line.add([1, x, x * x], quick.ttft, 1 / Math.max(1, quick.ttft) ** 2);
  }
  const [base = 0, token = 0, square = 0] = nonNegative(line);
  const waits = Math.max(0, base - tpot);
  return [0.95, 0.5].map((share) => ({
    step: share * tpot,
    sequence: 0.05 * (1 - share) * tpot,
    kv: 0,
    prefill_step: 0,
    prefill_token: token,
    prefill_square: square,
    entry: waits,
  }));
}

export function sumStart(values: Values): Float64Array {
  const sum: Values = {
    ...values,
    prefill_token: values.prefill_token ?? values.work_token ?? 0,
    prefill_square: values.prefill_square ?? values.work_square ?? 0,
  };
  return Float64Array.from(FORMS.sum.columns, (name) => sum[name] ?? 0);
}

export function maxStart(sum: Float64Array): Float64Array {
  const at = (name: (typeof FORMS.sum.columns)[number]): number => sum[FORMS.sum.columns.indexOf(name)]!;
  const values: Values = {
    step: at('step'),
    sequence: at('sequence'),
    kv: at('kv'),
    work_step: 0.3 * at('step'),
    work_token: at('prefill_token') * 1.1,
    work_square: at('prefill_square'),
    entry: at('entry'),
  };
  return Float64Array.from(FORMS.max.columns, (name) => values[name] ?? 0);
}
