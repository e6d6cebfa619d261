/**
 * The metrics `goodput` exposes, one row each: what a scrape, an OTLP export, an alert rule and a dashboard name alike.
 * Names are our own (`goodput_…`) wherever the GenAI semantic conventions have no name that means the same: see
 * docs/export.md for each difference.
 */
import type { MetricType } from '../../wire/prometheus/family.ts';

export interface MetricRow {
  readonly name: string;
  readonly type: MetricType;
  readonly help: string;
  /** UCUM unit, as OpenTelemetry wants it. */
  readonly unit: string;
  readonly labels: readonly string[];
}

const row = (name: string, type: MetricType, unit: string, labels: readonly string[], help: string): MetricRow => ({
  name,
  type,
  help,
  unit,
  labels,
});

/**
 * Counters of final operations all grow at the same instant, when the operation is final, so that their ratio is a share
 * of one population. Arrivals are counted apart, when they arrive: never divide one by the other.
 */
export const METRICS = {
  arrived: row(
    'goodput_operations_arrived_total',
    'counter',
    '{operation}',
    ['class', 'tenant'],
    'Operations offered, counted at their arrival: the offered rate, for scaling. Not a denominator of attainment.',
  ),
  final: row(
    'goodput_operations_total',
    'counter',
    '{operation}',
    ['class', 'tenant', 'outcome'],
    'Final operations by outcome; the outcomes add up to all of them.',
  ),
  judged: row(
    'goodput_operations_judged_total',
    'counter',
    '{operation}',
    ['class', 'tenant'],
    'Final operations that count towards attainment: all but those the contract excludes.',
  ),
  good: row(
    'goodput_operations_good_total',
    'counter',
    '{operation}',
    ['class', 'tenant'],
    'Final operations that met every limit of the contract, jointly.',
  ),
  missed: row(
    'goodput_limit_missed_total',
    'counter',
    '{operation}',
    ['class', 'limit'],
    'Final operations that missed a limit; one that missed two is counted under both.',
  ),
  attempts: row(
    'goodput_attempts_total',
    'counter',
    '{attempt}',
    ['class'],
    'Attempts of final operations, retries and hedges included.',
  ),
  dropped: row(
    'goodput_records_dropped_total',
    'counter',
    '{record}',
    [],
    'Records not written because the disk could not take them. Traffic was not touched.',
  ),
  ttft: row(
    'goodput_ttft_seconds',
    'histogram',
    's',
    ['class'],
    'Time to the first output, from the receipt of the request at this boundary; of operations that had one.',
  ),
  tpot: row(
    'goodput_tpot_seconds',
    'histogram',
    's',
    ['class'],
    'Mean time of each token after the first, one observation a completed operation.',
  ),
  gap: row(
    'goodput_max_gap_seconds',
    'histogram',
    's',
    ['class'],
    'The largest gap between two chunks of an operation.',
  ),
  latency: row(
    'goodput_latency_seconds',
    'histogram',
    's',
    ['class'],
    'Last-token latency: from the receipt of the request to its last output, of completed operations.',
  ),
  e2e: row(
    'goodput_e2e_seconds',
    'histogram',
    's',
    ['class'],
    'From the receipt of the request to the end of the response, of completed operations.',
  ),
  queueAge: row(
    'goodput_queue_age_seconds',
    'histogram',
    's',
    ['class'],
    'How long a request waited here before it was sent upstream.',
  ),
  inFlight: row('goodput_in_flight', 'gauge', '{operation}', [], 'Operations that have arrived and are not final.'),
  waiting: row('goodput_waiting', 'gauge', '{operation}', [], 'Operations in flight without any output yet.'),
  oldestWaiting: row(
    'goodput_oldest_waiting_seconds',
    'gauge',
    's',
    ['class'],
    'Age of the oldest operation without any output; 0 when none waits.',
  ),
  upstreamInFlight: row(
    'goodput_upstream_in_flight',
    'gauge',
    '{request}',
    ['upstream'],
    'Requests an upstream is working on for this proxy.',
  ),
  target: row(
    'goodput_contract_attainment_target',
    'gauge',
    '1',
    ['class'],
    'The attainment the contract asks for, 0 to 1.',
  ),
} as const satisfies Record<string, MetricRow>;

export type MetricKey = keyof typeof METRICS;

/** Bounds of the latency histograms, seconds; a contract's own limits are added, so that the share below each is exact. */
export const LATENCY_BOUNDS: readonly number[] = [
  0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 7.5, 10, 20, 30, 60, 120,
];

/** Bounds of the per-token histograms, seconds. */
export const CADENCE_BOUNDS: readonly number[] = [
  0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1, 2, 5, 10,
];

/** `bounds` with a limit among them, ascending and distinct. @param limit ms, as contracts have it. */
export function withLimit(bounds: readonly number[], limit: number | undefined): readonly number[] {
  if (limit === undefined) return bounds;
  return [...new Set([...bounds, limit / 1000])].sort((a, b) => a - b);
}
