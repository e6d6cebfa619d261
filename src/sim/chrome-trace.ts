/**
 * A simulated schedule in Chrome's trace event format (chrome://tracing, Perfetto): runs of steps by replica, and each
 * request's queue, prefill and decode on the first lane that is free. Lines are handed out as they are known.
 */
import type { Millis } from '../base/units.ts';
import type { StepObserver } from './continuous.ts';
import { recordOf, type SimDone } from './record-of.ts';

/** Events beyond this many are left out, and counted. */
export const MOST_TRACE_EVENTS = 1_000_000;

export interface ChromeTrace {
  /** What a replica is to be told its steps by. */
  readonly observe: (replica: number) => StepObserver;
  readonly request: (done: SimDone) => void;
  /** The end of the file. @returns how many events were left out. */
  readonly close: () => number;
}

/** Process ids: requests under one, each replica under one of its own. */
const REQUESTS = 1;
const REPLICAS = 2;

/** @param write takes the file's text, piece by piece. */
export function chromeTrace(write: (text: string) => void, most = MOST_TRACE_EVENTS): ChromeTrace {
  let events = 0;
  let left = 0;
  const put = (event: Readonly<Record<string, unknown>>): void => {
    if (events >= most) {
      left++;
      return;
    }
    write(`${events++ === 0 ? '{"displayTimeUnit":"ms","traceEvents":[\n' : ',\n'}${JSON.stringify(event)}`);
  };
  const span = (name: string, pid: number, tid: number, from: Millis, to: Millis, args: object): void =>
    put({ name, ph: 'X', pid, tid, ts: micros(from), dur: micros(to) - micros(from), args });
  const named = new Set<number>();
  const name = (pid: number, text: string): void => {
    if (named.has(pid)) return;
    named.add(pid);
    put({ name: 'process_name', ph: 'M', pid, args: { name: text } });
  };
  /** Until when each lane of requests is taken. */
  const lanes: Millis[] = [];
  return {
    observe: (replica) => {
      const pid = REPLICAS + replica;
      return (tokens, steps, decodes, from, to) => {
        name(pid, `replica ${replica}`);
        const prefill = tokens - decodes;
        const what = prefill === 0 ? 'decode' : decodes === 0 ? 'prefill' : 'prefill + decode';
        span(steps === 1 ? what : `${what} × ${steps}`, pid, 0, from, to, { steps, decodes, prefill_tokens: prefill });
      };
    },
    request: (done) => {
      const f = done.finished;
      if (!f) return;
      name(REQUESTS, 'requests');
      const { stamps, outcome } = recordOf(done);
      let lane = lanes.findIndex((until) => until <= f.arrived);
      if (lane < 0) lane = lanes.length;
      lanes[lane] = done.ended;
      const { operation, inputTokens } = f.spec;
      const args = { operation, input: inputTokens, output: f.generated, cached: f.cached, preemptions: f.preemptions };
      const began = Number.isNaN(f.scheduled) ? done.ended : f.scheduled;
      const first = stamps.firstOutput ?? done.ended;
      if (began > f.arrived) span('queue', REQUESTS, lane, f.arrived, began, args);
      if (!Number.isNaN(f.scheduled)) span('prefill', REQUESTS, lane, began, first, args);
      if (f.generated > 1) span('decode', REQUESTS, lane, first, f.lastToken, args);
      if (outcome !== 'completed')
        put({ name: outcome, ph: 'i', s: 't', pid: REQUESTS, tid: lane, ts: micros(done.ended), args });
    },
    close: () => {
      write(events === 0 ? '{"traceEvents":[]}\n' : '\n]}\n');
      return left;
    },
  };
}

function micros(t: Millis): number {
  return Math.round(t * 1000);
}
