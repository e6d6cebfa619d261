/**
 * Coverage and width of intervals from k independent runs of M/M/1 waits. `node bench/stats/run.mjs replications [trials]`
 */
import { keyed } from '../../src/base/random.ts';
import { attainmentInterval } from '../../src/stats/attainment.ts';
import { type Interval, wilson } from '../../src/stats/binomial.ts';
import { bootstrapReplications, replicationInterval, shareFromReplications } from '../../src/stats/replications.ts';
import { mm1WaitQuantile, mm1Waits } from './queue.ts';

const METHODS = ['naive pooled', 't', 't and score', 'bootstrap'] as const;

export function main(args: readonly string[]): void {
  const trials = Number(args[0] ?? 200);
  console.log(`coverage % / mean width of nominal 95 % intervals, ${trials} trials a line`);
  console.log(`ρ    n     k   p     ${METHODS.map((m) => m.padEnd(13)).join('  ')}`);
  for (const rho of [0.7, 0.9]) {
    for (const k of [3, 5, 10]) for (const p of [0.8, 0.9, 0.95, 0.99]) line(2000, rho, k, p, trials);
  }
}

function line(n: number, rho: number, k: number, p: number, trials: number): void {
  const uniform = keyed(2, `replications-${rho}-${k}-${p}`);
  const limit = mm1WaitQuantile(p, rho);
  const tally = METHODS.map(() => ({ covered: 0, width: 0 }));
  for (let trial = 0; trial < trials; trial++) {
    const shares: number[] = [];
    let effectiveN = 0;
    for (let run = 0; run < k; run++) {
      const latent = mm1Waits(n, rho, uniform);
      const interval = attainmentInterval(
        Uint8Array.from(latent, (w) => (w <= limit ? 1 : 0)),
        latent,
      )!;
      shares.push(interval.value);
      effectiveN += interval.effectiveN;
    }
    const pooled = shares.reduce((a, b) => a + b, 0) / k;
    const intervals: Interval[] = [
      wilson(pooled, n * k),
      replicationInterval(shares),
      shareFromReplications(shares, { effectiveN }),
      bootstrapReplications(shares, trial),
    ];
    intervals.forEach(({ low, high }, i) => {
      if (low <= p && p <= high) tally[i]!.covered++;
      tally[i]!.width += (high - low) / trials;
    });
  }
  const cells = tally.map(
    ({ covered, width }) => `${((100 * covered) / trials).toFixed(1).padStart(5)} / ${width.toFixed(3)}`,
  );
  console.log(`${rho}  ${n}  ${String(k).padStart(2)}  ${p.toFixed(2)}  ${cells.join('  ')}`);
}
