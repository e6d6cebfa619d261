/**
 * Coverage and width of the single-run attainment interval on M/M/1 waits, beside the naive binomial interval.
 * `node bench/stats/run.mjs attainment [runs]`
 */
import { keyed, type Uniform } from '../../src/base/random.ts';
import { attainmentInterval } from '../../src/stats/attainment.ts';
import { type Interval, wilson } from '../../src/stats/binomial.ts';
import { mm1WaitQuantile, mm1Waits } from './queue.ts';

const METHODS = ['naive', 'latent', 'outcomes'] as const;

export function main(args: readonly string[]): void {
  const runs = Number(args[0] ?? 300);
  console.log(`coverage % / mean width of nominal 95 % intervals, ${runs} runs a line`);
  console.log('process      n     p     naive          with latent    outcomes alone');
  for (const n of [300, 1000, 2000, 5000]) {
    for (const rho of [0, 0.5, 0.7, 0.8, 0.9]) {
      for (const p of [0.6, 0.8, 0.9, 0.95, 0.99]) if (rho === 0 || 1 - p < rho) line(n, rho, p, runs);
    }
  }
}

function line(n: number, rho: number, p: number, runs: number): void {
  const uniform = keyed(1, `attainment-${rho}-${p}-${n}`);
  const tally = METHODS.map(() => ({ covered: 0, width: 0 }));
  for (let run = 0; run < runs; run++) {
    const { latent, limit } = series(n, rho, p, uniform);
    const outcomes = Uint8Array.from(latent, (w) => (w <= limit ? 1 : 0));
    const share = outcomes.reduce((sum, x) => sum + x, 0) / n;
    const intervals: Interval[] = [
      wilson(share, n),
      attainmentInterval(outcomes, latent)!,
      attainmentInterval(outcomes)!,
    ];
    intervals.forEach(({ low, high }, i) => {
      if (low <= p && p <= high) tally[i]!.covered++;
      tally[i]!.width += (high - low) / runs;
    });
  }
  const cells = tally.map(
    ({ covered, width }) => `${((100 * covered) / runs).toFixed(1).padStart(5)} / ${width.toFixed(3)}`,
  );
  const name = rho === 0 ? 'independent' : `M/M/1 ρ=${rho}`;
  console.log(`${name.padEnd(11)} ${String(n).padStart(4)}  ${p.toFixed(2)}  ${cells.join('  ')}`);
}

function series(n: number, rho: number, p: number, uniform: Uniform): { latent: Float64Array; limit: number } {
  if (rho === 0) return { latent: Float64Array.from({ length: n }, uniform), limit: p };
  return { latent: mm1Waits(n, rho, uniform), limit: mm1WaitQuantile(p, rho) };
}
