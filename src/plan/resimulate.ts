/** The arrivals and lengths a client saw, simulated: what a fit of step times would have had it see. */
import type { Millis } from '../base/units.ts';
import type { Offer, Workload } from '../core/request.ts';
import type { StepModel } from '../model/step.ts';
import { type Cluster, limitsOf, type SchedulerName, simulate, systemOf } from '../sim/index.ts';
import type { Seen } from './seen.ts';

/** What bounds the batches of the engine that is simulated. */
export interface BatchLimits {
  /** How it puts batches together. Default: continuous batching. */
  readonly scheduler?: SchedulerName;
  readonly maxSeqs: number;
  readonly maxBatchedTokens: number;
  /** Tokens of context the KV pool holds; absent: it is taken to suffice. */
  readonly kvTokens?: number;
}

/** An entry a request, NaN where there is none. Durations from `sent`. */
export interface Resimulated {
  readonly ttft: Float64Array;
  readonly decode: Float64Array;
  readonly maxGap: Float64Array;
}

/** The engine a fit describes: its step times, its batches, and the way to it and back. */
export function engineOf(step: StepModel, entry: Millis, limits: BatchLimits): Cluster {
  return systemOf({
    step,
    limits: limitsOf({
      kvBlocks: limits.kvTokens === undefined ? KV_BLOCKS : Math.ceil(limits.kvTokens / BLOCK_TOKENS),
      maxSeqs: limits.maxSeqs,
      maxBatchedTokens: Math.max(limits.maxSeqs, limits.maxBatchedTokens),
      prefixCaching: false,
    }),
    ...(limits.scheduler && { scheduler: limits.scheduler }),
    frontend: entry,
  });
}

const KV_BLOCKS = 10_000_000;
const BLOCK_TOKENS = 16;

export function resimulate(
  seen: readonly Seen[],
  step: StepModel,
  entry: Millis,
  limits: BatchLimits,
  gaps = false,
): Resimulated {
  const n = seen.length;
  const ttft = new Float64Array(n).fill(Number.NaN);
  const decode = new Float64Array(n).fill(Number.NaN);
  const maxGap = new Float64Array(n).fill(Number.NaN);
  const origin = seen[0]?.sent ?? 0;
  let i = 0;
  const workload: Workload = {
    next(): Offer | undefined {
      const s = seen[i];
      if (!s) return undefined;
      return {
        at: s.sent - origin,
        spec: {
          operation: i++,
          attempt: 0,
          class: 'default',
          inputTokens: s.input,
          outputTokens: s.output,
          choices: 1,
          stream: true,
          ignoreEos: true,
        },
      };
    },
    ended: () => [],
  };
  simulate(workload, engineOf(step, entry, limits), ({ spec, scheduled, finished: f }) => {
    if (!f) return;
    const k = spec.operation;
    ttft[k] = f.firstToken - scheduled;
    if (f.generated < 2) return;
    decode[k] = f.lastToken - f.firstToken;
    if (!gaps) return;
    const times = f.tokenTimes();
    let most = 0;
    for (let j = 1; j < f.generated; j++) most = Math.max(most, times[j]! - times[j - 1]!);
    maxGap[k] = most;
  });
  return { ttft, decode, maxGap };
}
