/** Where replicas of one engine differ so much that their sum hides it. */
import type { DurationConcept, ReplicaEvidence } from '../../core/evidence.ts';
import { histogramQuantile } from '../../stats/histogram.ts';

const WATCHED: readonly DurationConcept[] = ['ttft', 'queue', 'itl', 'tpot', 'e2e'];

export function imbalances(replicas: readonly ReplicaEvidence[]): string[] {
  const notes: string[] = [];
  const engines = new Map<string, ReplicaEvidence[]>();
  for (const r of replicas) engines.set(r.engine, [...(engines.get(r.engine) ?? []), r]);
  for (const group of engines.values()) {
    if (group.length < 2) continue;
    for (const concept of WATCHED) {
      const said = apartIn(group, concept);
      if (said !== undefined) notes.push(said);
    }
    const waiting = group.flatMap((r) => (r.gauges.waiting ? [{ r, n: r.gauges.waiting.mean }] : []));
    const total = waiting.reduce((a, { n }) => a + n, 0);
    const most = waiting.reduce((a, b) => (b.n > a.n ? b : a), waiting[0] ?? { r: group[0]!, n: 0 });
    if (waiting.length > 1 && most.n >= 5 && most.n > (3 * (total - most.n)) / (waiting.length - 1) + 5) {
      notes.push(
        `replicas differ in waiting: ${most.r.replica} holds ${tidy(most.n)} of ${tidy(total)} waiting requests`,
      );
    }
  }
  return notes;
}

/** Medians or p99s whose intervals do not even touch, or means of twice the size. */
function apartIn(group: readonly ReplicaEvidence[], concept: DurationConcept): string | undefined {
  for (const [name, p] of [
    ['p50', 0.5],
    ['p99', 0.99],
  ] as const) {
    const found = group.flatMap((r) => {
      const o = r.durations[concept];
      const q = o?.histogram && o.count >= 20 ? histogramQuantile(o.histogram, p) : undefined;
      return q === undefined ? [] : [{ r, q }];
    });
    if (found.length < 2) continue;
    const best = found.reduce((a, b) => (b.q.high < a.q.high ? b : a));
    const worst = found.reduce((a, b) => (b.q.low > a.q.low ? b : a));
    if (worst.q.low >= best.q.high && worst !== best) {
      const text = ({ low, high }: { low: number; high: number }): string =>
        Number.isFinite(high) ? `${tidy(low)}–${tidy(high)} s` : `> ${tidy(low)} s`;
      return `replicas differ in ${concept}: ${name} is ${text(worst.q)} at ${worst.r.replica} and ${text(best.q)} at ${best.r.replica}; their sum hides the one that suffers`;
    }
  }
  const means = group.flatMap((r) => {
    const o = r.durations[concept];
    return o?.sum !== undefined && o.count >= 20 ? [{ r, mean: o.sum / o.count }] : [];
  });
  if (means.length < 2) return undefined;
  const worst = means.reduce((a, b) => (b.mean > a.mean ? b : a));
  const best = means.reduce((a, b) => (b.mean < a.mean ? b : a));
  if (!(worst.mean > 2 * best.mean && worst.mean > 0.001)) return undefined;
  return `replicas differ in ${concept}: mean ${tidy(worst.mean)} s at ${worst.r.replica}, ${tidy(best.mean)} s at ${best.r.replica}`;
}

const tidy = (x: number): number => Number(x.toPrecision(3));
