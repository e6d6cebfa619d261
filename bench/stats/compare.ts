/**
 * How often comparisons claim a difference that is not there, and find one that is: mean wait of two M/M/1 queues fed the
 * same arrivals, the second serving 0 or 3 % slower. `node bench/stats/run.mjs compare [trials]`
 */
import { keyed, type Uniform } from '../../src/base/random.ts';
import { effectOfPairedRuns, effectOfRuns, pairedDifference, unpairedDifference } from '../../src/stats/compare.ts';

export function main(args: readonly string[]): void {
  const trials = Number(args[0] ?? 100);
  const n = 2000;
  console.log(`share of ${trials} trials that claim a difference in mean wait at 5 %; n = ${n} a run`);
  console.log('ρ    slower  run spread  unpaired b=1  unpaired   paired  3 runs a side  3 pairs');
  for (const rho of [0.5, 0.8]) {
    for (const [slower, spread] of [
      [0, 0],
      [0.03, 0],
      [0, 0.03],
    ] as const) {
      const uniform = keyed(4, `compare-${rho}-${slower}-${spread}`);
      const found = [0, 0, 0, 0, 0];
      for (let trial = 0; trial < trials; trial++) {
        const speed = (): number => 1 + spread * (2 * uniform() - 1) * Math.sqrt(3);
        const [a, b] = twin(n, rho, speed(), (1 + slower) * speed(), uniform);
        const c = twin(n, rho, 1, (1 + slower) * speed(), uniform)[1]; // an unrelated run of B
        const apart = ({ low, high }: { low: number; high: number }): boolean => low > 0 || high < 0;
        const options = { seed: trial, resamples: 300 };
        if (apart(unpairedDifference(a, c, { ...options, block: 1 }))) found[0]!++;
        if (apart(unpairedDifference(a, c, options))) found[1]!++;
        if (apart(pairedDifference(a, b, options))) found[2]!++;
        const means = [0, 1, 2].map(() => twin(n, rho, speed(), (1 + slower) * speed(), uniform).map(mean));
        if (
          apart(
            effectOfRuns(
              means.map((m) => m[0]!),
              means.map((m) => m[1]!),
            ),
          )
        )
          found[3]!++;
        if (
          apart(
            effectOfPairedRuns(
              means.map((m) => m[0]!),
              means.map((m) => m[1]!),
            ),
          )
        )
          found[4]!++;
      }
      const cells = found.map((x) => `${((100 * x) / trials).toFixed(0)} %`.padStart(10));
      console.log(`${rho}  ${String(slower).padEnd(6)}  ${String(spread).padEnd(6)}  ${cells.join(' ')}`);
    }
  }
}

/** Waits of two queues with the same arrivals and the same work, served at mean service times `a` and `b`. */
function twin(n: number, rho: number, a: number, b: number, uniform: Uniform): [Float64Array, Float64Array] {
  const waits: [Float64Array, Float64Array] = [new Float64Array(n), new Float64Array(n)];
  let [x, y] = [0, 0];
  for (let i = -1000; i < n; i++) {
    if (i >= 0) [waits[0][i], waits[1][i]] = [x, y];
    const work = -Math.log(1 - uniform());
    const gap = -Math.log(1 - uniform()) / rho;
    x = Math.max(0, x + a * work - gap);
    y = Math.max(0, y + b * work - gap);
  }
  return waits;
}

function mean(x: Float64Array): number {
  return x.reduce((sum, v) => sum + v, 0) / x.length;
}
