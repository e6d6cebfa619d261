/** Each engine's names of several versions, as its source declares them: what must be concluded of each. */
import { describe, expect, it } from 'vitest';
import type { MergeDocument } from '../document.ts';
import { merged } from '../testing.ts';

const MODEL = 'model_name="m"';

/** A histogram of `bounds` with one observation in each bucket but +Inf. */
function histogram(name: string, labels: string, bounds: readonly number[], sum: number, typed = true): string {
  const within = labels === '' ? '' : `${labels},`;
  const buckets = bounds.map((b, i) => `${name}_bucket{${within}le="${b}"} ${i + 1}\n`).join('');
  const all = `${name}_bucket{${within}le="+Inf"} ${bounds.length}\n${name}_count{${labels}} ${bounds.length}\n`;
  return `${typed ? `# TYPE ${name} histogram\n` : ''}${buckets}${all}${name}_sum{${labels}} ${sum}\n`;
}

/** Of a document: counts and means of concepts, totals, sums of gauges. */
function figures(d: MergeDocument): Record<string, number | undefined> {
  const out: Record<string, number | undefined> = {};
  for (const [key, value] of Object.entries(d)) {
    if (typeof value !== 'object' || value === null || !('replicas' in value) || !('notes' in value)) continue;
    const told = value as { mean?: number; count?: number };
    out[key] = told.mean ?? told.count;
  }
  for (const [key, gauge] of Object.entries(d.gauges))
    if (key !== 'process_start') out[key] = gauge?.sum ?? gauge?.mean;
  return out;
}

const B = [0.1, 0.5, 2] as const;

