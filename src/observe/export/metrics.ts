/**
 * What a scrape is told of real traffic. A listener: counters and histograms grow when an operation is final, all at once,
 * so that any ratio of them is a share of one population; arrivals are counted apart.
 */
import type { Contract, LimitName } from '../../core/contract.ts';
import type { MetricFamily } from '../../wire/prometheus/family.ts';
import { MetricRegistry } from '../../wire/prometheus/registry.ts';
import type { Arrival, FinalOperation, OperationListener } from '../cohorts/operation.ts';
import type { LiveSnapshot } from '../cohorts/snapshot.ts';
import { CADENCE_BOUNDS, LATENCY_BOUNDS, METRICS, type MetricKey, withLimit } from './names.ts';

/** Histograms of measured values: which metric, over which bounds, and whether only completed operations have it. */
const MEASURED = [
  { key: 'ttft', bounds: LATENCY_BOUNDS, completed: false },
  { key: 'tpot', bounds: CADENCE_BOUNDS, completed: true },
  { key: 'gap', bounds: CADENCE_BOUNDS, completed: false },
  { key: 'latency', bounds: LATENCY_BOUNDS, completed: true },
  { key: 'e2e', bounds: LATENCY_BOUNDS, completed: true },
] as const satisfies readonly { key: MetricKey & LimitName; bounds: readonly number[]; completed: boolean }[];

export class OperationMetrics implements OperationListener {
  readonly #registry = new MetricRegistry();
  readonly #arrived = this.#counter('arrived');
  readonly #final = this.#counter('final');
  readonly #judged = this.#counter('judged');
  readonly #good = this.#counter('good');
  readonly #missed = this.#counter('missed');
  readonly #attempts = this.#counter('attempts');
  readonly #histograms;
  readonly #queueAge;

  /**
   * @param contracts every contract judged by: their limits become bounds, so that the share below each is exact.
   * @param classes known beforehand: their counters stand at 0 from the start, so that a rate sees their first growth.
   */
  constructor(contracts: readonly Contract[], classes: readonly string[] = []) {
    const made = (key: MetricKey, bounds: readonly number[]) =>
      this.#registry.histogram(METRICS[key].name, METRICS[key].help, bounds);
    this.#histograms = MEASURED.map(({ key, bounds, completed }) => ({
      key,
      completed,
      histogram: made(
        key,
        contracts.reduce((all, c) => withLimit(all, c.limits[key]), bounds),
      ),
    }));
    this.#queueAge = made('queueAge', LATENCY_BOUNDS);
    for (const name of classes) {
      const labels = { class: name, tenant: '' };
      this.#arrived.inc(labels, 0);
      this.#begin(labels);
    }
  }

  /** There at 0: a share over a series that does not exist yet would be undefined. */
  #begin(labels: { readonly class: string; readonly tenant: string }): void {
    this.#judged.inc(labels, 0);
    this.#good.inc(labels, 0);
  }

  #counter(key: MetricKey) {
    return this.#registry.counter(METRICS[key].name, METRICS[key].help);
  }

  arrived({ class: name, tenant }: Arrival): void {
    const labels = { class: name, tenant };
    this.#arrived.inc(labels);
    this.#begin(labels);
  }

  final({ class: name, tenant, verdict, metrics, record }: FinalOperation): void {
    const labels = { class: name, tenant };
    this.#final.inc({ ...labels, outcome: verdict.class });
    this.#judged.inc(labels, verdict.excluded ? 0 : 1);
    this.#good.inc(labels, verdict.class === 'good' && !verdict.excluded ? 1 : 0);
    for (const limit of verdict.missed) this.#missed.inc({ class: name, limit });
    this.#attempts.inc({ class: name }, record.attempts);
    const completed = record.outcome === 'completed';
    for (const { key, completed: only, histogram } of this.#histograms) {
      const value = metrics[key];
      if (value !== undefined && (completed || !only)) histogram.observe(value / 1000, { class: name });
    }
    this.#queueAge.observe((record.passage?.queued ?? 0) / 1000, { class: name });
  }

  /** Everything, with the present state of the cohorts as gauges. */
  families(live: LiveSnapshot): readonly MetricFamily[] {
    const gauge = (key: MetricKey, samples: MetricFamily['samples']): MetricFamily => ({
      name: METRICS[key].name,
      type: METRICS[key].type,
      help: METRICS[key].help,
      samples,
    });
    const { now, classes, upstreams, contracts, records } = live;
    return [
      ...this.#registry.families(),
      gauge('inFlight', [{ labels: {}, value: now.in_flight }]),
      gauge('waiting', [{ labels: {}, value: now.waiting }]),
      gauge(
        'oldestWaiting',
        classes.map((c) => ({ labels: { class: c.class }, value: (c.oldest_waiting_ms ?? 0) / 1000 })),
      ),
      gauge(
        'upstreamInFlight',
        upstreams.map((u) => ({ labels: { upstream: u.url }, value: u.in_flight })),
      ),
      gauge(
        'target',
        Object.entries(contracts).map(([name, c]) => ({ labels: { class: name }, value: c.attainment })),
      ),
      gauge('dropped', [{ labels: {}, value: records.dropped }]),
    ];
  }
}
