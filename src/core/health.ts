/**
 * Whether the client that measured was itself the bottleneck. Such a run proves nothing about the server: the report says
 * so first.
 */
import type { Millis, Share } from '../base/units.ts';
import { type Contract, tightestCadence } from './contract.ts';

export interface Spread {
  readonly p50: Millis;
  readonly p99: Millis;
  readonly max: Millis;
}

/** What the generator saw of itself. */
export interface ClientHealth {
  /** Dispatched − scheduled of the cohort; absent when nothing was dispatched. */
  readonly sendLag?: Spread;
  /** How much later than planned the event loop came round; absent where there is none (simulation). */
  readonly eventLoop?: Spread;
  /** By how much stamps may be late because other streams that were ready together were read first: their bias in lock-step. */
  readonly stampLate?: Spread;
  /** Share of stream events that shared an earlier one's read. */
  readonly coalesced?: Share;
  /** CPU time over wall time of the measuring process, 1 = one core. */
  readonly cpu?: number;
  /** Offers the client never sent because of its own limits (not turns whose predecessor failed). */
  readonly unsent: number;
  /** Records dropped on the way to the run folder. */
  readonly dropped: number;
}

export type ClientVerdict = 'ok' | 'client-bound';

/**
 * DEFINITIONS, "Is the measurement valid?": `client-bound` iff send lag p99 > max(2 ms, 5 % of the TTFT limit), or
 * event-loop delay p99 > 10 % of the tightest TPOT or gap limit, or the client left anything unsent by its own limit.
 */
export function clientVerdict(health: ClientHealth, contract: Contract): { verdict: ClientVerdict; why: string[] } {
  const why: string[] = [];
  const lagLimit = Math.max(2, 0.05 * (contract.limits.ttft ?? 0));
  const lag = health.sendLag?.p99 ?? 0;
  if (lag > lagLimit) why.push(`send lag p99 ${lag.toFixed(1)} ms is above ${lagLimit.toFixed(1)} ms`);
  const cadence = tightestCadence(contract.limits);
  const delay = health.eventLoop?.p99 ?? 0;
  if (cadence !== undefined && delay > 0.1 * cadence) {
    why.push(`event-loop delay p99 ${delay.toFixed(1)} ms is above ${(0.1 * cadence).toFixed(1)} ms`);
  }
  if (health.unsent > 0) why.push(`${health.unsent} operations were never sent: the client's own limit`);
  return { verdict: why.length > 0 ? 'client-bound' : 'ok', why };
}
