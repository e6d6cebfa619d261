/**
 * One operation as a span: its stamps are events, its outcome and verdict attributes. GenAI semantic-convention names
 * where they mean the same (docs/export.md lists them), our own otherwise. Never a prompt, an output or a key.
 */
import type { Millis } from '../../base/units.ts';
import { STAMPS, type Stamps } from '../../core/record.ts';
import type { FinalOperation, TraceContext } from '../cohorts/operation.ts';

export type SpanValue = string | number | boolean | string[];

export interface OperationSpan {
  readonly name: string;
  /** ms since 1970. */
  readonly start: Millis;
  readonly end: Millis;
  readonly attributes: Readonly<Record<string, SpanValue>>;
  readonly events: readonly { readonly name: string; readonly at: Millis }[];
  /** Set when the operation did not end well: what is wrong, in one word. */
  readonly error?: string;
  readonly parent?: TraceContext;
}

/** What each stamp is called as an event of the span. */
const EVENTS: Readonly<Partial<Record<keyof Stamps, string>>> = {
  dispatched: 'goodput.dispatched',
  connected: 'goodput.connected',
  sent: 'goodput.request_sent',
  headers: 'goodput.response_headers',
  firstEvent: 'goodput.first_event',
  firstOutput: 'goodput.first_output',
  firstAnswer: 'goodput.first_answer',
  lastOutput: 'goodput.last_output',
};

/** @param epochWall ms since 1970 of the process's epoch: stamps are relative to it. */
export function operationSpan(operation: FinalOperation, epochWall: Millis): OperationSpan {
  const { record, metrics, verdict, contract } = operation;
  const { stamps, usage } = record;
  const start = epochWall + stamps.scheduled;
  const last = STAMPS.reduce((latest, name) => Math.max(latest, stamps[name] ?? 0), stamps.scheduled);
  const attributes: Record<string, SpanValue> = {
    'goodput.outcome': verdict.class,
    'goodput.contract': contract.name,
    'goodput.class': operation.class,
    'goodput.attempts': record.attempts,
    'goodput.grouped_by': operation.groupedBy,
  };
  const put = (name: string, value: SpanValue | undefined): void => {
    if (value !== undefined && value !== '') attributes[name] = value;
  };
  put('goodput.tenant', operation.tenant);
  put('gen_ai.response.model', record.model);
  put('gen_ai.usage.input_tokens', usage?.input);
  put('gen_ai.usage.output_tokens', usage?.output);
  put('gen_ai.usage.cache_read.input_tokens', usage?.cachedInput);
  if (record.finishReason) put('gen_ai.response.finish_reasons', record.finishReason.split('|'));
  put('http.response.status_code', record.status);
  put('server.address', record.passage?.upstream);
  put('goodput.request_id', record.passage?.requestId);
  put('goodput.ttft_ms', metrics.ttft);
  put('goodput.tpot_ms', metrics.tpot);
  put('goodput.max_gap_ms', metrics.gap);
  put('goodput.latency_ms', metrics.latency);
  put('goodput.e2e_ms', metrics.e2e);
  put('goodput.queued_ms', record.passage?.queued);
  if (verdict.missed.length > 0) put('goodput.missed', [...verdict.missed]);
  // A late operation was answered: it is no error of the request, and the verdict says what it is.
  const failed = verdict.class !== 'good' && verdict.class !== 'late';
  const error = failed ? record.reason || verdict.class : undefined;
  put('error.type', error);
  const { trace } = operation;
  return {
    name: record.model ? `operation ${record.model}` : 'operation',
    start,
    end: epochWall + (stamps.ended ?? last),
    attributes,
    events: STAMPS.flatMap((name) => {
      const at = stamps[name];
      const event = EVENTS[name];
      return at === undefined || event === undefined ? [] : [{ name: event, at: epochWall + at }];
    }),
    ...(error !== undefined && { error }),
    ...(trace && { parent: trace }),
  };
}
