/** The cap: the largest batch at which the target share of requests still keeps the pace with the batch kept full. */
import type { Share } from '../base/units.ts';
import type { Contract, Limits } from '../core/contract.ts';
import { judge, measureOptions } from '../core/judge.ts';
import { metricsOf, simulate } from '../sim/index.ts';
import type { PlanAsk, Replica } from './options.ts';
import { withoutTokens } from './probe.ts';
import { closedTraffic, tokensOf } from './traffic.ts';

/** Larger caps are not tried: vLLM's own default is 256, its largest captured graph 512. */
export const LARGEST_CAP = 512;

export type CapBound = 'tpot' | 'kv-pool' | 'measured' | 'limit';

export interface CapFound {
  readonly cap: number;
  /** What keeps it from being larger: pace, the KV pool, what a profile's engine was run with, or the largest tried. */
  readonly bound: CapBound;
  /** Requests a second with the batch kept full: more than any open load sustains. */
  readonly full: number;
}

/** By bisection over closed loops that keep the batch full; attainment of the per-token limits falls with the batch. */
export function largestCap(ask: PlanAsk, replica: Replica): CapFound {
  const pool = poolOf(ask, replica);
  const measured = replica.mostSeqs ?? Number.POSITIVE_INFINITY;
  const most = mostSequences(ask, replica);
  const bound = pool <= most ? 'kv-pool' : measured <= most ? 'measured' : 'limit';
  const fullAt = (cap: number, kind: CapBound): CapFound => ({ cap, bound: kind, full: pace(ask, replica, cap).rate });
  if (![ask.contract, ...Object.values(ask.contracts ?? {})].some(({ limits }) => isPaced(limits)))
    return fullAt(most, bound);
  const widest = pace(ask, replica, most);
  if (widest.margin >= 0) return { cap: most, bound, full: widest.rate };
  let low = 0;
  let high = most;
  let full = 0;
  // A cap need not be finer than a few percent.
  while (high - low > Math.max(1, Math.floor(low / 32))) {
    const mid = low === 0 ? Math.max(1, Math.floor(high / 4)) : Math.floor(Math.sqrt(low * high));
    const at = Math.min(high - 1, Math.max(low + 1, mid));
    const found = pace(ask, replica, at);
    if (found.margin >= 0) {
      low = at;
      full = found.rate;
    } else high = at;
  }
  return low > 0 ? { cap: low, bound: 'tpot', full } : fullAt(1, 'tpot');
}

/** The largest batch worth trying: what the pool holds, and a profile's engine was run with. */
export function mostSequences(ask: PlanAsk, replica: Replica): number {
  return Math.max(1, Math.min(LARGEST_CAP, poolOf(ask, replica), replica.mostSeqs ?? Number.POSITIVE_INFINITY));
}

const isPaced = ({ tpot, gap, smoothness }: Limits): boolean =>
  tpot !== undefined || gap !== undefined || smoothness !== undefined;

/** Sequences of the traffic's mean length that the KV pool holds. */
function poolOf(ask: PlanAsk, replica: Replica): number {
  const { input, output } = tokensOf(ask.traffic);
  const limits = replica.limits(1);
  return Math.floor((limits.kvBlocks * limits.blockTokens) / (input + output));
}

/** The contract without what does not depend on the pace. */
function paceOf(contract: Contract): Contract {
  const { tpot, gap, smoothness, ttft } = contract.limits;
  const limits = {
    ...(tpot !== undefined && { tpot }),
    ...(gap !== undefined && { gap }),
    ...(smoothness !== undefined && { smoothness, ttft: ttft ?? Number.MAX_SAFE_INTEGER }),
  };
  return { ...contract, limits, deadline: Number.MAX_SAFE_INTEGER };
}

/**
 * With `cap` sequences always in the batch: the share of requests within the limits on pace, how far it (or a class's under
 * its own contract) is above its target, and requests a second.
 */
export function pace(
  ask: PlanAsk,
  replica: Replica,
  cap: number,
): { readonly share: Share; readonly margin: number; readonly rate: number } {
  const all = paceOf(ask.contract);
  const own = Object.fromEntries(Object.entries(ask.contracts ?? {}).map(([name, c]) => [name, paceOf(c)]));
  const tokens = [all, ...Object.values(own)].some(
    ({ limits }) => limits.gap !== undefined || limits.smoothness !== undefined,
  );
  const warm = 2 * cap;
  const want = warm + Math.max(200, 3 * cap);
  const counts = new Map<string, { good: number; counted: number }>();
  let seen = 0;
  let [from, to] = [0, 0];
  const count = (name: string, good: boolean): void => {
    const c = counts.get(name) ?? { good: 0, counted: 0 };
    counts.set(name, { good: c.good + (good ? 1 : 0), counted: c.counted + 1 });
  };
  simulate(closedTraffic(ask.traffic, cap, ask.seed), replica.cluster(cap), (done) => {
    if (++seen === warm) from = done.ended;
    if (seen <= warm) return false;
    to = done.ended;
    const contract = own[done.spec.class] ?? all;
    const facts = { outcome: 'completed' as const, streamed: true, asked: { output: done.spec.outputTokens } };
    const metrics = tokens ? metricsOf(done, measureOptions(contract)) : withoutTokens(done);
    const good = done.outcome === 'completed' && judge(metrics, facts, contract).class === 'good';
    count('', good);
    if (own[done.spec.class]) count(done.spec.class, good);
    return seen >= want;
  });
  const shareOf = (name: string): Share => {
    const c = counts.get(name);
    return c ? c.good / c.counted : name === '' ? 0 : 1;
  };
  const margins = Object.entries(own).map(([name, c]) => shareOf(name) - c.attainment);
  const seconds = (to - from) / 1000;
  return {
    share: shareOf(''),
    margin: Math.min(shareOf('') - ask.contract.attainment, ...margins),
    rate: seconds > 0 ? (seen - warm) / seconds : 0,
  };
}
