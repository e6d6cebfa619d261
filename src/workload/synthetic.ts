/** The plain workloads: independent requests of drawn lengths, arriving open-loop, or from a closed loop of slots. */
import { keyedSource } from '../base/random.ts';
import type { Millis } from '../base/units.ts';
import type { Offer, RequestSpec, Workload } from '../core/request.ts';
import { type ArrivalPlan, arrivals } from './arrivals.ts';
import { type LengthPlan, lengthDraw } from './lengths.ts';
import { PLAIN_TEXT, type TextPlan, textSource } from './prompts.ts';

/** What each request asks for. */
export interface RequestPlan {
  readonly input: LengthPlan;
  readonly output: LengthPlan;
  readonly choices: number;
  readonly stream: boolean;
  readonly ignoreEos: boolean;
  /** `text`: a prompt of the drawn length, which each dialect puts in its own form; `none`: only lengths (simulation). */
  readonly prompt: 'text' | 'none';
  /** How texts are made; by the seed alone when absent. */
  readonly text?: TextPlan;
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
  return specSource(plan, seed)(operation);
}

/** The same for many operations, at a million a second. */
export function specSource(plan: RequestPlan, seed: number): (operation: number) => RequestSpec {
  const { choices, stream, ignoreEos } = plan;
  const input = lengthDraw(plan.input);
  const output = lengthDraw(plan.output);
  const inputs = keyedSource(seed, 'input-length');
  const outputs = keyedSource(seed, 'output-length');
  const bare = (operation: number): RequestSpec => ({
    operation,
    attempt: 0,
    class: 'default',
    inputTokens: input(inputs(operation)),
    outputTokens: output(outputs(operation)),
    choices,
    stream,
    ignoreEos,
  });
  if (plan.prompt === 'none') return bare;
  const source = textSource(seed, plan.text ?? PLAIN_TEXT);
  return (operation) => {
    const spec = bare(operation);
    const tokens = Math.max(1, spec.inputTokens - source.plan.overhead);
    return { ...spec, prompt: source.text([{ purpose: 'prompt', key: operation, tokens }]) };
  };
}

/** An endless open loop: whatever becomes of earlier requests, the next arrives when the process says. */
export function openLoop(requests: RequestPlan, plan: ArrivalPlan, seed: number): Workload {
  const next = arrivals(plan, seed);
  const spec = specSource(requests, seed);
  let operation = 0;
  return {
    next: () => ({ at: next(), spec: spec(operation++) }),
    ended: () => [],
  };
}

/**
 * A closed loop of `concurrency` slots, each offering its next request `think` ms after its last one ended. It slows down
 * with the server, so it cannot show capacity.
 */
export function closedLoop(requests: RequestPlan, concurrency: number, seed: number, think: Millis = 0): Workload {
  const spec = specSource(requests, seed);
  let operation = 0;
  const offer = (at: Millis): Offer => ({ at, spec: spec(operation++) });
  return {
    next: () => (operation < concurrency ? offer(0) : undefined),
    ended: (_operation, t) => [offer(t + think)],
  };
}
