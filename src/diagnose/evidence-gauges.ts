/** Quantities from gauges: what scrapes saw, not what lay between them. */
import type { GaugeConcept, Gauged, ReplicaEvidence } from '../core/evidence.ts';
import type { QuantityId } from './quantities.ts';
import { type Measures, put } from './table.ts';

export function gauges(replicas: readonly ReplicaEvidence[], of: 'engine' | 'gpu', into: Measures): void {
  const gauge = (id: QuantityId, name: GaugeConcept, fold: (all: readonly Gauged[]) => number): void => {
    const all = replicas.map((r) => r.gauges[name]);
    // Exporters of GPUs stand beside engines: whoever tells a clock counts, engines must all tell theirs.
    const known = all.filter((g) => g !== undefined) as Gauged[];
    if (known.length === 0 || (of === 'engine' && known.length < all.length)) return;
    const samples = known.reduce((s, g) => s + g.samples, 0);
    // The two ends of a window say little of what lay between, and nothing of the most there was.
    const few = samples < 3 * known.length;
    if (few && (id === 'running_max' || of === 'gpu')) return;
    const value = fold(known);
    const spread = Math.max(...known.map((g) => g.max - g.min)) / 4;
    const seen = (spread * Math.sqrt(12)) / Math.sqrt(samples) + 0.01 * Math.abs(value);
    const se = few ? Math.max(seen, atInstants(id, value) / Math.sqrt(samples)) : seen;
    put(into, id, { value, se, n: samples, source: 'server-metrics', population: `${samples} scrapes` });
  };
  const sum = (all: readonly Gauged[]) => all.reduce((s, g) => s + g.mean, 0);
  const mean = (all: readonly Gauged[]) => sum(all) / all.length;
  if (of === 'gpu') {
    gauge('gpu_clock', 'gpu_clock', mean);
    gauge('gpu_utilisation', 'gpu_utilisation', mean);
    return;
  }
  gauge('running', 'running', mean);
  gauge('running_max', 'running', (all) => Math.max(...all.map((g) => g.max)));
  gauge('waiting', 'waiting', mean);
  gauge('kv_usage', 'kv_usage', mean);
}

/** Spread of a gauge over instants: slots taken much as Poisson counts, a queue as widely as its mean, a pool by an eighth. */
function atInstants(id: QuantityId, value: number): number {
  return id === 'kv_usage' ? 0.12 : id === 'waiting' ? value + 1 : Math.sqrt(1.5 * value + 0.5);
}
