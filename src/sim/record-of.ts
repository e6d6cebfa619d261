/** What came of a simulated request, as the record and the metrics a recorder would have made of its stream. */
import { type Millis, toMicroGrid } from '../base/units.ts';
import type { MeasureOptions, Metrics } from '../core/measure.ts';
import { measure } from '../core/measure.ts';
import type { Outcome } from '../core/outcome.ts';
import type { RequestRecord, Stamps } from '../core/record.ts';
import { askedOf } from '../core/recorder.ts';
import type { Offer, RequestSpec } from '../core/request.ts';
import type { ServerTimes } from '../core/stream.ts';
import { EMPTY_TIMELINE, type Timeline } from '../core/timeline.ts';
import type { Finished } from './cluster.ts';

/** How a simulated operation ended. */
export type SimOutcome = 'completed' | 'timed-out' | 'queue-full' | 'too-long';

export interface SimDone {
  readonly spec: RequestSpec;
  readonly scheduled: Millis;
  readonly ended: Millis;
  readonly outcome: SimOutcome;
  /** Absent when it was refused. Its token times are valid only while the consumer is called. */
  readonly finished?: Finished;
}

/** Words of refusals, one place for both doors. */
export const REFUSAL_DETAIL = {
  'queue-full': 'the queue is full',
  'too-long': 'prompt and output exceed what the engine can hold',
} as const;

export const DEADLINE_REASON = 'deadline';

const OUTCOME: Readonly<Record<SimOutcome, { outcome: Outcome; reason: string; detail: string }>> = {
  completed: { outcome: 'completed', reason: '', detail: '' },
  'timed-out': { outcome: 'timed-out', reason: DEADLINE_REASON, detail: '' },
  'queue-full': { outcome: 'rejected', reason: 'refused', detail: REFUSAL_DETAIL['queue-full'] },
  'too-long': { outcome: 'failed', reason: 'engine', detail: REFUSAL_DETAIL['too-long'] },
};

/** The engine's own times of a request that completed, as its final event tells them. */
export function serverTimes(f: Finished): ServerTimes {
  return {
    queue: f.scheduled - f.arrived,
    prefill: f.firstToken - f.scheduled,
    decode: f.lastToken - f.firstToken,
    e2e: f.ended - f.arrived,
  };
}

// Every token of a simulated stream is one chunk of one token of one kind: these columns are shared by all timelines.
let ones = new Int32Array(0);
let kinds = new Uint8Array(0);
let choices = new Uint16Array(0);

function timelineOf(f: Finished): Timeline {
  const n = f.generated;
  if (n === 0) return EMPTY_TIMELINE;
  if (n > ones.length) {
    const size = 2 ** Math.ceil(Math.log2(n + 1));
    ones = new Int32Array(size).fill(1);
    kinds = new Uint8Array(size);
    choices = new Uint16Array(size);
  }
  const at = f.tokenTimes(new Float64Array(n));
  for (let i = 0; i < n; i++) at[i] = Math.round(at[i]! * 1000) / 1000;
  return { length: n, at, tokens: ones.subarray(0, n), kind: kinds.subarray(0, n), choice: choices.subarray(0, n) };
}

export function recordOf(done: SimDone): RequestRecord {
  const { spec, finished: f } = done;
  const { outcome, reason, detail } = OUTCOME[done.outcome];
  const completed = outcome === 'completed';
  const timeline = f ? timelineOf(f) : EMPTY_TIMELINE;
  const start = toMicroGrid(done.scheduled);
  const n = timeline.length;
  const first = timeline.at[0];
  const last = timeline.at[n - 1];
  const stamps: Stamps =
    first !== undefined && last !== undefined
      ? {
          scheduled: start,
          dispatched: start,
          sent: start,
          firstEvent: first,
          firstOutput: first,
          firstAnswer: first,
          lastOutput: last,
          ended: toMicroGrid(done.ended),
        }
      : { scheduled: start, dispatched: start, sent: start, ended: toMicroGrid(done.ended) };
  const length = completed && n >= spec.outputTokens;
  return {
    operation: spec.operation,
    attempt: spec.attempt,
    attempts: 1,
    lostHedge: false,
    class: spec.class,
    ...(spec.session !== undefined && { session: spec.session }),
    ...(spec.turn !== undefined && { turn: spec.turn }),
    asked: askedOf(spec),
    stamps,
    timeline,
    streamed: spec.stream,
    ...(completed &&
      f && { usage: { input: spec.inputTokens, output: n, ...(f.cached > 0 && { cachedInput: f.cached }) } }),
    unseenEndTokens: 0,
    outcome,
    reason,
    detail,
    phase: completed ? 'done' : n > 0 ? 'streaming' : 'waiting',
    ...(completed && { finish: length ? 'length' : 'stop', finishReason: length ? 'length' : 'stop' }),
    impliedEnd: false,
    events: n,
    coalesced: 0,
    unclassified: 0,
    ...(completed && f && { server: serverTimes(f) }),
  };
}

/** The record of an offer that was not sent, as a recorder gives it up. */
export function unsentRecord({ spec, unsent = 'unsent' }: Offer, t: Millis): RequestRecord {
  return {
    operation: spec.operation,
    attempt: spec.attempt,
    attempts: 0,
    lostHedge: false,
    class: spec.class,
    ...(spec.session !== undefined && { session: spec.session }),
    ...(spec.turn !== undefined && { turn: spec.turn }),
    asked: askedOf(spec),
    stamps: { scheduled: toMicroGrid(t) },
    timeline: EMPTY_TIMELINE,
    streamed: spec.stream,
    unseenEndTokens: 0,
    outcome: 'unsent',
    reason: unsent,
    detail: '',
    phase: 'unsent',
    impliedEnd: false,
    events: 0,
    coalesced: 0,
    unclassified: 0,
  };
}

/**
 * The metrics of a simulated request without its record, when no limit looks at single tokens: equal to
 * `measure(recordOf(done))` but for the largest gap and smoothness, which are then absent.
 */
export function summaryOf(done: SimDone): { ttft?: Millis; tpot?: Millis; latency?: Millis; e2e: Millis; n: number } {
  const start = toMicroGrid(done.scheduled);
  const e2e = toMicroGrid(toMicroGrid(done.ended) - start);
  const f = done.finished;
  if (!f || f.generated === 0) return { e2e, n: 0 };
  const first = toMicroGrid(f.firstToken);
  const last = toMicroGrid(f.lastToken);
  const n = f.generated;
  const ttft = toMicroGrid(first - start);
  const latency = toMicroGrid(last - start);
  return n > 1 && last > first
    ? { ttft, tpot: toMicroGrid(last - first) / (n - 1), latency, e2e, n }
    : { ttft, latency, e2e, n };
}

/** `measure` of the record a stream of this request would have left. */
export function metricsOf(done: SimDone, options?: MeasureOptions): Metrics {
  return measure(recordOf(done), options);
}
