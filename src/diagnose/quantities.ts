/** What is measured of a side: every quantity's name, unit and meaning. A told figure is given under the same names. */

export type Unit = 'ms' | 'ms/token' | 'tokens' | 'requests/s' | 'share' | 'requests' | 'count' | 'MHz';

export interface Quantity {
  readonly label: string;
  readonly unit: Unit;
}

export const QUANTITIES = {
  ttft: { label: 'TTFT, mean', unit: 'ms' },
  ttft_p50: { label: 'TTFT, p50', unit: 'ms' },
  ttft_p99: { label: 'TTFT, p99', unit: 'ms' },
  ttft_early: { label: 'TTFT, mean of the first tenth of the window', unit: 'ms' },
  tpot: { label: 'TPOT, mean (server: of ITL)', unit: 'ms' },
  itl_p50: { label: 'ITL p50 (client: mean of middle gaps)', unit: 'ms' },
  itl_p99: { label: 'ITL p99 (client: p90 of largest gaps)', unit: 'ms' },
  gap: { label: 'largest gap of a request, mean', unit: 'ms' },
  latency: { label: 'last-token latency, mean', unit: 'ms' },
  client: { label: 'waiting in the client', unit: 'ms' },
  connect: { label: 'connecting and sending', unit: 'ms' },
  queue: { label: 'server queue', unit: 'ms' },
  prefill: { label: 'prefill', unit: 'ms' },
  server_ttft: { label: "the server's TTFT", unit: 'ms' },
  frontend: { label: "server's TTFT less queue and prefill", unit: 'ms' },
  delivery: { label: "client's TTFT from sending, less the server's", unit: 'ms' },
  transfer: { label: 'KV transfer', unit: 'ms' },
  load: { label: 'loading the model', unit: 'ms' },
  load_share: { label: 'requests that loaded a model', unit: 'share' },
  rate: { label: 'requests offered', unit: 'requests/s' },
  dispersion: { label: 'arrival counts, variance over mean', unit: 'count' },
  attempts: { label: 'attempts an operation', unit: 'count' },
  failed: { label: 'requests that did not complete', unit: 'share' },
  prompt: { label: 'prompt tokens a request', unit: 'tokens' },
  hit_rate: { label: 'prompt tokens found in the prefix cache', unit: 'share' },
  computed: { label: 'prompt tokens computed a request', unit: 'tokens' },
  prefill_per_token: { label: 'prefill per computed token', unit: 'ms/token' },
  output: { label: 'output tokens a request', unit: 'tokens' },
  running: { label: 'requests running', unit: 'requests' },
  running_max: { label: 'requests running, most seen', unit: 'requests' },
  waiting: { label: 'requests waiting', unit: 'requests' },
  kv_usage: { label: 'KV cache in use', unit: 'share' },
  preemptions: { label: 'preemptions a request', unit: 'count' },
  step_tokens: { label: 'tokens a step', unit: 'tokens' },
  step_tail: { label: 'tokens of the step a token is computed in', unit: 'tokens' },
  throughput: { label: 'output tokens a second', unit: 'count' },
  acceptance: { label: 'drafted tokens accepted', unit: 'share' },
  tokens_per_step: { label: 'tokens a step of a sequence (1 and the drafted ones accepted)', unit: 'tokens' },
  replicas: { label: 'replicas serving', unit: 'count' },
  skew: { label: "busiest replica's load over the mean", unit: 'count' },
  replica_ttft: { label: "slowest replica's TTFT over the mean", unit: 'count' },
  gpu_clock: { label: 'GPU clock', unit: 'MHz' },
  gpu_utilisation: { label: 'GPU utilisation', unit: 'share' },
  send_lag_p99: { label: 'send lag, p99', unit: 'ms' },
  event_loop_p99: { label: "client's event-loop delay, p99", unit: 'ms' },
  chunk_tokens: { label: 'tokens a chunk', unit: 'tokens' },
  bunched: { label: 'chunks that came with the one before', unit: 'share' },
  at_once: { label: 'answers of several chunks that came within 5 ms', unit: 'share' },
  ttft_share: { label: 'TTFT over last-token latency', unit: 'share' },
  stall_time: { label: 'time in which all streams were silent together', unit: 'share' },
  stall_regular: { label: 'regularity of joint silences', unit: 'share' },
  stall_released: { label: 'chunks released at once as a joint silence ends', unit: 'count' },
  stall_prefill: { label: 'joint silences that end with a first token', unit: 'share' },
  early: { label: 'TTFT of the first tenth of the window over the rest', unit: 'count' },
  switched: { label: 'TTFT of requests whose class was not just served, over the rest', unit: 'count' },
  long_short: { label: 'prefill of the longest third of prompts over the shortest', unit: 'count' },
  one_class: { label: 'share of the change one class holds beyond its requests', unit: 'share' },
  decode_prefill: { label: 'prompt tokens computed on decode replicas', unit: 'share' },
  bimodal: { label: 'separation of two modes of TTFT', unit: 'count' },
} as const satisfies Readonly<Record<string, Quantity>>;

export type QuantityId = keyof typeof QUANTITIES;
export const QUANTITY_IDS = Object.keys(QUANTITIES) as readonly QuantityId[];
