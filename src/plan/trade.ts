/** Which metric to protect: what a larger batch buys and costs, on this model and GPU, by closed loops that keep it full. */
import type { Share } from '../base/units.ts';
import { simulate, summaryOf } from '../sim/index.ts';
import { quantile } from '../stats/quantile.ts';
import { closedMix } from '../workload/mix.ts';
import type { PlanAsk, Replica } from './options.ts';

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
  const mix = { ...ask.mix, classes: ask.mix.classes.map(({ session, ...rest }) => rest) };
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
    simulate(closedMix(mix, batch, ask.seed), replica.cluster(batch), (done) => {
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

/** What to protect under a chat contract, a batch contract and a mix of both, with the numbers of these rows. */
export function protectText(ask: PlanAsk, rows: readonly TradeRow[]): string[] {
  const first = rows[0];
  const last = rows.at(-1);
  if (!first || !last || first === last) return [];
  const tpot = ask.contract.limits.tpot;
  const within = tpot === undefined ? last : (rows.filter((r) => r.tpotP90 <= tpot).at(-1) ?? first);
  const n = (x: number): string => Number(x.toPrecision(3)).toString();
  const trade =
    `From a batch of ${first.batch} to ${last.batch}: throughput × ${n(last.tokensPerSecond / first.tokensPerSecond)}, ` +
    `TPOT p90 ${n(first.tpotP90)} to ${n(last.tpotP90)} ms, E2E p90 ${n(first.e2eP90 / 1000)} to ${n(last.e2eP90 / 1000)} s.`;
  const chat =
    tpot === undefined
      ? `Chat: no pace is promised; protect TTFT, and set a TPOT limit before the batch is raised.`
      : `Chat: protect TPOT and TTFT: cap the batch near ${within.batch} (${n(within.tpotP90)} ms of ${n(tpot)} ms), ${n(within.tokensPerSecond)} tokens/s a replica, then add replicas.`;
  const batch = `Batch: nobody reads along; protect throughput: ${n(last.tokensPerSecond)} tokens/s at ${last.batch}, ${n(last.tokensPerSecond / within.tokensPerSecond)} × the chat cap, at ${n(last.tpotP90)} ms a token.`;
  const mixed = `Mixed: one replica keeps the tighter promise for all, and so gives up ${n(100 * (1 - within.tokensPerSecond / last.tokensPerSecond))} % of its throughput; pools of their own, or a cap for chat hours, win it back.`;
  return [trade, chat, batch, mixed];
}