const ENGINES: readonly (readonly [string, string, string, Record<string, number>])[] = [
  [
    'vLLM V0, with _created',
    'vLLM',
    histogram('vllm:time_to_first_token_seconds', MODEL, B, 1.5) +
      `# TYPE vllm:time_to_first_token_seconds_created gauge\nvllm:time_to_first_token_seconds_created{${MODEL}} 1.7e9\n` +
      histogram('vllm:time_per_output_token_seconds', MODEL, B, 0.6) +
      histogram('vllm:time_in_queue_requests', MODEL, B, 0.9) +
      `vllm:num_requests_running{${MODEL}} 3\nvllm:num_requests_swapped{${MODEL}} 9\nvllm:num_requests_waiting{${MODEL}} 2\n` +
      `vllm:gpu_cache_usage_perc{${MODEL}} 0.25\nvllm:cpu_cache_usage_perc{${MODEL}} 0.9\n` +
      `# TYPE vllm:prompt_tokens_total counter\nvllm:prompt_tokens_total{${MODEL}} 100\nvllm:prompt_tokens_created{${MODEL}} 1.7e9\n`,
    { ttft: 0.5, itl: 0.2, queue: 0.3, running: 3, waiting: 2, kv_usage: 0.25, prompt_tokens: 100 },
  ],
  [
    'vLLM V1 with old names shown beside the new ones, waiting by reason',
    'vLLM',
    `vllm:kv_cache_usage_perc{engine="0",${MODEL}} 0.5\nvllm:gpu_cache_usage_perc{engine="0",${MODEL}} 0.5\n` +
      `vllm:prefix_cache_queries_total{engine="0",${MODEL}} 80\nvllm:gpu_prefix_cache_queries_total{engine="0",${MODEL}} 80\n` +
      `vllm:prefix_cache_hits_total{engine="0",${MODEL}} 20\nvllm:gpu_prefix_cache_hits_total{engine="0",${MODEL}} 20\n` +
      histogram('vllm:inter_token_latency_seconds', `engine="0",${MODEL}`, B, 0.3) +
      histogram('vllm:time_per_output_token_seconds', `engine="0",${MODEL}`, B, 0.3) +
      histogram('vllm:request_time_per_output_token_seconds', `engine="0",${MODEL}`, B, 0.6) +
      `vllm:num_requests_waiting{engine="0",${MODEL}} 12\n` +
      `vllm:num_requests_waiting_by_reason{engine="0",${MODEL},reason="capacity"} 9\n` +
      `vllm:num_requests_waiting_by_reason{engine="0",${MODEL},reason="deferred"} 3\n`,
    { kv_usage: 0.5, prefix_cache_queries: 80, prefix_cache_hits: 20, itl: 0.1, tpot: 0.2, waiting: 12 },
  ],
  [
    'Ray tells a counter twice: with _total, and without for older dashboards',
    'vLLM',
    '# TYPE ray_vllm_prefix_cache_hits gauge\n' +
      'ray_vllm_prefix_cache_hits{ReplicaId="r",WorkerId="w",model_name="m"} 7\n' +
      '# TYPE ray_vllm_prefix_cache_hits_total counter\n' +
      'ray_vllm_prefix_cache_hits_total{ReplicaId="r",WorkerId="w",model_name="m"} 7\n' +
      histogram('ray_vllm_time_to_first_token_seconds', 'ReplicaId="r",WorkerId="w",model_name="m"', B, 0.3),
    { prefix_cache_hits: 7, ttft: 0.1 },
  ],
  [
    'SGLang: ranks of one engine tell the same requests',
    'SGLang',
    ['0', '1']
      .map(
        (rank) =>
          `sglang:num_running_reqs{engine_type="unified",${MODEL},moe_ep_rank="0",pp_rank="0",tp_rank="${rank}"} 4\n` +
          `sglang:token_usage{engine_type="unified",${MODEL},moe_ep_rank="0",pp_rank="0",tp_rank="${rank}"} 0.75\n`,
      )
      .join('') +
      histogram('sglang:inter_token_latency_seconds', MODEL, B, 0.3) +
      `sglang:num_requests_total{${MODEL}} 5\nsglang:num_aborted_requests_total{${MODEL}} 1\n` +
      `sglang:cached_tokens_total{${MODEL},cache_source="device"} 30\nsglang:cached_tokens_total{${MODEL},cache_source="host"} 2\n` +
      `sglang:prompt_tokens_total{${MODEL}} 64\n`,
    {
      running: 4,
      kv_usage: 0.75,
      itl: 0.1,
      finishes: 5,
      aborts: 1,
      prefix_cache_hits: 32,
      prefix_cache_queries: 64,
      prompt_tokens: 64,
    },
  ],
  [
    'SGLang renamed by what relabels colons',
    'SGLang',
    `sglang_num_queue_reqs{${MODEL}} 6\nsglang_generation_tokens_total{${MODEL}} 40\n`,
    { waiting: 6, generation_tokens: 40 },
  ],
  [
    'TensorRT-LLM serve',
    'TensorRT-LLM',
    histogram('trtllm_time_per_output_token_seconds', MODEL, B, 0.6) +
      histogram('trtllm_request_inference_time_seconds', MODEL, B, 3) +
      `trtllm_kv_cache_reused_blocks_total{${MODEL}} 10\ntrtllm_kv_cache_missed_blocks_total{${MODEL}} 30\n` +
      `trtllm_num_requests_running{${MODEL}} 2\ntrtllm_num_requests_waiting{${MODEL}} 1\ntrtllm_kv_cache_utilization{${MODEL}} 0.4\n` +
      `trtllm_spec_decode_num_draft_tokens_total{${MODEL}} 8\ntrtllm_spec_decode_num_accepted_tokens_total{${MODEL}} 6\n` +
      `trtllm_num_requests_completed_total{${MODEL}} 9\ntrtllm_num_paused_requests{${MODEL}} 1\n`,
    {
      tpot: 0.2,
      inference: 1,
      prefix_cache_hits: 10,
      prefix_cache_queries: 40,
      running: 2,
      waiting: 1,
      kv_usage: 0.4,
      draft_tokens: 8,
      accepted_tokens: 6,
      finishes: 9,
    },
  ],
  [
    "TensorRT-LLM behind Triton: scheduled, context and active requests are not added, nor Triton's pre- and postprocessing",
    'Triton',
    ['waiting 3', 'context 1', 'scheduled 4', 'max 512', 'active 6']
      .map((kind) => kind.split(' '))
      .map(([k, n]) => `nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="${k}",version="1"} ${n}\n`)
      .join('') +
      'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="fraction",model="tensorrt_llm",version="1"} 0.4875\n' +
      'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="used",model="tensorrt_llm",version="1"} 6239\n' +
      '# TYPE nv_inference_request_duration_us counter\nnv_inference_request_duration_us{model="tensorrt_llm",version="1"} 6000000\n' +
      'nv_inference_request_success{model="tensorrt_llm",version="1"} 3\n',
    { waiting: 3, running: 4, kv_usage: 0.4875, e2e: 2, finishes: 3 },
  ],
  [
    'LMDeploy: time per output token is one observation a step',
    'LMDeploy',
    histogram('lmdeploy:time_per_output_token_seconds', `engine="0",${MODEL}`, B, 0.3) +
      histogram('lmdeploy:request_prefill_time_seconds', `engine="0",${MODEL}`, B, 0.9) +
      `lmdeploy:num_requests_running{engine="0",${MODEL}} 2\n`,
    { itl: 0.1, prefill: 0.3, running: 2 },
  ],
  [
    'llama.cpp, whose rates are gauges of their own',
    'llama.cpp',
    '# TYPE llamacpp:prompt_tokens_total counter\nllamacpp:prompt_tokens_total 10\nllamacpp:prompt_seconds_total 2\n' +
      'llamacpp:prompt_tokens_seconds 5\nllamacpp:predicted_tokens_seconds 7\nllamacpp:kv_cache_usage_ratio 0.5\n' +
      'llamacpp:requests_processing 1\nllamacpp:requests_deferred 2\nllamacpp:n_busy_slots_per_decode 0.5\n',
    { prompt_tokens: 10, prefill_seconds: 2, kv_usage: 0.5, running: 1, waiting: 2 },
  ],
  [
    "Dynamo's frontend, with its older prefix",
    'Dynamo frontend',
    histogram('nv_llm_http_service_time_to_first_token_seconds', 'model="m"', [0, 0.1, 1], 0.3) +
      'nv_llm_http_service_requests_total{model="m",status="success"} 4\nnv_llm_http_service_requests_total{model="m",status="error"} 1\n' +
      'nv_llm_http_service_inflight_requests{model="m"} 2\n',
    { ttft: 0.1, finishes: 5, running: 2 },
  ],
  [
    "Dynamo's router, whose inter-token latency is a mean of each request",
    'Dynamo router',
    `${histogram(
      'dynamo_component_router_inter_token_latency_seconds',
      'dynamo_component="router",router_id="r0"',
      B,
      0.3,
    )}dynamo_component_router_requests_total{dynamo_component="router",router_id="r0"} 10\n`,
    { tpot: 0.1, finishes: 10 },
  ],
  [
    "Dynamo's worker",
    'Dynamo worker',
    histogram('dynamo_component_request_duration_seconds', 'dynamo_component="backend"', B, 3) +
      'dynamo_component_kvstats_gpu_cache_usage_percent{dynamo_component="backend"} 41.5\n' +
      'dynamo_component_errors_total{dynamo_component="backend",error_type="generate"} 2\n',
    { e2e: 1, kv_usage: 0.415, failures: 2 },
  ],
  [
    'the endpoint picker under two names, the newer one taken',
    'endpoint picker',
    ['inference_objective_', 'llm_d_router_epp_']
      .map((p) => histogram(`${p}request_duration_seconds`, 'model_name="m",target_model_name="m"', B, 3))
      .join('') +
      histogram(
        'inference_objective_normalized_time_per_output_token_seconds',
        'model_name="m",target_model_name="m"',
        B,
        0.3,
      ),
    { e2e: 1, tpot: 0.1 },
  ],
  [
    'LiteLLM',
    'LiteLLM',
    histogram('litellm_llm_api_time_to_first_token_metric', 'model="m"', B, 0.3) +
      '# TYPE litellm_proxy_total_requests_metric_total counter\nlitellm_proxy_total_requests_metric_total{status_code="200"} 3\n' +
      'litellm_deployment_failure_responses_total{exception_status="429"} 1\nlitellm_in_flight_requests 2\n',
    { ttft: 0.1, finishes: 3, failures: 1, running: 2 },
  ],
  [
    "SGLang's router",
    'SGLang router',
    histogram('smg_router_ttft_seconds', 'model="m"', B, 0.3) +
      'smg_router_tokens_total{model="m",token_type="input"} 100\nsmg_router_tokens_total{model="m",token_type="output"} 30\n',
    { ttft: 0.1, prompt_tokens: 100, generation_tokens: 30 },
  ],
  [
    'Ray Serve, in milliseconds',
    'Ray Serve',
    histogram('ray_serve_http_request_latency_ms', 'application="a",route="/"', [100, 500, 2000], 3000) +
      'ray_serve_deployment_queued_queries{application="a",deployment="d"} 4\n',
    { e2e: 1, waiting: 4 },
  ],
  [
    'DCGM',
    'DCGM',
    '# TYPE DCGM_FI_DEV_GPU_UTIL gauge\nDCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a"} 80\n' +
      'DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-a"} 1024\nDCGM_FI_DEV_FB_USED_PERCENT{gpu="0",UUID="GPU-a"} 0.9\n' +
      'DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-a"} 350.5\nDCGM_FI_DEV_SM_CLOCK{gpu="0",UUID="GPU-a"} 1980\n' +
      'DCGM_FI_DEV_MEM_CLOCK{gpu="0",UUID="GPU-a"} 2619\n',
    { gpu_utilisation: 0.8, gpu_memory: 1024 * 1024 * 1024, gpu_power: 350.5, gpu_clock: 1980 },
  ],
];

