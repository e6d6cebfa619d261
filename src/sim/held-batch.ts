/**
 * A batch held at a size: as one request ends the next begins, so prompts are computed between the decodes and contexts
 * are uneven, as in service. What a closed formula for a step cannot give: the spread of steps, and that of requests.
 */
import { keyedSource, type Uniform } from '../base/random.ts';
import type { Millis, PerSecond } from '../base/units.ts';
import type { Offer, Workload } from '../core/request.ts';
import type { StepModel } from '../model/step.ts';
import { sortedCopy } from '../stats/quantile.ts';
import { ContinuousReplica } from './continuous.ts';
import type { ReplicaLimits } from './limits.ts';
import { simulate } from './simulate.ts';

export interface HeldBatch {
  readonly batch: number;
  /** Prompt and output tokens of a request. */
  readonly input: (u: Uniform) => number;
  readonly output: (u: Uniform) => number;
  readonly seed: number;
}

export interface HeldSpread {
  /** Ascending: gaps between a request's tokens (a step as each of its sequences saw it), and requests' TPOT. */
  readonly steps: Float64Array;
  readonly requests: Float64Array;
  /** Requests that ended a second, between the first round's end and the last request's start. */
  readonly rps: PerSecond;
  readonly tokensPerSecond: PerSecond;
}

/** Rounds of the batch that are served, the first of which is not counted: it starts all at once. */
const ROUNDS = 6;

/** Gaps kept at most; beyond it every so many-th is. */
const MOST_STEPS = 1_000_000;

export function heldBatch(step: StepModel, limits: ReplicaLimits, held: HeldBatch): HeldSpread {
  const { batch, seed } = held;
  const inputs = keyedSource(seed, 'held-input');
  const outputs = keyedSource(seed, 'held-output');
  const jitter = keyedSource(seed, 'held-start');
  const total = Math.max(40, ROUNDS * batch);
  let next = 0;
  const offer = (at: Millis): Offer => {
    const operation = next++;
    const output = Math.max(2, held.output(outputs(operation)));
    // The first round is cut short by a random part, so that requests are at all stages from the start.
    const left = operation < batch ? Math.max(2, Math.ceil(output * jitter(operation)())) : output;
    return {
      at,
      spec: {
        operation,
        attempt: 0,
        class: 'default',
        inputTokens: Math.max(1, held.input(inputs(operation)) + output - left),
        outputTokens: left,
        choices: 1,
        stream: true,
        ignoreEos: true,
      },
    };
  };
  const workload: Workload = {
    next: () => (next < batch ? offer(0) : undefined),
    ended: (_, t) => (next < total + batch ? [offer(t)] : []),
  };
  const stride = Math.max(1, Math.ceil((total * held.output(outputs(0))) / MOST_STEPS));
  const steps: number[] = [];
  const requests: number[] = [];
  let from: Millis = Number.NaN;
  let to: Millis = 0;
  let tokens = 0;
  let counted = 0;
  let ended = 0;
  const replica = new ContinuousReplica(step, {
    ...limits,
    maxSeqs: batch,
    maxBatchedTokens: Math.max(batch, limits.maxBatchedTokens),
  });
  simulate(workload, replica, ({ spec, finished: f, ended: at }) => {
    if (!f) return false;
    ended++;
    if (ended === batch) from = at;
    if (ended > batch) {
      to = at;
      tokens += f.generated;
      counted++;
    }
    if (spec.operation >= batch && f.generated > 1) {
      requests.push((f.lastToken - f.firstToken) / (f.generated - 1));
      const times = f.tokenTimes();
      for (let i = 1 + (spec.operation % stride); i < f.generated; i += stride) steps.push(times[i]! - times[i - 1]!);
    }
    return ended >= total;
  });
  const seconds = (to - from) / 1000;
  return {
    steps: sortedCopy(steps),
    requests: sortedCopy(requests),
    rps: seconds > 0 ? counted / seconds : 0,
    tokensPerSecond: seconds > 0 ? tokens / seconds : 0,
  };
}
