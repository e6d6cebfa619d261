import { type Adapter, prefixed } from '../adapter.ts';

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
      names: ['inflight_requests', 'active_requests'],
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
  local: (name) => {
    const local = prefixed('dynamo_component_', 'dynamo_work_handler_')(name);
    return local?.startsWith('router_') ? undefined : local;
  },
  metrics: [
    {
      concept: 'e2e',
      names: ['request_duration_seconds'],
      clock: 'received by the worker',
      observation: 'a request at the worker',
      recorded: FINISH,
      unit: 'seconds',
    },
    {
      concept: 'finishes',
      names: ['requests'],
      observation: 'a request at the worker, however it ended',
      recorded: FINISH,
      unit: 'requests',
    },
    {
      concept: 'failures',
      names: ['errors'],
      by: 'error_type',
      observation: 'an error at the worker',
      unit: 'requests',
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

/** Dynamo's KV router, which the frontend may hold: the same requests once more, its ITL a mean of each request. */
export const DYNAMO_ROUTER: Adapter = {
  engine: 'Dynamo router',
  role: 'router',
  local: prefixed('dynamo_component_router_'),
  metrics: [
    {
      ...request,
      observation: 'a request at the router: with separate prefill workers it may be seen twice',
      concept: 'ttft',
      names: ['time_to_first_token_seconds'],
      clock: 'received by the router',
      recorded: 'at the first token',
    },
    {
      ...request,
      observation: 'a request at the router: its mean interval between tokens',
      concept: 'tpot',
      names: ['inter_token_latency_seconds'],
      clock: 'first token, to the last',
    },
    { ...request, unit: 'tokens', concept: 'prompt_length', names: ['input_sequence_tokens'] },
    { ...request, unit: 'tokens', concept: 'output_length', names: ['output_sequence_tokens'] },
    {
      concept: 'finishes',
      names: ['requests'],
      observation: 'a request at the router',
      recorded: FINISH,
      unit: 'requests',
    },
  ],
};
