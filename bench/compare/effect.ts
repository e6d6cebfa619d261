/**
 * What a figure's test does by itself, over many draws: three pairs of runs whose figure differs by a normal run effect of each
 * run and by noise of 1 % inside it. How often no difference is called one (false), and how often 10 % is found, by how much
 * runs of one system really differ, at the level a figure that a contract limits is tested at (0.04 to 0.05).
 */
import { keyed } from '../../src/base/random.ts';
import { ASSUMED_SPREAD, effectOf } from '../../src/report/compare-stats.ts';
import { standardNormal } from '../../src/workload/lengths.ts';

const NOISE = 0.01;
const RULES = {
  'these runs alone': {},
  'spread assumed': { spread: ASSUMED_SPREAD.relative, assumedRuns: ASSUMED_SPREAD.runs },
  '3 % stated': { spread: 0.03 },
} as const;

export function main(args: readonly string[]): void {
  const trials = Number(args[0] ?? 4000);
  const level = Number(args[1] ?? 0.95);
  const u = keyed(Number(args[2] ?? 1), 'effect-bench');
  console.log(`${trials} draws of three pairs; called a difference at p < ${(1 - level).toFixed(2)}`);
  console.log(
    `runs differ by   ${Object.keys(RULES)
      .map((name) => `${name}: false, found`.padEnd(34))
      .join('')}`,
  );
  for (const sd of [0.01, 0.02, 0.03, 0.04, 0.05, 0.07, 0.1]) {
    const counts = Object.keys(RULES).map(() => [0, 0] as [number, number]);
    for (let t = 0; t < trials; t++) {
      const d = Array.from({ length: 3 }, () => sd * Math.SQRT2 * standardNormal(u) + NOISE * standardNormal(u));
      [0, Math.log(1.1)].forEach((shift, k) => {
        const b = d.map((x) => Math.exp(x + shift));
        Object.values(RULES).forEach((rule, r) => {
          const noise = [NOISE, NOISE, NOISE];
          const { p } = effectOf({ a: [1, 1, 1], b, paired: true, scale: 'relative', noise, ...rule });
          if (p < 1 - level) (counts[r] as [number, number])[k as 0 | 1]++;
        });
      });
    }
    const cell = ([f, p]: [number, number]): string =>
      `${((100 * f) / trials).toFixed(1)} %, ${((100 * p) / trials).toFixed(0)} %`.padEnd(34);
    console.log(`${`${Math.round(100 * sd)} %`.padEnd(17)}${counts.map(cell).join('')}`);
  }
}
