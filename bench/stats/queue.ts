/** A single-server queue with known truth, to prove interval methods on. Service rate 1; times in mean service times. */
import type { Uniform } from '../../src/base/random.ts';

/** Waits of `n` customers of an M/M/1 queue in steady state (Lindley's recursion from a stationary start). */
export function mm1Waits(n: number, utilisation: number, uniform: Uniform): Float64Array {
  const exponential = (): number => -Math.log(1 - uniform());
  const waits = new Float64Array(n);
  let wait = uniform() < 1 - utilisation ? 0 : exponential() / (1 - utilisation);
  for (let i = 0; i < n; i++) {
    waits[i] = wait;
    wait = Math.max(0, wait + exponential() - exponential() / utilisation);
  }
  return waits;
}

/** The wait that a share `p` of customers does not exceed; p > 1 − utilisation. */
export function mm1WaitQuantile(p: number, utilisation: number): number {
  return -Math.log((1 - p) / utilisation) / (1 - utilisation);
}
