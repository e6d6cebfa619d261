/** What an add to the sketch costs, beside a bare loop that only takes the logarithm. A ratio, since machines differ. */
import { LogSketch } from '../../src/stats/sketch.ts';

export function main(): void {
  const n = 20_000_000;
  const values = new Float64Array(1 << 16);
  for (let i = 0; i < values.length; i++) values[i] = Math.exp(3 + 2 * Math.sin(i * 12.9898));
  const timed = (run: () => number): number => {
    const from = performance.now();
    if (run() < 0) throw new Error('unreachable');
    return performance.now() - from;
  };
  const bare = (): number => {
    let sum = 0;
    for (let i = 0; i < n; i++) sum += Math.ceil(Math.log(values[i & 0xffff]!) * 100);
    return Math.abs(sum);
  };
  const adds = (): number => {
    const s = new LogSketch();
    for (let i = 0; i < n; i++) s.add(values[i & 0xffff]!);
    return s.count;
  };
  timed(bare);
  timed(adds);
  const [floor, cost] = [timed(bare), timed(adds)];
  console.log(
    `20 M adds: ${cost.toFixed(0)} ms (${((cost / n) * 1e6).toFixed(1)} ns each), ${(cost / floor).toFixed(2)} × the logarithm alone`,
  );
  const s = new LogSketch();
  for (const v of values) s.add(v);
  console.log(
    `99 quantiles: ${timed(() => s.quantiles(Array.from({ length: 99 }, (_, i) => (i + 1) / 100)).length).toFixed(2)} ms`,
  );
}
