/** Metric families as OpenTelemetry's metric data: the same cumulative numbers as a scrape, under dotted names. */
import type { ValueType } from '@opentelemetry/api';
import type { AggregationTemporality, DataPointType, MetricData } from '@opentelemetry/sdk-metrics';
import type { Millis } from '../../base/units.ts';
import { histogramsOf, type MetricFamily } from '../../wire/prometheus/family.ts';
import { METRICS } from './names.ts';

/** The values of OpenTelemetry's enums, which are loaded only when asked for. */
export interface OtelEnums {
  readonly ValueType: typeof ValueType;
  readonly AggregationTemporality: typeof AggregationTemporality;
  readonly DataPointType: typeof DataPointType;
}

type HrTime = [number, number];

const hrTime = (t: Millis): HrTime => {
  const seconds = Math.floor(t / 1000);
  return [seconds, Math.round((t - 1000 * seconds) * 1e6)];
};

const UNITS: ReadonlyMap<string, string> = new Map(Object.values(METRICS).map((m) => [m.name, m.unit]));

/** `goodput_ttft_seconds` is `goodput.ttft` in `s`: Prometheus' own translation turns the one into the other. */
export function otelName(name: string): string {
  return name
    .replace(/_total$|_seconds$/, '')
    .replace(/^goodput_/, 'goodput.')
    .replace(/^goodput\.(operations|records|contract|upstream)_/, 'goodput.$1.');
}

/** @param started when the counters began, ms since 1970. */
export function otelMetrics(
  families: readonly MetricFamily[],
  started: Millis,
  now: Millis,
  enums: OtelEnums,
): MetricData[] {
  const at = { startTime: hrTime(started), endTime: hrTime(now) };
  return families.map((family): MetricData => {
    const base = {
      descriptor: {
        name: otelName(family.name),
        description: family.help ?? '',
        unit: UNITS.get(family.name) ?? '1',
        valueType: enums.ValueType.DOUBLE,
      },
      aggregationTemporality: enums.AggregationTemporality.CUMULATIVE,
    };
    const plain = family.samples.map(({ labels, value }) => ({ ...at, attributes: { ...labels }, value }));
    if (family.type === 'histogram') {
      return {
        ...base,
        dataPointType: enums.DataPointType.HISTOGRAM,
        dataPoints: histogramsOf(family).map((h) => ({
          ...at,
          attributes: { ...h.labels },
          value: {
            buckets: {
              boundaries: h.bounds.slice(0, -1),
              counts: h.counts.map((c, i) => c - (i > 0 ? (h.counts[i - 1] as number) : 0)),
            },
            sum: h.sum ?? 0,
            count: h.counts.at(-1) ?? 0,
          },
        })),
      };
    }
    if (family.type === 'counter')
      return { ...base, dataPointType: enums.DataPointType.SUM, isMonotonic: true, dataPoints: plain };
    return { ...base, dataPointType: enums.DataPointType.GAUGE, dataPoints: plain };
  });
}
