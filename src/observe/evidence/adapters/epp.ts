import { type Adapter, prefixed } from '../adapter.ts';

const epp = {
  observation: 'a request at the endpoint picker',
  recorded: 'when the response ends',
  unit: 'seconds',
} as const;

/** The Gateway API inference extension's endpoint picker, now llm-d's. It tells old names and new ones together. */
export const EPP: Adapter = {
  engine: 'endpoint picker',
  role: 'router',
  local: prefixed(
    'llm_d_epp_',
    'llm_d_router_epp_',
    'llm_d_inference_scheduler_',
    'inference_objective_',
    'inference_model_',
    'inference_extension_',
    'inference_pool_',
  ),
  metrics: [
    {
      ...epp,
      concept: 'ttft',
      names: ['request_ttft_seconds'],
      clock: 'request headers received by the picker',
      observation: 'a request: to its first response body, which is the whole of it unless streaming is on',
      note: 'in its default, non-streaming mode the TTFT of the endpoint picker is the end-to-end time',
    },
    {
      ...epp,
      concept: 'tpot',
      names: ['request_tpot_seconds'],
      observation: 'a request: its mean gap between response bodies',
    },
    {
      ...epp,
      concept: 'tpot',
      names: ['normalized_time_per_output_token_seconds'],
      clock: 'request headers received by the picker, over n',
      observation: 'a request: its whole latency over its tokens',
      note: "the picker's normalized time per output token is the whole latency over n, queue and prefill included: it is not TPOT as others mean it",
    },
    { ...epp, concept: 'e2e', names: ['request_duration_seconds'], clock: 'request headers received by the picker' },
    {
      concept: 'queue',
      names: ['flow_control_request_queue_duration_seconds'],
      clock: 'enters the flow control queue',
      observation: 'a request in flow control',
      recorded: 'when it leaves the queue',
      unit: 'seconds',
    },
    { ...epp, unit: 'tokens', concept: 'prompt_length', names: ['input_tokens'] },
    { ...epp, unit: 'tokens', concept: 'output_length', names: ['output_tokens'] },
    { concept: 'finishes', names: ['request'], observation: 'a request at the endpoint picker', unit: 'requests' },
    {
      concept: 'failures',
      names: ['request_error'],
      by: 'error_code',
      observation: 'a failed request',
      unit: 'requests',
    },
    {
      concept: 'slo_violations',
      names: ['request_slo_violation'],
      by: 'type',
      observation: 'a request and a limit it missed',
      unit: 'requests',
      note: 'SLO violations are counted a type, without the number of requests judged: neither a share nor joint attainment follows from them',
    },
    { concept: 'running', names: ['running_requests'], observation: 'requests at the model servers', unit: 'requests' },
    {
      concept: 'waiting',
      names: ['flow_control_queue_size'],
      observation: 'requests in the flow control queue',
      unit: 'requests',
    },
    {
      concept: 'kv_usage',
      names: ['average_kv_cache_utilization'],
      observation: "the mean of the pool's servers",
      unit: 'share',
    },
  ],
};
