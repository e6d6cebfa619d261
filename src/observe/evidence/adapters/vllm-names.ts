/**
 * The names vLLM gave its metrics and others took over, LMDeploy and TensorRT-LLM among them. What a name means is the
 * engine's own: where its clock starts, when it is recorded, which requests leave no sample.
 */
import type { Mapped } from '../adapter.ts';

export const FINISH = 'when the request finishes';

export interface Phases {
  /** Where TTFT and E2E start. */
  readonly arrival: string;
  /** Where the queue begins. */
  readonly queued: string;
  /** Requests without a sample. */
  readonly misses?: string;
  /** Of TTFT, where it differs from what is recorded at the finish. */
  readonly ttft?: { readonly recorded: string; readonly misses?: string };
}

/** Queue, prefill, decode, inference, TTFT and E2E: one observation a request each. */
export function phases({ arrival, queued, misses, ttft }: Phases): Mapped[] {
  const row = (concept: Mapped['concept'], clock: string, ...names: string[]): Mapped => ({
    concept,
    names,
    clock,
    observation: 'a request',
    recorded: FINISH,
    unit: 'seconds',
    ...(misses !== undefined && { misses }),
  });
  return [
    row('queue', `${queued}, to its first schedule`, 'request_queue_time_seconds'),
    row('prefill', 'first schedule, to the first token', 'request_prefill_time_seconds'),
    row('decode', 'first token, to the last', 'request_decode_time_seconds'),
    row('inference', 'first schedule, to the last token: prefill + decode', 'request_inference_time_seconds'),
    { ...row('ttft', arrival, 'time_to_first_token_seconds'), ...ttft },
    row('e2e', arrival, 'e2e_request_latency_seconds'),
  ];
}

/** Lengths of a request. */
export const lengths = (misses?: string): Mapped[] =>
  (['prompt', 'output'] as const).map((of) => ({
    concept: `${of}_length`,
    names: [of === 'prompt' ? 'request_prompt_tokens' : 'request_generation_tokens'],
    observation: 'a request',
    recorded: FINISH,
    unit: 'tokens',
    ...(misses !== undefined && { misses }),
  }));

export const STEP_TOKENS: Mapped = {
  concept: 'step_tokens',
  names: ['iteration_tokens'],
  observation: 'an engine step',
  recorded: 'at each step',
  unit: 'tokens',
};

/** What the scheduler holds. */
export const STATE: readonly Mapped[] = [
  {
    concept: 'running',
    names: ['num_requests_running'],
    observation: 'requests in the running batch',
    unit: 'requests',
  },
  {
    concept: 'waiting',
    names: ['num_requests_waiting'],
    observation: 'requests queued in the engine',
    unit: 'requests',
  },
  {
    concept: 'kv_usage',
    names: ['kv_cache_usage_perc', 'gpu_cache_usage_perc'],
    observation: 'the share of KV blocks in use',
    unit: 'share',
  },
];
