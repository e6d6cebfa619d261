/**
 * vLLM's V1 engine, and V0's names. TTFT and e2e run on the frontend's wall clock from tokenization; the phases on the
 * engine core's monotonic clock from the first schedule: the socket's backlog is in neither.
 */
import { type Adapter, type Mapped, prefixed } from '../adapter.ts';
import { FINISH, lengths, phases, STATE, STEP_TOKENS } from './vllm-names.ts';

const MISSES = 'aborted and rejected requests';
const request = { observation: 'a request', recorded: FINISH, misses: MISSES, unit: 'seconds' } as const;
const size = { observation: 'a request', recorded: FINISH, misses: MISSES, unit: 'tokens' } as const;

export const VLLM_METRICS: readonly Mapped[] = [
  ...phases({
    arrival: 'tokenization begins, on the frontend',
    queued: 'queued in the engine core',
    misses: MISSES,
    ttft: { recorded: 'at the first token', misses: 'rejected requests, and those aborted before their first token' },
  }),
  { ...request, concept: 'queue', names: ['time_in_queue_requests'], clock: 'arrival, to its first schedule' },
  {
    concept: 'itl',
    names: ['inter_token_latency_seconds', 'time_per_output_token_seconds'],
    clock: 'the previous step with output of the request',
    observation: 'an engine step with output of a request: several tokens with speculative decoding',
    recorded: 'at each step',
    unit: 'seconds',
    misses: 'nothing: requests aborted later have their steps in it',
  },
  {
    ...request,
    concept: 'tpot',
    names: ['request_time_per_output_token_seconds'],
    clock: 'first token, to the last, over n − 1',
    note: 'TPOT is recorded as 0 for requests of one token or none',
  },
  {
    concept: 'transfer',
    names: ['nixl_xfer_time_seconds'],
    observation: 'a KV transfer',
    recorded: 'when the transfer ends',
    unit: 'seconds',
  },
  ...lengths(MISSES),
  STEP_TOKENS,
  { ...size, concept: 'prefill_computed', names: ['request_prefill_kv_computed_tokens'] },
  {
    concept: 'prompt_tokens',
    names: ['prompt_tokens'],
    observation: 'a prompt token, cached ones too',
    recorded: 'when its prefill is done',
    unit: 'tokens',
  },
  {
    concept: 'prompt_tokens',
    names: ['prompt_tokens_by_source'],
    by: 'source',
    observation: 'a prompt token, cached ones too',
    recorded: 'when its prefill is done',
    unit: 'tokens',
  },
  {
    concept: 'generation_tokens',
    names: ['generation_tokens'],
    observation: 'a generated token',
    recorded: 'at each step',
    unit: 'tokens',
  },
  {
    concept: 'prefix_cache_queries',
    names: ['prefix_cache_queries', 'gpu_prefix_cache_queries'],
    observation: 'a prompt token looked up',
    unit: 'tokens',
  },
  {
    concept: 'prefix_cache_queries',
    names: ['prompt_tokens_by_source'],
    observation: 'a prompt token, cached ones too',
    unit: 'tokens',
  },
  {
    concept: 'prefix_cache_hits',
    names: ['prefix_cache_hits', 'gpu_prefix_cache_hits'],
    observation: 'a prompt token found',
    unit: 'tokens',
  },
  {
    concept: 'prefix_cache_hits',
    names: ['prompt_tokens_by_source'],
    where: { source: ['local_cache_hit', 'external_kv_transfer'] },
    observation: 'a prompt token not computed here',
    unit: 'tokens',
  },
  { concept: 'preemptions', names: ['num_preemptions'], observation: 'a preemption', unit: 'requests' },
  { concept: 'draft_tokens', names: ['spec_decode_num_draft_tokens'], observation: 'a drafted token', unit: 'tokens' },
  {
    concept: 'accepted_tokens',
    names: ['spec_decode_num_accepted_tokens'],
    observation: 'an accepted draft token',
    unit: 'tokens',
  },
  {
    concept: 'finishes',
    names: ['request_success'],
    by: 'finished_reason',
    observation: 'a finished request, whatever its finish reason',
    recorded: FINISH,
    unit: 'requests',
    misses: 'requests their client gave up',
    note: 'request_success counts every finish reason, abort and error among them; most client aborts leave no sample at all',
  },
  ...STATE,
  {
    concept: 'waiting',
    names: ['num_requests_waiting_by_reason'],
    observation: 'requests queued in the engine',
    unit: 'requests',
  },
];

/** The production-stack router tells its engines' metrics again, as gauges with the engine's address as `server`. */
const isRouted = (labels: Readonly<Record<string, string>>): boolean =>
  labels.server !== undefined && labels.engine === undefined;

export const VLLM: Adapter = {
  engine: 'vLLM',
  role: 'engine',
  local: prefixed('vllm:', 'aphrodite:'),
  owns: (labels) => !isRouted(labels),
  metrics: VLLM_METRICS,
};

export const PRODUCTION_STACK: Adapter = {
  engine: 'production-stack router',
  role: 'router',
  local: prefixed('vllm:'),
  owns: isRouted,
  metrics: VLLM_METRICS.filter((m) =>
    ['running', 'waiting', 'kv_usage', 'prefix_cache_hits', 'prefix_cache_queries'].includes(m.concept),
  ),
  notes: [
    "the router tells its engines' own metric names again, with the label server: where the engines are scraped too, adding the two would count twice",
    'its avg_ttft and avg_itl are moving averages held in gauges (avg_itl is −1 where it is not known): they cannot be merged and are left out',
  ],
};
