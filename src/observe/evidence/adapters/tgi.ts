import { type Adapter, prefixed } from '../adapter.ts';

const FINISH = 'when the request finishes';
const request = { observation: 'a request', recorded: FINISH, unit: 'seconds' } as const;
const size = { observation: 'a request', recorded: FINISH, unit: 'tokens' } as const;

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
