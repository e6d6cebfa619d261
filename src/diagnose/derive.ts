/**
 * What follows from figures that are known, where it was not measured itself: a report that tells prompt length, hit rate and
 * prefill time has told the time per computed token. Nothing is derived that rests on an assumption of the system's shape.
 */
import { type Estimate, SOURCES } from './estimate.ts';
import type { QuantityId } from './quantities.ts';
import { best, type Measures, put } from './table.ts';

export function deriveFrom(into: Measures): void {
  const known = (id: QuantityId): Estimate | undefined => best(into, id);
  const derive = (
    id: QuantityId,
    from: readonly QuantityId[],
    of: (...x: number[]) => number,
    optional: readonly QuantityId[] = [],
  ): void => {
    if (into.has(id)) return;
    const parts = from.map(known);
    if (parts.some((p) => p === undefined)) return;
    const all = [...(parts as Estimate[]), ...optional.flatMap((o) => known(o) ?? [])];
    const values = [...(parts as Estimate[]).map((p) => p.value), ...optional.map((o) => known(o)?.value ?? 0)];
    const value = of(...values);
    if (!Number.isFinite(value)) return;
    // By differences: each input moved by its own error.
    let squares = 0;
    values.forEach((v, i) => {
      const se = i < parts.length ? (parts[i] as Estimate).se : (known(optional[i - parts.length]!)?.se ?? 0);
      if (se === 0) return;
      const moved = values.slice();
      moved[i] = v + se;
      const effect = of(...moved) - value;
      if (Number.isFinite(effect)) squares += effect * effect;
    });
    const source = SOURCES[Math.max(...all.map((p) => SOURCES.indexOf(p.source)))]!;
    const n = Math.min(...all.map((p) => p.n));
    put(into, id, {
      value,
      se: Math.sqrt(squares),
      n,
      source,
      population: `from ${[...from, ...optional].join(', ')}`,
    });
  };
  derive('computed', ['prompt', 'hit_rate'], (prompt, hits) => prompt! * (1 - hits!));
  derive('prefill_per_token', ['prefill', 'computed'], (prefill, computed) => prefill! / computed!);
  derive('frontend', ['server_ttft', 'queue', 'prefill'], (ttft, queue, prefill) => ttft! - queue! - prefill!);
  // A client's TTFT against the server's: not where the server's is all there is.
  const ttft = known('ttft');
  if (ttft && ttft.source !== 'server-metrics')
    derive('delivery', ['ttft', 'server_ttft'], (t, server, client, connect) => t! - server! - client! - connect!, [
      'client',
      'connect',
    ]);
  derive('ttft_share', ['ttft', 'latency'], (t, latency) => (latency! > 0 ? Math.min(1, t! / latency!) : Number.NaN));
  // The first tenth against the other nine.
  derive('early', ['ttft_early', 'ttft'], (early, all) => early! / Math.max((all! - 0.1 * early!) / 0.9, 0.05 * all!));
  // Little's law, of sequences that hold a slot: output tokens a second = running / time a token.
  if (!into.has('itl_p50')) derive('tpot', ['running', 'throughput'], (running, speed) => (1000 * running!) / speed!);
}
