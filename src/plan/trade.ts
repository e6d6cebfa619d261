/** Which metric to protect: what a larger batch buys and costs, on this model and GPU, by closed loops that keep it full. */
import { formatDuration, type Millis, type Share } from '../base/units.ts';
import { simulate, summaryOf } from '../sim/index.ts';
import { quantile } from '../stats/quantile.ts';
import type { PlanAsk, Replica } from './options.ts';
import { closedTraffic } from './traffic.ts';

export interface TradeRow {
  readonly batch: number;
  readonly requestsPerSecond: number;
  readonly tokensPerSecond: number;
  readonly ttftP90: number;
  readonly tpotP90: number;
  readonly e2eP90: number;
  /** The per-token limits hold for the target share. */
  readonly share?: Share;
}

export function tradeRows(ask: PlanAsk, replica: Replica, batches: readonly number[]): TradeRow[] {
  return batches.map((batch) => {
    const warm = 2 * batch;
    const want = warm + Math.max(200, 3 * batch);
    const ttft: number[] = [];
    const tpot: number[] = [];
    const e2e: number[] = [];
    let tokens = 0;
    let seen = 0;
    let from = 0;
    let to = 0;
    simulate(closedTraffic(ask.traffic, batch, ask.seed), replica.cluster(batch), (done) => {
      if (++seen === warm) from = done.ended;
      if (seen <= warm) return false;
      const m = summaryOf(done);
      if (m.ttft !== undefined) ttft.push(m.ttft);
      if (m.tpot !== undefined) tpot.push(m.tpot);
      e2e.push(m.e2e);
      tokens += m.n;
      to = done.ended;
      return seen >= want;
    });
    const p90 = (values: number[]): number => quantile(Float64Array.from(values).sort(), 0.9) ?? Number.NaN;
    const seconds = (to - from) / 1000;
    return {
      batch,
      requestsPerSecond: e2e.length / seconds,
      tokensPerSecond: tokens / seconds,
      ttftP90: p90(ttft),
      tpotP90: p90(tpot),
      e2eP90: p90(e2e),
    };
  });
}

/** A chat contract's own pace where the ask has none: the limit of the `chat` preset. */
export interface ChatPace {
  readonly tpot: Millis;
  readonly from: 'contract' | 'preset';
}

export function chatPace(ask: PlanAsk, preset: Millis): ChatPace {
  const limits = [ask.contract, ...Object.values(ask.contracts ?? {})].flatMap(({ limits: l }) => l.tpot ?? []);
  return limits.length > 0 ? { tpot: Math.min(...limits), from: 'contract' } : { tpot: preset, from: 'preset' };
}

/** What to protect under a chat contract, a batch contract and a mix of both, with the numbers of these rows. */
export function protectText(rows: readonly TradeRow[], { tpot, from }: ChatPace): string[] {
  const first = rows[0];
  const last = rows.at(-1);
  if (!first || !last || first === last) return [];
  const kept = rows.filter((r) => r.tpotP90 <= tpot);
  const within = kept.at(-1);
  const n = (x: number): string => Number(x.toPrecision(3)).toString();
  const ms = (x: number): string => formatDuration(Number(x.toPrecision(3)));
  const limit = `${ms(tpot)}${from === 'preset' ? ", the chat preset's" : ''}`;
  const trade =
    `From a batch of ${first.batch} to ${last.batch}: throughput × ${n(last.tokensPerSecond / first.tokensPerSecond)}; ` +
    `TTFT p90 ${ms(first.ttftP90)} to ${ms(last.ttftP90)}, TPOT p90 ${ms(first.tpotP90)} to ${ms(last.tpotP90)}, E2E p90 ${ms(first.e2eP90)} to ${ms(last.e2eP90)}.`;
  const most = rows.reduce((a, r) => (r.tokensPerSecond > a.tokensPerSecond ? r : a), first);
  const batch = `Batch: nobody reads along. Protect throughput, and of latencies E2E alone: ${n(most.tokensPerSecond)} tokens/s at ${most.batch}, at ${ms(most.tpotP90)} a token.`;
  if (!within) {
    return [
      trade,
      `Chat: no batch keeps TPOT p90 within ${limit}: a single sequence takes ${ms(first.tpotP90)}; use a faster accelerator, more of them a replica, or fewer bits.`,
      batch,
    ];
  }
  const gain = most.tokensPerSecond / within.tokensPerSecond;
  if (gain < 1.02) {
    return [
      trade,
      `Chat: TPOT p90 stays within ${limit} up to a batch of ${within.batch}, beyond which there is hardly more throughput to have: protect TTFT, which queueing breaks first, by adding replicas.`,
      batch,
      'Mixed: one pool serves both; the pace costs no throughput here. A queue of batch work still delays the first token of a chat.',
    ];
  }
  // The work in half the tokens, done at the batch pool's pace instead of the chat pool's.
  const saved = 1 - (0.5 + 0.5 / gain);
  return [
    trade,
    `Chat: protect TPOT by capping the batch near ${within.batch} (p90 ${ms(within.tpotP90)} of ${limit}), which gives ${n(within.tokensPerSecond)} tokens/s a replica; then protect TTFT by adding replicas, not by a larger batch.`,
    `${batch.slice(0, -1)}, ${n(gain)} × the chat cap.`,
    `Mixed: one pool keeps the tighter promise for all and gives up ${n(100 * (1 - 1 / gain))} % of its throughput; if half the tokens are batch work, two pools need ${n(100 * saved)} % fewer replicas.`,
  ];
}
