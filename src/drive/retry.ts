/** Retries, off by default. They make attempts, never outcomes: the operation still ends once. */
import { keyed } from '../base/random.ts';
import type { Millis } from '../base/units.ts';
import type { RequestRecord } from '../core/record.ts';

export interface RetryPlan {
  /** Attempts after the first. */
  readonly retries: number;
  /** First wait; each further one is twice the last, each jittered to 50–100 %. */
  readonly backoff: Millis;
}

export const NO_RETRY: RetryPlan = { retries: 0, backoff: 500 };

/** Ends that a retry may mend. A bad request or a wrong key will be as bad again. */
export function mayRetry(record: RequestRecord): boolean {
  if (record.outcome === 'rejected' || record.outcome === 'truncated') return true;
  if (record.outcome !== 'failed') return false;
  const status = /^http-(\d+)$/.exec(record.reason)?.[1];
  return status === undefined || Number(status) >= 500 || status === '408';
}

/** The wait before retry `n` (1 for the first) of an operation. */
export function backoffOf(plan: RetryPlan, seed: number, operation: number, n: number): Millis {
  const jitter = 0.5 + 0.5 * keyed(seed, `retry-${n}`, operation)();
  return plan.backoff * 2 ** (n - 1) * jitter;
}
