import { type Adapter, prefixed } from '../adapter.ts';

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
