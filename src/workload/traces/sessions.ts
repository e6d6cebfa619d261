/**
 * A trace of conversations as a workload of sessions: each arrives when its first request did; a later turn comes after its
 * predecessor's answer and the pause there was between them. So a slow server is offered less, as by users who read before
 * they write. A turn's prompt begins with all that was said before, where the trace's lengths leave room for it.
 */
import { type Offer, PREDECESSOR_FAILED, type Workload } from '../../core/request.ts';
import type { Stretch } from '../prompts.ts';
import type { Trace } from './trace.ts';

/** How requests follow one another. */
export interface Chains {
  /** First requests of sessions, and requests of none, in order of arrival. */
  readonly heads: Int32Array;
  /** The next turn of each request's session; −1 after the last. */
  readonly next: Int32Array;
  readonly before: Int32Array;
  /** Which of the heads each request's session is, and the turn within it. */
  readonly session: Int32Array;
  readonly turn: Int32Array;
}

export function chainsOf(trace: Trace): Chains {
  const { length, sessions } = trace;
  const next = new Int32Array(length).fill(-1);
  const before = new Int32Array(length).fill(-1);
  const session = new Int32Array(length);
  const turn = new Int32Array(length);
  const heads: number[] = [];
  const last = new Map<number, number>();
  for (let i = 0; i < length; i++) {
    const of = sessions?.of[i] ?? -1;
    const earlier = of < 0 ? undefined : last.get(of);
    if (of >= 0) last.set(of, i);
    if (earlier === undefined) {
      session[i] = heads.length;
      heads.push(i);
    } else {
      next[earlier] = i;
      before[i] = earlier;
      session[i] = session[earlier] as number;
      turn[i] = (turn[earlier] as number) + 1;
    }
  }
  return { heads: Int32Array.from(heads), next, before, session, turn };
}

/** When a trace's arrivals are: of sessions those of their first turns. */
export function traceArrivals(trace: Trace): Pick<Trace, 'length' | 'at'> {
  if (!trace.sessions) return trace;
  const { heads } = chainsOf(trace);
  return { length: heads.length, at: Float64Array.from(heads, (i) => trace.at[i] as number) };
}

/** Microseconds from the end of a request's answer to the next turn: as far as the trace tells how long it took. */
function pause(trace: Trace, i: number, next: number): number {
  const elapsed = trace.sessions?.elapsed[i] ?? Number.NaN;
  return Math.max(0, (trace.at[next] as number) - (trace.at[i] as number) - (Number.isNaN(elapsed) ? 0 : elapsed));
}

/** @param spec of request `i` of the trace, which is operation `i`. */
export function sessionReplay(trace: Trace, chains: Chains, spec: (i: number) => Offer['spec']): Workload {
  let arrived = 0;
  return {
    next(): Offer | undefined {
      if (arrived >= chains.heads.length) return undefined;
      const i = chains.heads[arrived++] as number;
      return { at: (trace.at[i] as number) / 1000, spec: spec(i) };
    },
    ended(operation, t, ok) {
      let i = chains.next[operation] ?? -1;
      if (i < 0) return [];
      if (ok) return [{ at: t + pause(trace, operation, i) / 1000, spec: spec(i) }];
      const offers: Offer[] = [];
      for (; i >= 0; i = chains.next[i] as number) offers.push({ at: t, spec: spec(i), unsent: PREDECESSOR_FAILED });
      return offers;
    },
  };
}

/**
 * What turn `i` says: the conversation before it and a new question, together as long as the trace has it. A prompt that is
 * no longer than what was said before was cut at its beginning there: it shares nothing.
 */
export function saidBy(trace: Trace, chains: Chains, i: number): Stretch[] {
  const turns: number[] = [];
  for (let k = i; k >= 0; k = chains.before[k] as number) turns.push(k);
  let said: Stretch[] = [];
  let total = 0;
  for (const k of turns.reverse()) {
    const input = trace.input[k] as number;
    if (total >= input) {
      said = [];
      total = 0;
    }
    said.push({ purpose: 'prompt', key: k, tokens: input - total });
    if (k === i) break;
    said.push({ purpose: 'answer', key: k, tokens: trace.output[k] as number });
    total = input + (trace.output[k] as number);
  }
  return said;
}
