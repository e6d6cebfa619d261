/** TensorRT-LLM, TGI, llama.cpp, LMDeploy and Triton. */
import { type Adapter, type Mapped, prefixed } from '../adapter.ts';

const FINISH = 'when the request finishes';
const request = { observation: 'a request', recorded: FINISH, unit: 'seconds' } as const;
const size = { observation: 'a request', recorded: FINISH, unit: 'tokens' } as const;

/** trtllm-serve: vLLM's layouts on the executor's arrival clock; zero and negative durations are dropped. */
export const TRTLLM: Adapter = {
  engine: 'TensorRT-LLM',
  role: 'engine',
  local: prefixed('trtllm:'),
  metrics: (
    [
      {
        ...request,
        concept: 'queue',
        names: ['request_queue_time_seconds'],
        clock: 'arrival at the executor, to its first schedule',
      },
      {
        ...request,
        concept: 'prefill',
        names: ['request_prefill_time_seconds'],
        clock: 'first schedule, to the first token',
      },
      { ...request, concept: 'decode', names: ['request_decode_time_seconds'], clock: 'first token, to the last' },
      {
        ...request,
        concept: 'inference',
        names: ['request_inference_time_seconds'],
        clock: 'first schedule, to the last token',
      },
      { ...request, concept: 'ttft', names: ['time_to_first_token_seconds'], clock: 'arrival at the executor' },
      {
        ...request,
        concept: 'tpot',
        names: ['time_per_output_token_seconds'],
        clock: 'first token, to the last, over n − 1',
      },
      { ...request, concept: 'e2e', names: ['e2e_request_latency_seconds'], clock: 'arrival at the executor' },
    ] as const satisfies readonly Mapped[]
  )
    .map((m): Mapped => ({ ...m, misses: 'failed requests, and durations of zero' }))
    .concat([
      {
        concept: 'prompt_tokens',
        names: ['prompt_tokens'],
        observation: 'a prompt token',
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
        names: ['kv_cache_reused_blocks'],
        observation: 'a KV block reused',
        unit: 'blocks',
      },
      {
        concept: 'prefix_cache_hits',
        names: ['prompt_cached_tokens'],
        observation: 'a prompt token found',
        unit: 'tokens',
      },
      {
        concept: 'prefix_cache_queries',
        names: ['kv_cache_reused_blocks', 'kv_cache_missed_blocks'],
        added: true,
        observation: 'a KV block looked up',
        unit: 'blocks',
        note: 'KV reuse is counted in blocks, not tokens',
      },
      {
        concept: 'draft_tokens',
        names: ['spec_decode_drafted_tokens'],
        observation: 'a drafted token',
        unit: 'tokens',
      },
      {
        concept: 'accepted_tokens',
        names: ['spec_decode_accepted_tokens'],
        observation: 'an accepted draft token',
        unit: 'tokens',
      },
      {
        concept: 'finishes',
        names: ['request_success'],
        by: 'finished_reason',
        observation: 'a finished request',
        recorded: FINISH,
        unit: 'requests',
      },
      { concept: 'failures', names: ['request_error'], observation: 'a failed request', unit: 'requests' },
      {
        concept: 'running',
        names: ['num_requests_running', 'num_active_requests'],
        observation: 'requests in the running batch',
        unit: 'requests',
      },
      {
        concept: 'waiting',
        names: ['num_requests_waiting', 'num_queued_requests'],
        observation: 'requests queued in the executor',
        unit: 'requests',
      },
      {
        concept: 'kv_usage',
        names: ['kv_cache_utilization'],
        observation: 'the share of KV blocks in use',
        unit: 'share',
      },
    ]),
};

