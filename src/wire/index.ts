/** Bytes ⇄ meaning. Pure: runs in a browser. */
export { type EmitEvent, type StreamDecoder, streamDecoder } from './decoder.ts';
export * from './dialect.ts';
export {
  DIALECTS,
  defaultPath,
  detectDialect,
  dialectNamed,
  dialectOfPath,
  requestBody,
} from './dialects/index.ts';
export { type Frame, type Framing, type FramingName, MAX_FRAME_BYTES } from './framing/frame.ts';
export { type InspectedEvent, type Inspection, type InspectOptions, inspectCapture } from './inspect/inspect.ts';
export { inspectionText } from './inspect/text.ts';
export {
  type Exemplar,
  type HistogramSeries,
  histogramsOf,
  type Labels,
  type MetricFamily,
  type MetricSample,
  type MetricType,
} from './prometheus/family.ts';
export { LabelTable } from './prometheus/labels.ts';
export {
  type MetricProblem,
  parsePrometheus,
  type ReadFamily,
  type ReadMetrics,
  readPrometheus,
} from './prometheus/read.ts';
export { type Counter, type Gauge, type HistogramMetric, MetricRegistry } from './prometheus/registry.ts';
export { histogramSamples, PROMETHEUS_CONTENT_TYPE, prometheusText, type WriteOptions } from './prometheus/write.ts';
export type { BodyOptions, RequestOptions } from './request.ts';
