import { type Adapter, prefixed } from '../adapter.ts';
import { FINISH, phases } from './vllm-names.ts';

const MISSES = 'failed requests, and durations of zero';

/** trtllm-serve: vLLM's layouts on the executor's arrival clock; zero and negative durations are dropped. */
export const TRTLLM: Adapter = {
  engine: 'TensorRT-LLM',
  role: 'engine',
  local: prefixed('trtllm:'),
  metrics: [
    ...phases({ arrival: 'arrival at the executor', queued: 'arrival at the executor', misses: MISSES }),
    {
      concept: 'tpot',
      names: ['time_per_output_token_seconds'],
      clock: 'first token, to the last, over n − 1',
      observation: 'a request',
      recorded: FINISH,
      misses: MISSES,
      unit: 'seconds',
    },

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
      names: ['spec_decode_drafted_tokens', 'spec_decode_num_draft_tokens'],
      observation: 'a drafted token',
      unit: 'tokens',
    },
    {
      concept: 'accepted_tokens',
      names: ['spec_decode_accepted_tokens', 'spec_decode_num_accepted_tokens'],
      observation: 'an accepted draft token',
      unit: 'tokens',
    },
    {
      concept: 'finishes',
      names: ['request_success', 'num_requests_completed'],
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
  ],
};