/** TGI's router. No TTFT; everything is recorded when a stream ends. */
export const TGI: Adapter = {
  engine: 'TGI',
  role: 'engine',
  local: prefixed('tgi_'),
  metrics: [
    {
      ...request,
      concept: 'queue',
      names: ['request_queue_duration'],
      clock: 'validated, to its first batch',
      misses: 'failed and dropped requests',
    },
    {
      concept: 'prefill',
      names: ['batch_inference_duration'],
      where: { method: ['prefill'] },
      observation: 'a batch, not a request',
      recorded: 'when the batch ends',
      unit: 'seconds',
    },
    {
      concept: 'decode',
      names: ['batch_inference_duration'],
      where: { method: ['decode'] },
      observation: 'a batch step, not a request',
      recorded: 'when the step ends',
      unit: 'seconds',
    },
    {
      ...request,
      concept: 'inference',
      names: ['request_inference_duration'],
      clock: 'first batch, to the last token',
      misses: 'failed and dropped requests',
    },
    {
      concept: 'tpot',
      names: ['request_mean_time_per_token_duration'],
      clock: 'first batch, to the last token, over n: prefill included',
      observation: 'a request: inference time over n tokens, its prefill included',
      recorded: 'when the stream ends',
      unit: 'seconds',
      misses: 'failed and dropped requests',
      note: 'mean_time_per_token includes prefill and divides by n, not n − 1: it is not TPOT as others mean it',
    },
    {
      ...request,
      concept: 'e2e',
      names: ['request_duration'],
      clock: 'received by the router',
      misses: 'failed and dropped requests',
    },
    { ...size, concept: 'prompt_length', names: ['request_input_length'], recorded: 'when it is validated' },
    { ...size, concept: 'output_length', names: ['request_generated_tokens'] },
    {
      concept: 'finishes',
      names: ['request_success'],
      observation: 'a request that ended well',
      recorded: 'when the stream ends',
      unit: 'requests',
      misses: 'streams the client gave up',
    },
    {
      concept: 'failures',
      names: ['request_failure'],
      by: 'err',
      observation: 'a failed or refused request',
      unit: 'requests',
    },
    { concept: 'running', names: ['batch_current_size'], observation: 'requests in the batch', unit: 'requests' },
    { concept: 'waiting', names: ['queue_size'], observation: 'requests queued in the router', unit: 'requests' },
  ],
  notes: ['TGI exposes no TTFT'],
};

/** llama.cpp's server: counters of tokens and seconds, so means alone. */
export const LLAMACPP: Adapter = {
  engine: 'llama.cpp',
  role: 'engine',
  local: prefixed('llamacpp:'),
  metrics: [
    {
      concept: 'prompt_tokens',
      names: ['prompt_tokens'],
      observation: 'a prompt token processed, without cached ones',
      unit: 'tokens',
    },
    { concept: 'generation_tokens', names: ['tokens_predicted'], observation: 'a generated token', unit: 'tokens' },
    {
      concept: 'prefill_seconds',
      names: ['prompt_seconds'],
      observation: 'time spent on prompts, summed over slots',
      unit: 'seconds',
    },
    {
      concept: 'decode_seconds',
      names: ['tokens_predicted_seconds'],
      observation: 'time spent generating, summed over slots',
      unit: 'seconds',
    },
    { concept: 'running', names: ['requests_processing'], observation: 'slots at work', unit: 'requests' },
    { concept: 'waiting', names: ['requests_deferred'], observation: 'requests without a slot', unit: 'requests' },
    {
      concept: 'kv_usage',
      names: ['kv_cache_usage_ratio'],
      observation: 'the share of KV cells in use',
      unit: 'share',
    },
  ],
  notes: ['llama.cpp exposes no histograms and no TTFT: only means can be told, and no quantile'],
};

