/**
 * Folds what an observer is told into a `RequestRecord`. The only place where a stream's events become an outcome:
 * `inspect`, `bench`, the proxy and the emulator's own tests all decide through it.
 */
import { oneLine } from '../base/errors.ts';
import { type Millis, toMicroGrid } from '../base/units.ts';
import type { Connection, Ending, Observer } from './engine.ts';
import {
  type FinishClass,
  finishClass,
  type Outcome,
  outcomeOfStatus,
  outcomeOfStreamError,
  type Phase,
} from './outcome.ts';
import type { Asked, RequestRecord, Stamps } from './record.ts';
import type { RequestSpec } from './request.ts';
import { type Finish, isAnswer, type ServerTimes, type StreamError, type StreamEvent, type Usage } from './stream.ts';
import { TimelineBuilder } from './timeline.ts';

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** Which finish stands for the whole when the choices differ: the worst. */
const SEVERITY: readonly FinishClass[] = ['stop', 'tool', 'length', 'other', 'filtered', 'aborted'];

export class Recorder implements Observer {
  readonly #spec: RequestSpec;
  readonly #stamps: Mutable<Stamps>;
  readonly #timeline = new TimelineBuilder();
  readonly #finishes: Finish[] = [];
  #last: Millis;
  #connection: Connection | undefined;
  #status: number | undefined;
  #usage: Usage | undefined;
  #error: StreamError | undefined;
  #malformed: string | undefined;
  #terminal = false;
  #impliedEnd = false;
  #whole = false;
  #events = 0;
  #coalesced = 0;
  #unclassified = 0;
  #model: string | undefined;
  #server: ServerTimes | undefined;
  #end: { outcome: Outcome; reason: string; detail: string } | undefined;

  /** @param scheduled when the arrival process said the operation should start; every later stamp is at or after it. */
  constructor(spec: RequestSpec, scheduled: Millis) {
    this.#spec = spec;
    this.#last = stamp(scheduled, Number.NEGATIVE_INFINITY, 'scheduled');
    this.#stamps = { scheduled: this.#last };
  }

  get isEnded(): boolean {
    return this.#end !== undefined;
  }
  /** How it ended; undefined while it is open. */
  get outcome(): Outcome | undefined {
    return this.#end?.outcome;
  }
  get dispatchedAt(): Millis | undefined {
    return this.#stamps.dispatched;
  }
  get hasOutput(): boolean {
    return this.#timeline.length > 0;
  }

  dispatched(t: Millis): void {
    this.#stamps.dispatched = this.#at(t, 'dispatched');
  }
  connected(t: Millis, how: Connection): void {
    this.#stamps.connected = this.#at(t, 'connected');
    this.#connection = how;
  }
  sent(t: Millis): void {
    this.#stamps.sent = this.#at(t, 'sent');
  }
  headers(t: Millis, status: number): void {
    this.#stamps.headers = this.#at(t, 'headers');
    this.#status = status;
  }

