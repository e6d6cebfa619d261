/**
 * SGLang. Its inter-token latency is the interval between two deliveries divided by their tokens, observed once a token: a
 * stall is smoothed over the tokens that follow it, so it is not comparable with vLLM's.
 */
import { type Adapter, type Mapped, prefixed } from '../adapter.ts';

const MISSES = 'aborted requests';
const FINISH = 'when the request finishes';
const request = { observation: 'a request', recorded: FINISH, misses: MISSES, unit: 'seconds' } as const;
const stage = (concept: 'prefill' | 'decode' | 'transfer', ...stages: string[]): Mapped => ({
  concept,
  names: ['per_stage_req_latency_seconds'],
  where: { stage: stages },
  clock: `the stage ${stages[0]} of a request begins`,
  observation: "a request's stage",
  recorded: 'when the stage ends',
  unit: 'seconds',
});

const METRICS: readonly Mapped[] = [
  {
    ...request,
    concept: 'queue',
    names: ['queue_time_seconds', 'request_queue_time_seconds'],
    clock: 'enters the waiting queue, to its first schedule',
    recorded: 'when it is scheduled',
  },
  stage('prefill', 'prefill_forward'),
  stage('decode', 'decode_forward', 'decode_loop'),
  stage('transfer', 'prefill_transfer_kv_cache', 'decode_transferred'),
  {
    ...request,
    concept: 'ttft',
    names: ['time_to_first_token_seconds'],
    clock: 'received by the tokenizer manager',
    recorded: 'at the first token',
    misses: 'requests aborted before their first token',
  },
  {
    concept: 'itl',
    names: ['inter_token_latency_seconds', 'time_per_output_token_seconds'],
    clock: 'the previous delivery of the request',
    observation: "a token: the delivery's interval divided by its tokens, so stalls are smoothed",
    recorded: 'at each delivery',
    unit: 'seconds',
  },
  {
    ...request,
    concept: 'tpot',
    names: ['request_time_per_output_token_seconds'],
    clock: 'first token, to the last, over n − 1',
  },
  { ...request, concept: 'e2e', names: ['e2e_request_latency_seconds'], clock: 'received by the tokenizer manager' },
  { ...request, unit: 'tokens', concept: 'prompt_length', names: ['prompt_tokens_histogram'] },
  { ...request, unit: 'tokens', concept: 'output_length', names: ['generation_tokens_histogram'] },
  {
    concept: 'prompt_tokens',
    names: ['prompt_tokens'],
    observation: 'a prompt token, cached ones too',
    recorded: FINISH,
    unit: 'tokens',
  },
  {
    concept: 'generation_tokens',
    names: ['generation_tokens'],
    observation: 'a generated token',
    recorded: FINISH,
    unit: 'tokens',
  },
  {
    concept: 'prefix_cache_hits',
    names: ['cached_tokens'],
    observation: 'a prompt token found in a cache',
    recorded: FINISH,
    unit: 'tokens',
  },
  {
    concept: 'prefix_cache_queries',
    names: ['prompt_tokens'],
    observation: 'a prompt token, cached ones too',
    recorded: FINISH,
    unit: 'tokens',
  },
  { concept: 'preemptions', names: ['num_retracted_requests'], observation: 'a retraction', unit: 'requests' },
  {
    concept: 'finishes',
    names: ['num_requests'],
    observation: 'a finished request',
    recorded: FINISH,
    unit: 'requests',
    misses: MISSES,
  },
  { concept: 'aborts', names: ['num_aborted_requests'], observation: 'an aborted request', unit: 'requests' },
  { concept: 'running', names: ['num_running_reqs'], observation: 'requests in the running batch', unit: 'requests' },
  {
    concept: 'waiting',
    names: ['num_queue_reqs'],
    observation: 'requests in the waiting queue, without grammar and disaggregation queues',
    unit: 'requests',
  },
  {
    concept: 'kv_usage',
    names: ['token_usage', 'full_token_usage'],
    observation: 'the share of KV tokens in use',
    unit: 'share',
  },
];

const isRouted = (labels: Readonly<Record<string, string>>): boolean => labels.worker_addr !== undefined;

export const SGLANG: Adapter = {
  engine: 'SGLang',
  role: 'engine',
  local: prefixed('sglang:'),
  owns: (labels) => !isRouted(labels),
  metrics: METRICS,
};

/** The router's /engine_metrics: its workers' metrics again, with `sglang:` rewritten and `worker_addr` added. */
export const SGLANG_REEXPORT: Adapter = {
  engine: 'SGLang, by its router',
  role: 'router',
  local: prefixed('sglang:'),
  owns: isRouted,
  metrics: METRICS,
  notes: [
    "the router tells its workers' metrics again: where the workers are scraped too, adding the two would count twice",
  ],
};

const attempt = { observation: 'a request at the router', recorded: FINISH, unit: 'seconds' } as const;

/** The router's own account (sgl-model-gateway, before that sgl-router). */
export const SGLANG_ROUTER: Adapter = {
  engine: 'SGLang router',
  role: 'router',
  local: prefixed('sgl_router_', 'smg_router_', 'smg_'),
  metrics: [
    {
      ...attempt,
      concept: 'ttft',
      names: ['ttft_seconds'],
      clock: 'received by the router',
      recorded: 'at the first token',
    },
    { ...attempt, concept: 'tpot', names: ['tpot_seconds'], clock: 'first token, to the last, over n − 1' },
    {
      ...attempt,
      concept: 'e2e',
      names: ['request_duration_seconds', 'http_request_duration_seconds', 'generate_duration_seconds'],
      clock: 'received by the router',
    },
    {
      concept: 'prompt_tokens',
      names: ['tokens'],
      where: { token_type: ['input'], type: ['input'] },
      observation: 'a prompt token',
      unit: 'tokens',
    },
    {
      concept: 'generation_tokens',
      names: ['tokens'],
      where: { token_type: ['output'], type: ['output'] },
      observation: 'an output token',
      unit: 'tokens',
    },
    {
      concept: 'failures',
      names: ['request_errors'],
      by: 'error_type',
      observation: 'a failed request',
      unit: 'requests',
    },
    { concept: 'retries', names: ['retries', 'worker_retries'], observation: 'a retry', unit: 'requests' },
    {
      concept: 'running',
      names: ['running_requests', 'worker_requests_active'],
      observation: 'requests at the workers',
      unit: 'requests',
    },
  ],
};
