/**
 * False alarms of the drift test on stable queues and its power on overloaded ones, over batch medians of M/M/1 waits.
 * `node bench/stats/run.mjs trend [runs]`
 */
import { keyed, type Uniform } from '../../src/base/random.ts';
import { batchMedians } from '../../src/stats/batches.ts';
import { normalCdf } from '../../src/stats/normal.ts';
import { driftTest, mannKendall } from '../../src/stats/trend.ts';
import { mm1Waits } from './queue.ts';

export function main(args: readonly string[]): void {
  const runs = Number(args[0] ?? 300);
  console.log(
    `share of ${runs} runs called an upward drift at 5 % two-sided (2.5 % expected when stable): uncorrected, ours`,
  );
  for (const n of [500, 2000, 5000]) {
    for (const rho of [0.5, 0.7, 0.8, 0.9, 1.05, 1.1, 1.2, 1.5]) {
      const uniform = keyed(3, `trend-${n}-${rho}`);
      let plain = 0;
      let ours = 0;
      for (let run = 0; run < runs; run++) {
        const medians = batchMedians(rho < 1 ? mm1Waits(n, rho, uniform) : overloaded(n, rho, uniform), 20);
        const test = mannKendall(medians)!;
        const z = (Math.abs(test.s) - 1) / (test.deviation / Math.sqrt(test.inflation));
        if (test.s > 0 && 2 * normalCdf(-z) < 0.05) plain++;
        if (driftTest(medians).direction === 'up') ours++;
      }
      const share = (x: number): string => `${((100 * x) / runs).toFixed(1)} %`.padStart(8);
      console.log(`n ${String(n).padStart(4)}  ρ ${rho.toFixed(2)}  ${share(plain)} ${share(ours)}`);
    }
  }
}

/** The same recursion from an empty start; it never settles. */
function overloaded(n: number, rho: number, uniform: Uniform): Float64Array {
  let wait = 0;
  return Float64Array.from({ length: n }, () => {
    const now = wait;
    wait = Math.max(0, wait - Math.log(1 - uniform()) + Math.log(1 - uniform()) / rho);
    return now;
  });
}