  event(t: Millis, event: StreamEvent, coalesced: boolean): void {
    const at = this.#at(t, 'event');
    this.#events++;
    if (coalesced) this.#coalesced++;
    this.#stamps.firstEvent ??= at;
    const { outputs } = event;
    for (let i = 0; i < outputs.length; i++) {
      const part = outputs[i]!;
      this.#timeline.push(at, part.tokens ?? -1, part.kind, part.choice);
      if (part.kind === 'unclassified') this.#unclassified++;
      if (this.#stamps.firstOutput === undefined) this.#stamps.firstOutput = at;
      if (this.#stamps.firstAnswer === undefined && isAnswer(part.kind)) this.#stamps.firstAnswer = at;
      this.#stamps.lastOutput = at;
    }
    if (event.finishes) this.#finishes.push(...event.finishes);
    if (event.usage) this.#usage = { ...this.#usage, ...event.usage };
    if (event.error) this.#error ??= event.error;
    if (event.malformed !== undefined) this.#malformed ??= event.malformed;
    if (event.terminal) this.#terminal = true;
    if (event.impliedEnd) this.#impliedEnd = true;
    if (event.whole) this.#whole = true;
    if (event.model) this.#model ??= event.model;
    if (event.server) this.#server = { ...this.#server, ...event.server };
  }

  ended(t: Millis, ending: Ending): void {
    this.#stamps.ended = this.#at(t, 'ended');
    this.#end = this.#outcomeOf(ending);
  }

  /**
   * Ends the record from the client's side: at its deadline, by the caller, because it was never sent, or because the
   * observation stopped. No stamp is set for an operation that is still open.
   */
  giveUp(t: Millis, outcome: 'timed-out' | 'cancelled' | 'unsent' | 'undecided', reason: string, detail = ''): void {
    if (outcome === 'timed-out' || outcome === 'cancelled')
      this.#stamps.ended = this.#at(Math.max(t, this.#last), 'ended');
    this.#end = { outcome, reason, detail };
  }

  /** Tokens of the whole text by a tokenizer the user named, once known. */
  tokenized: number | undefined;
  lostHedge = false;

  /** The finished record. @throws when nothing has ended it. */
  record(): RequestRecord {
    const end = this.#end;
    if (!end) throw new Error('internal: a record was asked for before its end');
    const { operation, attempt, session, turn } = this.#spec;
    const finish = worstFinish(this.#finishes);
    return {
      operation,
      attempt,
      attempts: end.outcome === 'unsent' ? 0 : 1,
      lostHedge: this.lostHedge,
      class: this.#spec.class,
      ...(session !== undefined && { session }),
      ...(turn !== undefined && { turn }),
      asked: askedOf(this.#spec),
      stamps: this.#stamps,
      ...(this.#connection && { connection: this.#connection }),
      ...(this.#status !== undefined && { status: this.#status }),
      timeline: this.#timeline.finish(),
      streamed: this.#spec.stream && !this.#whole,
      ...(this.#usage && { usage: this.#usage }),
      unseenEndTokens: this.#finishes.reduce((sum, f) => sum + (f.unseenEndTokens ?? 0), 0),
      ...(this.tokenized !== undefined && { tokenized: this.tokenized }),
      outcome: end.outcome,
      reason: end.reason,
      detail: oneLine(end.detail),
      phase: this.#phase(end.outcome),
      ...(finish && { finish, finishReason: oneLine(finishWords(this.#finishes), 80) }),
      impliedEnd: this.#impliedEnd,
      events: this.#events,
      coalesced: this.#coalesced,
      unclassified: this.#unclassified,
      ...(this.#model !== undefined && { model: oneLine(this.#model, 200) }),
      ...(this.#server && { server: this.#server }),
    };
  }

  #outcomeOf(ending: Ending): { outcome: Outcome; reason: string; detail: string } {
    // What the server said in the stream outranks how the transport ended: an error followed by a reset is that error.
    if (this.#error) {
      const code = this.#error.code === undefined ? '' : `-${this.#error.code}`;
      const outcome = outcomeOfStreamError(this.#error, this.hasOutput);
      return { outcome, reason: `stream-error${code}`, detail: this.#error.message || (this.#error.type ?? '') };
    }
    switch (ending.kind) {
      case 'http-error':
        return { outcome: outcomeOfStatus(ending.status), reason: `http-${ending.status}`, detail: ending.detail };
      case 'refused':
        return { outcome: 'rejected', reason: 'refused', detail: ending.detail };
      case 'failed':
        if (ending.reason === 'client-limit')
          return { outcome: 'unsent', reason: ending.reason, detail: ending.detail };
        return { outcome: 'failed', reason: ending.stale ? 'stale-connection' : ending.reason, detail: ending.detail };
      case 'closed':
        break;
    }
    if (this.#malformed !== undefined) return { outcome: 'failed', reason: 'malformed', detail: this.#malformed };
    const aborted = this.#finishes.find((f) => finishClass(f.reason) === 'aborted');
    if (aborted) return { outcome: 'failed', reason: 'engine-abort', detail: `finish reason ${aborted.reason}` };
    if (!this.#terminal && !this.#impliedEnd && !this.#allFinished()) {
      const choices = this.#spec.choices > 1 ? ` of all ${this.#spec.choices} choices` : '';
      return {
        outcome: 'truncated',
        reason: 'no-finish',
        detail: `the stream ended without a finish reason${choices}`,
      };
    }
    return { outcome: 'completed', reason: '', detail: '' };
  }

  #allFinished(): boolean {
    return new Set(this.#finishes.map((f) => f.choice)).size >= Math.max(1, this.#spec.choices);
  }

  #phase(outcome: Outcome): Phase {
    if (outcome === 'completed') return 'done';
    const s = this.#stamps;
    if (s.firstOutput !== undefined) return 'streaming';
    if (s.sent !== undefined) return 'waiting';
    if (s.connected !== undefined) return 'sending';
    return s.dispatched !== undefined ? 'connecting' : 'unsent';
  }

  #at(t: Millis, what: string): Millis {
    return (this.#last = stamp(t, this.#last, what));
  }
}

function stamp(t: Millis, after: Millis, what: string): Millis {
  const at = toMicroGrid(t);
  if (!Number.isFinite(at) || at < after)
    throw new Error(`internal: stamp '${what}' at ${t} ms comes before ${after} ms`);
  return at;
}

export function askedOf(spec: RequestSpec): Asked {
  return { input: spec.inputTokens, output: spec.outputTokens, choices: spec.choices, stream: spec.stream };
}

function worstFinish(finishes: readonly Finish[]): FinishClass | undefined {
  let worst: FinishClass | undefined;
  for (const f of finishes) {
    const c = finishClass(f.reason);
    if (worst === undefined || SEVERITY.indexOf(c) > SEVERITY.indexOf(worst)) worst = c;
  }
  return worst;
}

/** The server's own words, by choice: `stop`, or `stop|length`. */
export function finishWords(finishes: readonly Finish[]): string {
  const byChoice = [...finishes].sort((a, b) => a.choice - b.choice);
  return byChoice.map((f) => f.reason).join('|');
}
