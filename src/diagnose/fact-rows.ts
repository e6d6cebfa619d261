/** Facts that are one quantity's change, and from which size on it is a change and a large one. */
import type { QuantityId } from './quantities.ts';

export interface Row {
  readonly quantity: QuantityId;
  readonly kind: 'ratio' | 'difference' | 'share';
  /** Beyond it there is a change, and a large one: ln ratio, difference, or share of ΔTTFT. */
  readonly small: number;
  readonly large: number;
  /** Added to both sides of a ratio that may be of zeros. */
  readonly floor?: number;
}

const ratio = (quantity: QuantityId, small: number, large: number, floor?: number): Row => ({
  quantity,
  kind: 'ratio',
  small: Math.log(small),
  large: Math.log(large),
  ...(floor !== undefined && { floor }),
});
const difference = (quantity: QuantityId, small: number, large: number): Row => ({
  quantity,
  kind: 'difference',
  small,
  large,
});
const part = (quantity: QuantityId): Row => ({ quantity, kind: 'share', small: 0.15, large: 0.5 });

/** Facts that are one quantity's change. */
export const ROWS = {
  ttft: ratio('ttft', 1.08, 1.3),
  ttft_p50: ratio('ttft_p50', 1.08, 1.3),
  ttft_p99: ratio('ttft_p99', 1.15, 1.5),
  tpot: ratio('tpot', 1.05, 1.2),
  itl_p50: ratio('itl_p50', 1.05, 1.2),
  itl_p99: ratio('itl_p99', 1.15, 1.5),
  gap: ratio('gap', 1.1, 1.4),
  latency: ratio('latency', 1.06, 1.25),
  'part.client': part('client'),
  'part.connect': part('connect'),
  'part.queue': part('queue'),
  'part.prefill': part('prefill'),
  'part.frontend': part('frontend'),
  'part.delivery': part('delivery'),
  'part.transfer': part('transfer'),
  'part.load': part('load'),
  rate: ratio('rate', 1.06, 1.2),
  dispersion: ratio('dispersion', 1.5, 2.5),
  attempts: difference('attempts', 0.02, 0.08),
  failed: difference('failed', 0.01, 0.08),
  prompt: ratio('prompt', 1.06, 1.22),
  computed: ratio('computed', 1.07, 1.25),
  hit_rate: difference('hit_rate', 0.04, 0.15),
  prefill_per_token: ratio('prefill_per_token', 1.1, 1.3),
  output: ratio('output', 1.06, 1.22),
  running: ratio('running', 1.1, 1.35, 0.2),
  running_max: ratio('running_max', 1.12, 1.35, 0.2),
  waiting: ratio('waiting', 1.3, 2.5, 0.5),
  kv_usage: difference('kv_usage', 0.07, 0.25),
  preemptions: difference('preemptions', 0.01, 0.06),
  throughput: ratio('throughput', 1.1, 1.4),
  step_tokens: ratio('step_tokens', 1.1, 1.35),
  step_tail: ratio('step_tail', 1.3, 1.8),
  acceptance: difference('acceptance', 0.03, 0.1),
  tokens_per_step: ratio('tokens_per_step', 1.05, 1.2),
  replicas: ratio('replicas', 1.03, 1.1),
  skew: difference('skew', 0.12, 0.35),
  replica_ttft: difference('replica_ttft', 0.3, 0.8),
  gpu_clock: ratio('gpu_clock', 1.03, 1.08),
  send_lag_p99: difference('send_lag_p99', 3, 15),
  event_loop_p99: difference('event_loop_p99', 3, 15),
  chunk_tokens: ratio('chunk_tokens', 1.2, 1.7),
  bunched: difference('bunched', 0.08, 0.35),
  ttft_share: difference('ttft_share', 0.1, 0.35),
  at_once: difference('at_once', 0.1, 0.85),
  load_share: difference('load_share', 0.03, 0.12),
  stall_time: difference('stall_time', 0.008, 0.04),
  stall_regular: difference('stall_regular', 0.3, 0.6),
  stall_released: difference('stall_released', 0.6, 2),
  stall_prefill: difference('stall_prefill', 0.25, 0.6),
  early: ratio('early', 1.2, 1.6),
  ttft_early: ratio('ttft_early', 1.15, 1.5),
  switched: ratio('switched', 1.15, 1.5),
  long_short: ratio('long_short', 1.12, 1.35),
  bimodal: difference('bimodal', 0.8, 2),
  decode_prefill: difference('decode_prefill', 0.05, 0.25),
  one_class: difference('one_class', 0.45, 0.8),
} as const satisfies Readonly<Record<string, Row>>;

export type RowId = keyof typeof ROWS;