describe('the engines', () => {
  it.each(ENGINES)('%s', (_, engine, text, expected) => {
    const d = merged({ a: text });
    expect(d.errors).toEqual([]);
    expect([...new Set(d.replicas.map((r) => r.engine))]).toEqual([engine]);
    const found = figures(d);
    for (const [concept, value] of Object.entries(expected)) expect(found[concept], concept).toBeCloseTo(value, 9);
    expect(Object.keys(found).sort()).toEqual(Object.keys(expected).sort());
  });

  it('says of every duration when its clock starts, what one observation is and when it is recorded', () => {
    for (const [name, , text] of ENGINES) {
      const d = merged({ a: text });
      for (const concept of ['queue', 'prefill', 'inference', 'ttft', 'itl', 'e2e'] as const) {
        const meaning = d[concept]?.meaning;
        if (meaning === undefined) continue;
        expect(meaning.clock, `${name} ${concept}`).toBeTruthy();
        expect(meaning.observation, `${name} ${concept}`).toBeTruthy();
        expect(meaning.recorded, `${name} ${concept}`).toBeTruthy();
      }
    }
  });

  it('does not add the models of one Triton, which may count one request each', () => {
    const of = (model: string) =>
      `nv_inference_request_duration_us{model="${model}",version="1"} 1000000\n` +
      `nv_inference_request_success{model="${model}",version="1"} 4\n`;
    const d = merged({ a: of('ensemble') + of('tensorrt_llm'), b: of('tensorrt_llm') });
    expect(d.e2e?.count).toBeUndefined();
    expect(d.e2e?.apart?.map((p) => [p.meaning.observation, p.count])).toEqual([
      ['an inference request, of the model ensemble', 4],
      ['an inference request, of the model tensorrt_llm', 8],
    ]);
  });

  it('keeps frontends, routers and GPUs beside the engine apart from it', () => {
    const engine = histogram('vllm:time_to_first_token_seconds', `engine="0",${MODEL}`, B, 0.3);
    const frontend = histogram('dynamo_frontend_time_to_first_token_seconds', 'model="m"', B, 3);
    const d = merged({ worker: engine, frontend });
    expect(d.ttft).toMatchObject({ count: 3, replicas: 1 });
    expect(d.ttft?.notes.join()).toMatch(/Dynamo frontend .* not added/);
  });
});
