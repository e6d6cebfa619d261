/** What stands before engines: Dynamo's frontend, the inference extension's endpoint picker, LiteLLM, OTel GenAI. */
import { type Adapter, type Mapped, prefixed } from '../adapter.ts';

const FINISH = 'when the request finishes';
const request = { observation: 'a request at the frontend', recorded: FINISH, unit: 'seconds' } as const;

/** Dynamo's frontend; `nv_llm_http_service_` before it. Its `queued` holds requests until their first token: prefill too. */
export const DYNAMO: Adapter = {
  engine: 'Dynamo frontend',
  role: 'router',
  local: prefixed('dynamo_frontend_', 'nv_llm_http_service_'),
  metrics: [
    {
      ...request,
      concept: 'prefill',
      names: ['stage_duration_seconds'],
      where: { stage: ['prefill'] },
      observation: "a request's prefill stage",
      recorded: 'when the stage ends',
    },
    {
      ...request,
      concept: 'decode',
      names: ['stage_duration_seconds'],
      where: { stage: ['decode'] },
      observation: "a request's decode stage",
      recorded: 'when the stage ends',
    },
    {
      ...request,
      concept: 'ttft',
      names: ['time_to_first_token_seconds'],
      clock: 'received by the frontend',
      recorded: 'at the first token',
    },
    {
      concept: 'itl',
      names: ['inter_token_latency_seconds'],
      clock: 'the previous delivery of the request',
      observation: "a token: the delivery's interval divided by its tokens, so stalls are smoothed",
      recorded: 'at each delivery',
      unit: 'seconds',
    },
    { ...request, concept: 'e2e', names: ['request_duration_seconds'], clock: 'received by the frontend' },
    { ...request, unit: 'tokens', concept: 'prompt_length', names: ['input_sequence_tokens'] },
    { ...request, unit: 'tokens', concept: 'output_length', names: ['output_sequence_tokens'] },
    { concept: 'generation_tokens', names: ['output_tokens'], observation: 'an output token', unit: 'tokens' },
    {
      concept: 'finishes',
      names: ['requests'],
      by: 'status',
      observation: 'a finished request, whatever its status',
      recorded: FINISH,
      unit: 'requests',
    },
    { concept: 'aborts', names: ['model_cancellation'], observation: 'a request its client gave up', unit: 'requests' },
    {
      concept: 'running',
      names: ['inflight_requests'],
      observation: 'requests between receipt and their end, queued ones too',
      unit: 'requests',
    },
    {
      concept: 'waiting',
      names: ['queued_requests'],
      observation: 'requests without a first token: prefill is in it',
      unit: 'requests',
      note: "Dynamo's queued requests are all without a first token, those in prefill among them",
    },
  ],
};

/** What a Dynamo worker wraps around its engine, which has metrics of its own at the same address. */
export const DYNAMO_WORKER: Adapter = {
  engine: 'Dynamo worker',
  role: 'router',
  local: prefixed('dynamo_component_'),
  metrics: [
    {
      concept: 'e2e',
      names: ['request_duration_seconds'],
      clock: 'received by the worker',
      observation: 'a request at the worker',
      recorded: FINISH,
      unit: 'seconds',
    },
    { concept: 'running', names: ['inflight_requests'], observation: 'requests at the worker', unit: 'requests' },
    {
      concept: 'kv_usage',
      names: ['gpu_cache_usage_percent', 'kvstats_gpu_cache_usage_percent'],
      observation: 'the share of KV blocks in use',
      unit: 'share',
    },
  ],
};

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
      names: ['request_tpot_seconds', 'normalized_time_per_output_token_seconds'],
      observation: 'a request: its mean gap between response bodies',
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

const OK = 'failed requests: only successful responses are observed';
const server = (m: Pick<Mapped, 'concept' | 'names' | 'observation'> & Partial<Mapped>): Mapped => ({
  recorded: FINISH,
  unit: 'seconds',
  ...m,
});
const dotted = (...names: string[]): string[] => names.flatMap((n) => [n, `${n}_seconds`]);

/** OpenTelemetry's GenAI conventions, dots or underscores, status Development: Envoy AI Gateway and instrumentations. */
export const OTEL: Adapter = {
  engine: 'OTel GenAI',
  role: 'router',
  local: (name) => (/^gen_ai[._]/.test(name) ? name.slice(7).replaceAll('.', '_') : undefined),
  metrics: [
    server({
      concept: 'ttft',
      names: dotted('server_time_to_first_token'),
      clock: 'received by the server: queue + prefill',
      observation: 'a successful request',
      recorded: 'at the first token',
      misses: OK,
      note: 'gen_ai.server.time_to_first_token covers successful responses only, and its last standard bound is 10 s',
    }),
    server({
      concept: 'tpot',
      names: dotted('server_time_per_output_token'),
      clock: 'first token, to the last, over n − 1',
      observation: 'a successful request',
      misses: OK,
    }),
    server({
      concept: 'e2e',
      names: dotted('server_request_duration'),
      clock: 'received by the server',
      observation: 'a request',
    }),
    server({
      concept: 'e2e',
      names: dotted('client_operation_duration'),
      clock: 'called by the client of the model',
      observation: "a request, on its client's clock",
    }),
    server({
      concept: 'ttft',
      names: dotted('client_operation_time_to_first_chunk'),
      clock: 'called by the client of the model',
      observation: "a request, on its client's clock, to its first chunk: not a token",
    }),
    server({
      concept: 'itl',
      names: dotted('client_operation_time_per_output_chunk'),
      observation: 'a chunk, not a token',
      recorded: 'at each chunk',
    }),
    {
      concept: 'prompt_length',
      names: ['client_token_usage', 'client_token_usage_token'],
      where: { gen_ai_token_type: ['input'], 'gen_ai.token.type': ['input'] },
      observation: 'a request',
      recorded: FINISH,
      unit: 'tokens',
    },
    {
      concept: 'output_length',
      names: ['client_token_usage', 'client_token_usage_token'],
      where: { gen_ai_token_type: ['output', 'completion'], 'gen_ai.token.type': ['output', 'completion'] },
      observation: 'a request',
      recorded: FINISH,
      unit: 'tokens',
    },
  ],
};
