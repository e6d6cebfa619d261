/** Evidence that is missing and would decide, and how to get it. */
import type { ChangeTest } from './change.ts';
import { type FactId, type Facts, lacks } from './facts.ts';
import { QUANTITIES, type QuantityId } from './quantities.ts';
import type { Scores } from './score.ts';
import type { Measures } from './table.ts';

export interface Missing {
  readonly what: string;
  readonly side: 'before' | 'after' | 'both';
  /** Causes it would tell apart. */
  readonly decides: readonly string[];
  readonly how: string;
}

const CLIENT = 'measure with `goodput bench`, or put `goodput proxy` in front, and give the run folder';
const SERVER = 'scrape /metrics at the start and the end of the window (`--before start.txt..end.txt`)';

const HOW: Readonly<Partial<Record<QuantityId, string>>> = {
  ttft: CLIENT,
  tpot: `${CLIENT}; the server's inter-token latency histogram also serves`,
  queue: `${SERVER}: vllm:request_queue_time_seconds, sglang:queue_time_seconds`,
  prefill: `${SERVER}: vllm:request_prefill_time_seconds`,
  frontend: `${SERVER}: TTFT, queue and prefill times together`,
  delivery: 'both ends of the same window: a run folder and the server metrics of it',
  server_ttft: `${SERVER}: vllm:time_to_first_token_seconds`,
  running_max: 'scrape every second or so over the window, not only at its ends: vllm:num_requests_running',
  running: 'scrape over the window: vllm:num_requests_running',
  waiting: 'scrape over the window: vllm:num_requests_waiting',
  kv_usage: 'scrape over the window: vllm:kv_cache_usage_perc',
  preemptions: `${SERVER}: vllm:num_preemptions_total`,
  hit_rate: `${SERVER}: vllm:prefix_cache_queries_total and _hits_total`,
  computed: `${SERVER}: vllm:request_prefill_kv_computed_tokens`,
  prefill_per_token: `${SERVER}: prefill times, prompt tokens and prefix cache counters`,
  step_tail: `${SERVER}: vllm:iteration_tokens_total`,
  step_tokens: `${SERVER}: vllm:iteration_tokens_total`,
  acceptance: `${SERVER}: vllm:spec_decode_num_draft_tokens_total and _accepted_tokens_total`,
  tokens_per_step: `${SERVER}: generation tokens, and vllm:spec_decode_num_accepted_tokens_total`,
  transfer: 'the KV connector’s transfer time, from its metrics or spans',
  load_share: 'the load duration the server tells with each answer',
  rate: CLIENT,
  dispersion: CLIENT,
  attempts: CLIENT,
  send_lag_p99: CLIENT,
  replicas: 'the metrics of every replica, not of their sum',
  skew: 'the metrics of every replica, not of their sum',
  replica_ttft: 'the metrics of every replica, not of their sum',
  gpu_clock: 'DCGM or node metrics of the GPU clock',
  stall_time: 'the receipt of every chunk of many streams at once: a run folder',
  bunched: 'the receipt of every chunk: a run folder',
};

/** The quantity behind a fact; flags and marks have none. */
function quantityOf(id: FactId): QuantityId | undefined {
  const name = id.startsWith('part.') ? id.slice(5) : id === 'path' ? 'server_ttft' : id;
  return Object.hasOwn(QUANTITIES, name) ? (name as QuantityId) : undefined;
}

export function missingOf(
  a: Measures,
  b: Measures,
  facts: Facts,
  scores: Scores,
  change: ChangeTest,
  hasChanges: boolean,
): Missing[] {
  const missing = new Map<string, { side: Missing['side']; decides: string[]; how: string }>();
  const add = (what: string, side: Missing['side'], cause: string | undefined, how: string): void => {
    const had = missing.get(what);
    if (had) {
      if (cause !== undefined && !had.decides.includes(cause)) had.decides.push(cause);
    } else missing.set(what, { side, decides: cause === undefined ? [] : [cause], how });
  };
  if (change.changes.length === 0) add('TTFT or TPOT', 'both', undefined, CLIENT);
  // The likely ones, and the next few that were not told from them.
  for (const { cause, probability } of scores.causes.slice(0, 6)) {
    if (probability < 0.01) continue;
    for (const id of [...cause.deciding, ...(cause.needs ?? []).flat()]) {
      if (facts.has(id)) continue;
      const quantity = quantityOf(id);
      if (quantity === undefined) {
        if (!hasChanges)
          add(
            'what was changed',
            'both',
            cause.id,
            'give --changes FILE with versions, flags, process starts and model loads',
          );
        continue;
      }
      const side = lacks(a, b, quantity);
      if (side) add(QUANTITIES[quantity].label, side, cause.id, HOW[quantity] ?? `${SERVER}, or ${CLIENT}`);
    }
  }
  return [...missing].map(([what, m]) => ({ what, ...m }));
}
