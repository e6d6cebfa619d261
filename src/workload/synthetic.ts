/** The plain workloads: independent requests of drawn lengths, arriving open-loop, or from a closed loop of slots. */
import { keyed } from '../base/random.ts';
import type { Millis } from '../base/units.ts';
import type { Offer, RequestSpec, Workload } from '../core/request.ts';
import { type ArrivalPlan, arrivals } from './arrivals.ts';
import { drawLength, type LengthPlan } from './lengths.ts';
import { promptText } from './prompts.ts';

/** What each request asks for. */
export interface RequestPlan {
  readonly input: LengthPlan;
  readonly output: LengthPlan;
  readonly choices: number;
  readonly stream: boolean;
  readonly ignoreEos: boolean;
  /** `text`: a prompt of the drawn length, which each dialect puts in its own form; `none`: only lengths (simulation). */
  readonly prompt: 'text' | 'none';
}

export const REQUEST_DEFAULTS: RequestPlan = {
  input: { kind: 'fixed', tokens: 512 },
  output: { kind: 'fixed', tokens: 128 },
  choices: 1,
  stream: true,
  ignoreEos: true,
  prompt: 'text',
};

/** The spec of one operation: a function of (plan, seed, operation) alone. */
export function specOf(plan: RequestPlan, seed: number, operation: number): RequestSpec {
  const inputTokens = drawLength(plan.input, keyed(seed, 'input-length', operation));
  const outputTokens = drawLength(plan.output, keyed(seed, 'output-length', operation));
  const base = {
    operation,
    attempt: 0,
    class: 'default',
    inputTokens,
    outputTokens,
    choices: plan.choices,
    stream: plan.stream,
    ignoreEos: plan.ignoreEos,
  };
  if (plan.prompt === 'none') return base;
  return { ...base, prompt: promptText(inputTokens, seed, operation) };
}

/** An endless open loop: whatever becomes of earlier requests, the next arrives when the process says. */
export function openLoop(requests: RequestPlan, plan: ArrivalPlan, seed: number): Workload {
  const next = arrivals(plan, seed);
  let operation = 0;
  return {
    next: () => ({ at: next(), spec: specOf(requests, seed, operation++) }),
    ended: () => [],
  };
}

/**
 * A closed loop of `concurrency` slots, each offering its next request `think` ms after its last one ended. It slows down
 * with the server, so it cannot show capacity.
 */
export function closedLoop(requests: RequestPlan, concurrency: number, seed: number, think: Millis = 0): Workload {
  let operation = 0;
  const offer = (at: Millis): Offer => ({ at, spec: specOf(requests, seed, operation++) });
  return {
    next: () => (operation < concurrency ? offer(0) : undefined),
    ended: (_operation, t) => [offer(t + think)],
  };
}
