/** What a proxy adds to the metrics of the operations: its transport's own counts, and its upstreams' state. */
import { type MetricFamily, MetricRegistry } from '../../wire/index.ts';
import type { LiveSnapshot } from '../cohorts/index.ts';
import type { TransportCounts } from './exchange.ts';

export function transportFamilies(live: LiveSnapshot, counts: TransportCounts): readonly MetricFamily[] {
  const now = new MetricRegistry();
  const counter = (name: string, help: string, value: number): void => now.counter(name, help).inc({}, value);
  now.gauge('goodput_queued', 'Operations held back by the concurrency cap.').set(live.now.queued);
  counter('goodput_proxy_requests_total', 'Requests received, on any path.', counts.requests);
  counter('goodput_proxy_passed_through_total', 'Of those, passed on unrecorded.', counts.passedThrough);
  counter('goodput_proxy_client_aborts_total', 'Requests whose client left before the end.', counts.clientAborts);
  counter('goodput_proxy_refused_total', 'Requests refused with 429 by the proxy itself.', counts.refused);
  counter('goodput_proxy_bad_gateway_total', 'Requests that an upstream failed.', counts.badGateway);
  counter('goodput_proxy_stale_reattempts_total', 'Sent again: the connection was stale.', counts.staleReattempts);
  counter('goodput_proxy_failovers_total', 'Sent to another upstream: the first refused.', counts.failovers);
  counter('goodput_records_written_total', 'Records in the run folder.', live.records.written);
  const healthy = now.gauge('goodput_upstream_healthy', '0 while it is passed over because of failures.');
  for (const upstream of live.upstreams) healthy.set(upstream.healthy ? 1 : 0, { upstream: upstream.url });
  return now.families();
}
