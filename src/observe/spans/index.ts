/** What engines say of single requests: spans received by OTLP/HTTP, joined to client records by request id. */
export { readSpans, SpanFile } from './file.ts';
export {
  type ClientRequest,
  idsOf,
  type Joined,
  type JoinedRequest,
  joinSpans,
  type PartMeans,
  partMeans,
} from './join.ts';
export { type Span, spansOfJson, spansOfProtobuf } from './otlp.ts';
export { type Receiver, type ReceiverCounts, spanReceiver } from './receive.ts';
export { requestOf, type SpanEvidence } from './request.ts';
