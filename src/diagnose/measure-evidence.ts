/** Quantities from servers' own metrics: replicas pooled by count and sum, and what sets them apart. */
import type { Evidence, Observed } from '../core/evidence.ts';
import { counters } from './evidence-counters.ts';
import { fleet } from './evidence-fleet.ts';
import { gauges } from './evidence-gauges.ts';
import { collect, meanOf, stepOfToken, tail } from './evidence-pool.ts';
import type { QuantityId } from './quantities.ts';
import { type Measures, put } from './table.ts';

/**
 * By how much the dependence of neighbours widens an error that a histogram cannot know: requests share a queue, less so a
 * prefill; lengths are independent. Declared, from simulated queues at utilisations of 0.5 to 0.9.
 */
const DEPENDENCE: Readonly<Record<string, number>> = {
  queue: 12,
  ttft: 10,
  prefill: 4,
  e2e: 6,
  tpot: 6,
  itl: 30,
  transfer: 4,
};

export function measureEvidence(evidence: Evidence, into: Measures): void {
  // A router counts what engines count again; a GPU exporter serves no request.
  const replicas = evidence.replicas.filter((r) => (r.role ?? 'engine') === 'engine');
  gauges(evidence.replicas, 'gpu', into);
  if (replicas.length === 0) return;
  const mean = (id: QuantityId, parts: readonly Observed[], scale: number, dependence: number, spread?: number): void =>
    put(into, id, meanOf(parts, scale, dependence, spread));
  const duration = (name: 'queue' | 'prefill' | 'ttft' | 'e2e' | 'tpot' | 'itl' | 'transfer') =>
    collect(replicas, (r) => r.durations[name]);
  const size = (name: 'prompt_length' | 'output_length' | 'step_tokens' | 'prefill_computed') =>
    collect(replicas, (r) => r.sizes[name]);

  mean('queue', duration('queue'), 1000, DEPENDENCE.queue!);
  mean('prefill', duration('prefill'), 1000, DEPENDENCE.prefill!);
  mean('server_ttft', duration('ttft'), 1000, DEPENDENCE.ttft!);
  mean('ttft', duration('ttft'), 1000, DEPENDENCE.ttft!);
  mean('latency', duration('e2e'), 1000, DEPENDENCE.e2e!);
  // Of steps where there are many; else of requests.
  const [steps, requests] = [duration('itl'), duration('tpot')];
  const counted = (parts: readonly Observed[]): number => parts.reduce((s, p) => s + p.count, 0);
  if (counted(steps) >= 5 * counted(requests)) mean('tpot', steps, 1000, DEPENDENCE.itl!, 0.7);
  else mean('tpot', requests, 1000, DEPENDENCE.tpot!, 0.35);
  mean('transfer', duration('transfer'), 1000, DEPENDENCE.transfer!);
  tail(into, 'itl_p99', duration('itl'), 1000);
  mean('prompt', size('prompt_length'), 1, 1);
  mean('output', size('output_length'), 1, 1);
  mean('computed', size('prefill_computed'), 1, 2);
  mean('step_tokens', size('step_tokens'), 1, 30);
  stepOfToken(into, size('step_tokens'));
  remainder(into);
  counters(replicas, into);
  gauges(replicas, 'engine', into);
  fleet(replicas, into);
}

function remainder(into: Measures): void {
  const [ttft, queue, prefill] = (['server_ttft', 'queue', 'prefill'] as const).map(
    (id) => into.get(id)?.['server-metrics'],
  );
  if (!ttft || !queue || !prefill) return;
  const value = ttft.value - queue.value - prefill.value;
  // Mostly the same requests: TTFT is counted at the first token, the phases at the finish.
  const mismatch = Math.abs(ttft.n - queue.n) / Math.max(ttft.n, queue.n);
  put(into, 'frontend', {
    value,
    se: 0.1 * Math.hypot(queue.se, prefill.se) + mismatch * ttft.value + 0.002 * ttft.value,
    n: Math.min(ttft.n, queue.n),
    source: 'server-metrics',
    population: `${ttft.n} first tokens, ${queue.n} finished`,
  });
}