export const LMDEPLOY: Adapter = {
  engine: 'LMDeploy',
  role: 'engine',
  local: prefixed('lmdeploy:'),
  mend(told, notes) {
    const total = told.get('generation_tokens');
    const finished = told.get('output_length')?.sum;
    if (total?.count === undefined || finished === undefined || !(finished > 0)) return;
    if (Math.abs(total.count / finished - 2) > 0.02) return;
    notes.push(
      `generation_tokens_total (${total.count}) is twice the tokens of finished requests (${finished}): LMDeploy counted each twice in some versions, so the sum over finished requests is told`,
    );
    told.set('generation_tokens', { ...total, count: finished });
  },
  metrics: [
    { ...request, concept: 'queue', names: ['request_queue_time_seconds'], clock: 'queued, to its first schedule' },
    {
      ...request,
      concept: 'prefill',
      names: ['request_prefill_time_seconds'],
      clock: 'first schedule, to the first token',
    },
    { ...request, concept: 'decode', names: ['request_decode_time_seconds'], clock: 'first token, to the last' },
    {
      ...request,
      concept: 'inference',
      names: ['request_inference_time_seconds'],
      clock: 'first schedule, to the last token',
    },
    {
      ...request,
      concept: 'ttft',
      names: ['time_to_first_token_seconds'],
      clock: 'received by the frontend',
      recorded: 'at the first token',
    },
    {
      ...request,
      concept: 'tpot',
      names: ['time_per_output_token_seconds', 'request_time_per_output_token_seconds'],
      clock: 'first token, to the last, over n − 1',
    },
    {
      concept: 'itl',
      names: ['iter_token_latency', 'inter_token_latency_seconds'],
      observation: 'an engine step with output of a request',
      recorded: 'at each step',
      unit: 'seconds',
    },
    { ...request, concept: 'e2e', names: ['e2e_request_latency_seconds'], clock: 'received by the frontend' },
    { ...size, concept: 'prompt_length', names: ['request_prompt_tokens'] },
    { ...size, concept: 'output_length', names: ['request_generation_tokens'] },
    {
      concept: 'step_tokens',
      names: ['iteration_tokens'],
      observation: 'an engine step',
      recorded: 'at each step',
      unit: 'tokens',
    },
    { concept: 'prompt_tokens', names: ['prompt_tokens'], observation: 'a prompt token', unit: 'tokens' },
    { concept: 'generation_tokens', names: ['generation_tokens'], observation: 'a generated token', unit: 'tokens' },
    {
      concept: 'finishes',
      names: ['request_success'],
      by: 'finished_reason',
      observation: 'a finished request',
      recorded: FINISH,
      unit: 'requests',
    },
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
  ],
};

const per = {
  observation: 'an inference request',
  recorded: 'when the request ends',
  unit: 'seconds',
  misses: 'failed requests',
} as const;
/** Counters of microseconds over a count of requests; the quantiles of its summaries cannot be merged. */
const timed = (concept: 'queue' | 'inference' | 'e2e', name: string, clock: string): Mapped[] => [
  { ...per, concept, names: [`${name}_summary_us`], clock, scale: 1e-6 },
  { ...per, concept, names: [`${name}_duration_us`], clock, scale: 1e-6, part: 'sum' },
  { ...per, concept, names: ['request_success'], clock, part: 'count' },
];

/** Triton: microseconds in counters; a response is a chunk. */
export const TRITON: Adapter = {
  engine: 'Triton',
  role: 'engine',
  local: prefixed('nv_inference_', 'nv_trt_llm_', 'nv_llm_'),
  metrics: [
    ...timed('queue', 'queue', 'waiting in the scheduler'),
    ...timed('inference', 'compute_infer', 'the model computes'),
    ...timed('e2e', 'request', 'received by the server'),
    {
      ...per,
      concept: 'ttft',
      names: ['first_response_histogram_ms'],
      clock: 'received by the server',
      observation: 'a request, to its first response: a chunk, not a token',
      recorded: 'at the first response',
      scale: 1e-3,
    },
    { ...size, concept: 'prompt_length', names: ['input_token_len'] },
    { ...size, concept: 'output_length', names: ['output_token_len'] },
    {
      concept: 'finishes',
      names: ['request_success'],
      observation: 'a successful inference request',
      unit: 'requests',
    },
    {
      concept: 'failures',
      names: ['request_failure'],
      by: 'reason',
      observation: 'a failed inference request',
      unit: 'requests',
    },
    {
      concept: 'waiting',
      names: ['pending_request_count'],
      observation: 'requests awaiting execution',
      unit: 'requests',
    },
    {
      concept: 'waiting',
      names: ['request_metrics'],
      where: { request_type: ['waiting', 'queued'] },
      observation: 'requests queued in the batcher',
      unit: 'requests',
    },
    {
      concept: 'running',
      names: ['request_metrics'],
      where: { request_type: ['active', 'scheduled'] },
      observation: 'requests in the batcher',
      unit: 'requests',
    },
    {
      concept: 'kv_usage',
      names: ['kv_cache_block_metrics'],
      where: { kv_cache_block_type: ['fraction'] },
      observation: 'the share of KV blocks in use',
      unit: 'share',
    },
  ],
};
