/** `/metrics`: the families of vLLM's V1 engine with its names, types, help texts and labels, and the emulator's own. */
import { histogramSamples, type Labels, type MetricFamily, prometheusText } from '../wire/index.ts';
import type { EngineLoad, Histogram } from './metrics.ts';
import type { CacheConfig, Service } from './service.ts';

/** vLLM's numbers are written by Python. */
const PYTHON = { python: true } as const;
type Values = Readonly<Record<string, number>>;

/** @param started Unix seconds. */
export function metricsText(service: Service, started: number): string {
  return prometheusText(families(service, started), PYTHON);
}

function families(service: Service, started: number): MetricFamily[] {
  const { metrics: m, model, served, lateness } = service;
  const own: Labels = { engine: '0', model_name: model.name };
  const load = loadOf(service);
  const gauge = (name: string, help: string, value: number): MetricFamily => one('gauge', name, help, own, value);
  const counter = (name: string, help: string, value: number): MetricFamily => one('counter', name, help, own, value);
  const histogram = (name: string, help: string, h: Histogram): MetricFamily => histogramFamily(name, help, own, h);
  const by = (type: 'gauge' | 'counter', name: string, help: string, label: string, values: Values): MetricFamily => ({
    name,
    type,
    help,
    samples: Object.entries(values).map(([key, value]) => ({ labels: { ...own, [label]: key }, value })),
  });
  const late = lateness.read();
  return [
    gauge('vllm:num_requests_running', 'Number of requests in model execution batches.', load.running),
    gauge('vllm:num_requests_waiting', 'Number of requests waiting to be processed.', load.waiting),
    by(
      'gauge',
      'vllm:num_requests_waiting_by_reason',
      "Number of waiting requests by reason. Reason labels: 'capacity' = waiting for scheduling capacity; 'deferred' = " +
        'deferred by transient constraints (LoRA budget, KV transfer, blocked status). Sum of all reasons equals ' +
        'vllm:num_requests_waiting.',
      'reason',
      { capacity: load.waiting, deferred: 0 },
    ),
    gauge('vllm:kv_cache_usage_perc', 'KV-cache usage. 1 means 100 percent usage.', load.kvUsage),
    counter(
      'vllm:prefix_cache_queries_total',
      'Prefix cache queries, in terms of number of queried tokens.',
      load.prefixQueries,
    ),
    counter('vllm:prefix_cache_hits_total', 'Prefix cache hits, in terms of number of cached tokens.', load.prefixHits),
    counter('vllm:num_preemptions_total', 'Cumulative number of preemption from the engine.', load.preemptions),
    counter('vllm:prompt_tokens_total', 'Number of prefill tokens processed.', m.promptTokens),
    by('counter', 'vllm:prompt_tokens_by_source_total', 'Number of prompt tokens by source.', 'source', {
      local_compute: m.promptTokens - m.cachedPromptTokens,
      local_cache_hit: m.cachedPromptTokens,
      external_kv_transfer: 0,
    }),
    counter(
      'vllm:prompt_tokens_cached_total',
      'Number of cached prompt tokens (local + external).',
      m.cachedPromptTokens,
    ),
    counter('vllm:generation_tokens_total', 'Number of generation tokens processed.', m.generatedTokens),
    by(
      'counter',
      'vllm:request_success_total',
      'Count of successfully processed requests.',
      'finished_reason',
      m.success,
    ),
    histogram('vllm:request_prompt_tokens', 'Number of prefill tokens processed.', m.requestPrompt),
    histogram('vllm:request_generation_tokens', 'Number of generation tokens processed.', m.requestGeneration),
    histogram('vllm:iteration_tokens_total', 'Histogram of number of tokens per engine_step.', m.iterationTokens),
    histogram(
      'vllm:request_max_num_generation_tokens',
      'Histogram of maximum number of requested generation tokens.',
      m.requestMaxGeneration,
    ),
    histogram('vllm:request_params_n', 'Histogram of the n request parameter.', m.paramsN),
    histogram('vllm:request_params_max_tokens', 'Histogram of the max_tokens request parameter.', m.paramsMaxTokens),
    histogram('vllm:time_to_first_token_seconds', 'Histogram of time to first token in seconds.', m.firstToken),
    histogram('vllm:inter_token_latency_seconds', 'Histogram of inter-token latency in seconds.', m.interToken),
    histogram(
      'vllm:request_time_per_output_token_seconds',
      'Histogram of time_per_output_token_seconds per request.',
      m.perOutputToken,
    ),
    histogram('vllm:e2e_request_latency_seconds', 'Histogram of e2e request latency in seconds.', m.e2e),
    histogram('vllm:request_queue_time_seconds', 'Histogram of time spent in WAITING phase for request.', m.queue),
    histogram(
      'vllm:request_inference_time_seconds',
      'Histogram of time spent in RUNNING phase for request.',
      m.inference,
    ),
    histogram('vllm:request_prefill_time_seconds', 'Histogram of time spent in PREFILL phase for request.', m.prefill),
    histogram('vllm:request_decode_time_seconds', 'Histogram of time spent in DECODE phase for request.', m.decode),
    histogram(
      'vllm:request_prefill_kv_computed_tokens',
      'Histogram of new KV tokens computed during prefill (excluding cached tokens).',
      m.prefillComputed,
    ),
    ...(served.cache ? [cacheConfig(served.cache)] : []),
    {
      name: 'goodput_emulator_faults_total',
      type: 'counter',
      help: 'Requests that were given a fault, by fault.',
      samples: [...m.faults].map(([fault, value]) => ({ labels: { fault }, value })),
    },
    ...(late
      ? [
          {
            name: 'goodput_emulator_lateness_seconds',
            type: 'gauge' as const,
            help: "How late tokens were sent against the engine's own schedule, since the start.",
            samples: [
              { labels: { quantile: '0.5' }, value: late.p50 / 1000 },
              { labels: { quantile: '0.99' }, value: late.p99 / 1000 },
              { labels: { quantile: '1' }, value: late.max / 1000 },
            ],
          },
        ]
      : []),
    one('gauge', 'process_start_time_seconds', 'Start time of the process since unix epoch in seconds.', {}, started),
  ];
}

function loadOf(service: Service): EngineLoad {
  return (
    service.served.load?.() ?? {
      running: service.open,
      waiting: 0,
      kvUsage: 0,
      preemptions: 0,
      prefixQueries: 0,
      prefixHits: 0,
    }
  );
}

function one(type: 'gauge' | 'counter', name: string, help: string, labels: Labels, value: number): MetricFamily {
  return { name, type, help, samples: [{ labels, value }] };
}

function histogramFamily(name: string, help: string, labels: Labels, h: Histogram): MetricFamily {
  return { name, type: 'histogram', help, samples: histogramSamples(labels, h.bounds, h.counts, h.sum, PYTHON) };
}

function cacheConfig(cache: CacheConfig): MetricFamily {
  return one(
    'gauge',
    'vllm:cache_config_info',
    'Information of the LLMEngine CacheConfig',
    {
      engine: '0',
      block_size: String(cache.blockTokens),
      cache_dtype: 'auto',
      enable_prefix_caching: cache.prefixCaching ? 'True' : 'False',
      gpu_memory_utilization: String(cache.gpuMemoryUtilization),
      num_gpu_blocks: String(cache.blocks),
    },
    1,
  );
}
