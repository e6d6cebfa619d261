/** What sets replicas apart. */
import type { ReplicaEvidence } from '../core/evidence.ts';
import { finishedOne } from './evidence-counters.ts';
import { FEWEST } from './evidence-pool.ts';
import type { QuantityId } from './quantities.ts';
import { type Measures, put } from './table.ts';

/** What a pool's mean hides: how many replicas served, and how far the busiest stood out. */
export function fleet(replicas: readonly ReplicaEvidence[], into: Measures): void {
  const counts = replicas.map((r) => finishedOne(r) ?? r.durations.ttft?.count);
  if (counts.some((c) => c === undefined)) return;
  const busy = counts.filter((c) => (c as number) > 0).length;
  const server = (id: QuantityId, value: number, se: number): void =>
    put(into, id, {
      value,
      se,
      n: replicas.length,
      source: 'server-metrics',
      population: `${replicas.length} replicas`,
    });
  server('replicas', busy, 0.02 * busy);
  // Of split pools, by the names replicas were given.
  const isDecode = replicas.map((r) => /decode/i.test(r.replica));
  if (isDecode.includes(true) && isDecode.includes(false)) {
    const prefill = replicas.map((r) => r.durations.prefill?.sum);
    if (prefill.every((x) => x !== undefined)) {
      const all = (prefill as number[]).reduce((s, x) => s + x, 0);
      const own = (prefill as number[]).reduce((s, x, i) => s + (isDecode[i] ? x : 0), 0);
      if (all > 0) server('decode_prefill', own / all, 0.03);
    }
  }
  if (busy < 2) return;
  // Requests a replica took, and the queue it had: the larger skew counts.
  const skew = (values: readonly number[]): number => {
    const mean = values.reduce((s, v) => s + v, 0) / values.length;
    return mean > 0 ? Math.max(...values) / mean : 1;
  };
  const taken = counts as number[];
  server('skew', skew(taken), 0.04 + 2 / Math.sqrt(taken.reduce((s, c) => s + c, 0)));
  const ttfts = replicas.map((r) => {
    const t = r.durations.ttft;
    return t?.sum !== undefined && t.count >= FEWEST ? t.sum / t.count : undefined;
  });
  if (ttfts.every((t) => t !== undefined)) server('replica_ttft', skew(ttfts as number[]), 0.2);
}
