/**
 * Export by OTLP over HTTP, through OpenTelemetry's own exporters: optional packages, loaded only when asked for. Where to
 * and with which headers is theirs to know: OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS and the rest of the
 * specification's variables, so that no key passes through a flag or a file of ours.
 */
import { InputError } from '../../base/errors.ts';
import type { Millis } from '../../base/units.ts';
import type { MetricFamily } from '../../wire/prometheus/family.ts';
import type { FinalOperation, OperationListener } from '../cohorts/operation.ts';
import { otelMetrics } from './otlp-metrics.ts';
import { operationSpan } from './span.ts';

export interface OtlpOptions {
  /** Base URL (`/v1/traces` and `/v1/metrics` are appended); the environment's when absent. */
  readonly endpoint?: string;
  readonly service: string;
  /** ms since 1970 of the process's epoch. */
  readonly epochWall: Millis;
  readonly version: string;
  /** Wall time, ms since 1970. */
  readonly wall: () => Millis;
  readonly families: () => readonly MetricFamily[];
  /** Between exports of metrics, default 15 s. */
  readonly every?: Millis;
}

export interface OtlpExport {
  readonly listener: OperationListener;
  /** Sends what is left, now. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

const PACKAGES =
  '@opentelemetry/api @opentelemetry/resources @opentelemetry/sdk-metrics @opentelemetry/sdk-trace-base @opentelemetry/exporter-trace-otlp-http @opentelemetry/exporter-metrics-otlp-http';

async function load() {
  try {
    const [api, resources, metrics, traces, traceExport, metricExport] = await Promise.all([
      import('@opentelemetry/api'),
      import('@opentelemetry/resources'),
      import('@opentelemetry/sdk-metrics'),
      import('@opentelemetry/sdk-trace-base'),
      import('@opentelemetry/exporter-trace-otlp-http'),
      import('@opentelemetry/exporter-metrics-otlp-http'),
    ]);
    return { api, resources, metrics, traces, traceExport, metricExport };
  } catch (error) {
    throw new InputError(`OTLP export needs optional packages; run: npm i ${PACKAGES}`, { cause: error });
  }
}

/** @throws InputError when the packages are not installed, or the endpoint is no URL. */
export async function otlpExport(options: OtlpOptions): Promise<OtlpExport> {
  const { endpoint } = options;
  if (endpoint !== undefined && !/^https?:\/\//.test(endpoint))
    throw new InputError(`--otlp ${endpoint}: give a URL like http://127.0.0.1:4318`);
  const otel = await load();
  const url = (path: string) => (endpoint === undefined ? {} : { url: `${endpoint.replace(/\/+$/, '')}${path}` });
  const resource = otel.resources.resourceFromAttributes({
    'service.name': options.service,
    'service.version': options.version,
  });

  const provider = new otel.traces.BasicTracerProvider({
    resource,
    spanProcessors: [
      new otel.traces.BatchSpanProcessor(new otel.traceExport.OTLPTraceExporter(url('/v1/traces')), {
        maxQueueSize: 4096,
      }),
    ],
  });
  const tracer = provider.getTracer('goodput', options.version);

  const enums = {
    ValueType: otel.api.ValueType,
    AggregationTemporality: otel.metrics.AggregationTemporality,
    DataPointType: otel.metrics.DataPointType,
  };
  const reader = new otel.metrics.PeriodicExportingMetricReader({
    exporter: new otel.metricExport.OTLPMetricExporter(url('/v1/metrics')),
    exportIntervalMillis: options.every ?? 15_000,
    exportTimeoutMillis: Math.min(options.every ?? 15_000, 10_000),
    metricProducers: [
      {
        collect: async () => ({
          resourceMetrics: {
            resource,
            scopeMetrics: [
              {
                scope: { name: 'goodput', version: options.version },
                metrics: otelMetrics(options.families(), options.epochWall, options.wall(), enums),
              },
            ],
          },
          errors: [],
        }),
      },
    ],
  });
  const meters = new otel.metrics.MeterProvider({ resource, readers: [reader] });

  const send = (operation: FinalOperation): void => {
    const span = operationSpan(operation, options.epochWall);
    const { parent } = span;
    const context = parent
      ? otel.api.trace.setSpanContext(otel.api.ROOT_CONTEXT, {
          traceId: parent.traceId,
          spanId: parent.parentId,
          traceFlags: parent.sampled ? 1 : 0,
          isRemote: true,
        })
      : otel.api.ROOT_CONTEXT;
    const made = tracer.startSpan(
      span.name,
      { startTime: span.start, kind: otel.api.SpanKind.SERVER, attributes: { ...span.attributes } },
      context,
    );
    for (const event of span.events) made.addEvent(event.name, event.at);
    if (span.error !== undefined) made.setStatus({ code: otel.api.SpanStatusCode.ERROR, message: span.error });
    made.end(span.end);
  };
  return {
    listener: { final: send },
    flush: async () => {
      await Promise.allSettled([provider.forceFlush(), meters.forceFlush()]);
    },
    close: async () => {
      await Promise.allSettled([provider.shutdown(), meters.shutdown()]);
    },
  };
}
