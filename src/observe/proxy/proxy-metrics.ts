/** `/metrics` of a proxy, by `wire`'s writer: counters of final operations by class and outcome, histograms in seconds. */
import { MetricRegistry } from '../../wire/index.ts';
import type { Arrival, FinalOperation, LiveSnapshot, OperationListener } from '../cohorts/index.ts';
import type { TransportCounts } from './exchange.ts';

const LATENCY = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];
const PER_TOKEN = [0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1, 2.5];

export class ProxyMetrics implements OperationListener {
  readonly #registry = new MetricRegistry();
  readonly #arrived = this.#registry.counter('goodput_operations_arrived_total', 'Operations received.');
  readonly #final = this.#registry.counter(
    'goodput_operations_total',
    'Final operations by class and outcome. Their sum grows together, when an operation is final.',
  );
  readonly #excluded = this.#registry.counter(
    'goodput_operations_excluded_total',
    'Final operations that the contract takes out of the denominator.',
  );
  readonly #attempts = this.#registry.counter('goodput_attempts_total', 'Attempts of final operations.');
  readonly #ttft = this.#histogram('goodput_time_to_first_token_seconds', 'Receipt to first output.', LATENCY);
  readonly #tpot = this.#histogram('goodput_time_per_output_token_seconds', 'Mean of an operation.', PER_TOKEN);
  readonly #gap = this.#histogram('goodput_max_gap_seconds', 'The largest gap between chunks.', PER_TOKEN);
  readonly #e2e = this.#histogram('goodput_operation_duration_seconds', 'Receipt to end of completed ones.', LATENCY);

  #histogram(name: string, help: string, bounds: readonly number[]) {
    return this.#registry.histogram(name, help, bounds);
  }

  arrived(arrival: Arrival): void {
    this.#arrived.inc({ class: arrival.class });
  }

  final({ class: name, verdict, metrics, record }: FinalOperation): void {
    const labels = { class: name };
    this.#final.inc({ class: name, outcome: verdict.class });
    if (verdict.excluded) this.#excluded.inc(labels);
    this.#attempts.inc(labels, record.attempts);
    if (metrics.ttft !== undefined) this.#ttft.observe(metrics.ttft / 1000, labels);
    if (metrics.gap !== undefined) this.#gap.observe(metrics.gap / 1000, labels);
    if (record.outcome !== 'completed') return;
    if (metrics.tpot !== undefined) this.#tpot.observe(metrics.tpot / 1000, labels);
    if (metrics.e2e !== undefined) this.#e2e.observe(metrics.e2e / 1000, labels);
  }

  text(live: LiveSnapshot, counts: TransportCounts): string {
    const now = new MetricRegistry();
    const gauge = (name: string, help: string, value: number): void => now.gauge(name, help).set(value);
    const counter = (name: string, help: string, value: number): void => now.counter(name, help).inc({}, value);
    gauge('goodput_operations_in_flight', 'Operations that are not final.', live.now.in_flight);
    gauge('goodput_operations_waiting', 'Of those, without output yet.', live.now.waiting);
    gauge('goodput_operations_queued', 'Held back by the concurrency cap.', live.now.queued);
    gauge(
      'goodput_oldest_waiting_seconds',
      'Age of the oldest operation without output; 0 when none waits.',
      (live.now.oldest_waiting_ms ?? 0) / 1000,
    );
    counter('goodput_proxy_requests_total', 'Requests received, on any path.', counts.requests);
    counter('goodput_proxy_passed_through_total', 'Of those, passed on unrecorded.', counts.passedThrough);
    counter('goodput_proxy_client_aborts_total', 'Requests whose client left before the end.', counts.clientAborts);
    counter('goodput_proxy_refused_total', 'Requests refused with 429 by the proxy itself.', counts.refused);
    counter('goodput_proxy_bad_gateway_total', 'Requests that an upstream failed.', counts.badGateway);
    counter('goodput_proxy_stale_reattempts_total', 'Sent again: the connection was stale.', counts.staleReattempts);
    counter('goodput_proxy_failovers_total', 'Sent to another upstream: the first refused.', counts.failovers);
    counter('goodput_records_written_total', 'Records in the run folder.', live.records.written);
    counter('goodput_records_dropped_total', 'Records that could not be kept.', live.records.dropped);
    const inFlight = now.gauge('goodput_upstream_in_flight', 'Requests with an upstream.');
    const healthy = now.gauge('goodput_upstream_healthy', '0 while it is passed over because of failures.');
    for (const upstream of live.upstreams) {
      inFlight.set(upstream.in_flight, { upstream: upstream.url });
      healthy.set(upstream.healthy ? 1 : 0, { upstream: upstream.url });
    }
    return this.#registry.text() + now.text();
  }
}
