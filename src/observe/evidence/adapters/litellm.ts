import { type Adapter, prefixed } from '../adapter.ts';

const FINISH = 'when the request finishes';

const attempt = {
  observation: 'an attempt at a provider: retries are further ones',
  recorded: 'when the attempt ends',
  unit: 'seconds',
} as const;

/** LiteLLM's proxy. Its TTFT starts at each call of a provider's API, so retries are rows of their own. */
export const LITELLM: Adapter = {
  engine: 'LiteLLM',
  role: 'router',
  local: prefixed('litellm_'),
  metrics: [
    {
      ...attempt,
      concept: 'ttft',
      names: ['llm_api_time_to_first_token_metric'],
      clock: "the call of the provider's API: each attempt anew",
      misses: 'calls that were not streamed, time in the proxy and earlier attempts',
      note: 'LiteLLM starts TTFT at each attempt: retries add observations, and what came before an attempt is in none',
    },
    {
      ...attempt,
      concept: 'inference',
      names: ['llm_api_latency_metric'],
      clock: "the call of the provider's API: each attempt anew",
    },
    {
      concept: 'tpot',
      names: ['llm_api_time_per_output_token_metric', 'deployment_latency_per_output_token'],
      observation: 'an attempt: its whole latency over its tokens',
      unit: 'seconds',
      recorded: 'when the attempt ends',
    },
    {
      concept: 'e2e',
      names: ['request_total_latency_metric'],
      clock: 'received by the proxy',
      observation: 'a request at the proxy',
      recorded: FINISH,
      unit: 'seconds',
    },
    {
      concept: 'queue',
      names: ['request_queue_time_seconds'],
      clock: 'received by the proxy, to the start of its handling',
      observation: 'a request at the proxy',
      recorded: FINISH,
      unit: 'seconds',
    },
    { concept: 'prompt_tokens', names: ['input_tokens_metric'], observation: 'a prompt token', unit: 'tokens' },
    { concept: 'generation_tokens', names: ['output_tokens_metric'], observation: 'an output token', unit: 'tokens' },
    {
      concept: 'finishes',
      names: ['proxy_total_requests_metric'],
      by: 'status_code',
      observation: 'a request at the proxy, whatever its status',
      unit: 'requests',
    },
    {
      concept: 'failures',
      names: ['deployment_failure_responses'],
      by: 'exception_status',
      observation: 'a failed attempt',
      unit: 'requests',
    },
    {
      concept: 'failures',
      names: ['proxy_failed_requests_metric'],
      by: 'exception_status',
      observation: 'a failed request at the proxy',
      unit: 'requests',
    },
    { concept: 'running', names: ['in_flight_requests'], observation: 'requests in the proxy', unit: 'requests' },
  ],
};
