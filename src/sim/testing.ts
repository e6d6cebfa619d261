/** What the room's tests share: small workloads, step models of known times. No test framework in here. */
import { keyed } from '../base/random.ts';
import type { Millis } from '../base/units.ts';
import type { Offer, RequestSpec, Workload } from '../core/request.ts';
import type { DecodePiece, StepBatch, StepModel } from '../model/step.ts';

export function spec(
  operation: number,
  inputTokens: number,
  outputTokens: number,
  more: Partial<RequestSpec> = {},
): RequestSpec {
  return {
    operation,
    attempt: 0,
    class: 'default',
    inputTokens,
    outputTokens,
    choices: 1,
    stream: true,
    ignoreEos: true,
    ...more,
  };
}

/** A workload of given offers, in order. */
export function listed(offers: readonly Offer[]): Workload {
  let i = 0;
  return { next: () => offers[i++], ended: () => [] };
}

/** Poisson arrivals of `count` requests at `rate` a second, with lengths by `lengths`. */
export function poisson(
  count: number,
  rate: number,
  seed: number,
  lengths: (operation: number, uniform: () => number) => RequestSpec,
): Offer[] {
  const u = keyed(seed, 'test-arrivals');
  const v = keyed(seed, 'test-lengths');
  let at = 0;
  return Array.from({ length: count }, (_, operation) => {
    at += (-Math.log(1 - u()) * 1000) / rate;
    return { at, spec: lengths(operation, v) };
  });
}

/** Each step takes `base + perSequence·decodes + perToken·prefill tokens + perKv·ΣKV` ms. */
export function linearModel(c: {
  base: Millis;
  perSequence?: number;
  perPrefillToken?: number;
  perKv?: number;
}): StepModel {
  const { base, perSequence = 0, perPrefillToken = 0, perKv = 0 } = c;
  return {
    label: 'linear',
    stepMs: (b: StepBatch) =>
      base + perSequence * b.decodeSequences + perPrefillToken * b.prefillTokens + perKv * b.decodeKv,
    decode(sequences: number, kv: number, into: DecodePiece) {
      into.ms = base + perSequence * sequences + perKv * kv;
      into.slope = perKv;
      into.untilKv = Number.POSITIVE_INFINITY;
    },
  };
}
