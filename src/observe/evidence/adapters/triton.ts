import { oneLine } from '../../../base/errors.ts';
import type { Concept } from '../../../core/evidence.ts';
import { type Adapter, type Mapped, prefixed } from '../adapter.ts';

/** Of no model's requests, or of all. */
const GAUGES: ReadonlySet<Concept> = new Set(['running', 'waiting', 'kv_usage', 'process_start'] as const);
const FINISH = 'when the request finishes';
const size = { observation: 'a request', recorded: FINISH, unit: 'tokens' } as const;

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

/** Triton: microseconds in counters; a response is a chunk. Each model of an ensemble counts the same request. */
export const TRITON: Adapter = {
  engine: 'Triton',
  role: 'engine',
  local: prefixed('nv_inference_', 'nv_trt_llm_', 'nv_llm_'),
  mend(told, _, model) {
    if (model === undefined) return;
    for (const [concept, one] of told) {
      if (GAUGES.has(concept)) continue;
      const observation = `${one.meaning.observation}, of the model ${oneLine(model, 80)}`;
      told.set(concept, { ...one, meaning: { ...one.meaning, observation } });
    }
  },
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
      where: { request_type: ['scheduled'] },
      observation: 'requests scheduled for the step',
      unit: 'requests',
    },
    {
      concept: 'running',
      names: ['request_metrics'],
      where: { request_type: ['active'] },
      observation: 'requests taken into the batcher',
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
