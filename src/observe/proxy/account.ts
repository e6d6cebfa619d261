/**
 * What the record of one request is told, and when: the path notes each fact with its stamp and goes on; the facts reach
 * recorder and operations in their order, later in the same turn of the event loop.
 */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Millis } from '../../base/units.ts';
import type { ContractFor } from '../../core/contract.ts';
import type { Ending } from '../../core/engine.ts';
import type { DialectName } from '../../wire/index.ts';
import type { Caller } from '../cohorts/index.ts';
import { type Callers, requestIdOf } from './callers.ts';
import type { Later, ReadSink } from './later.ts';
import { requestFacts } from './request-facts.ts';
import { Tap, type TapContext } from './tap.ts';

/** What the accounts of one proxy share. */
export interface AccountContext extends TapContext {
  readonly later: Later;
  readonly callers: Callers;
  readonly contractFor: ContractFor;
  /** From dispatch to the first output of a request. */
  readonly served: (ttft: Millis) => void;
}

export class Account implements ReadSink {
  readonly at: Millis;
  readonly #x: AccountContext;
  readonly #headers: () => IncomingHttpHeaders;
  readonly #path: string;
  readonly #dialect: DialectName;
  #caller: Caller | undefined;
  /** Undefined until the operation has begun, and where a defect kept it from beginning. */
  #tap: Tap | undefined;
  #servedTold = false;

  constructor(context: AccountContext, at: Millis, path: string, dialect: DialectName, req: IncomingMessage) {
    this.#x = context;
    this.at = at;
    this.#path = path;
    this.#dialect = dialect;
    this.#headers = () => req.headers;
    context.later.do(() => this.#begin());
  }

  /** The TTFT limit of its class, from receipt; +∞ without one. */
  get ttftLimit(): Millis {
    const { limits, deadline } = this.#x.contractFor(this.#callerOf().class);
    return Math.min(limits.ttft ?? Infinity, limits.ttfa ?? Infinity, deadline);
  }

  /** @param queued how long it was held back, where it could be. */
  dispatched(t: Millis, queued: Millis | undefined): void {
    this.#tell((tap) => {
      tap.attempt.recorder.dispatched(t);
      if (queued !== undefined) tap.attempt.passage.queued = round(queued);
    });
  }

  /** Which upstream has it now. */
  upstream(url: string): void {
    this.#tell((tap) => {
      tap.attempt.passage.upstream = url;
    });
  }

  connected(t: Millis, reused: boolean): void {
    this.#tell((tap) => tap.attempt.recorder.connected(t, { reused, http: '1.1' }));
  }

  /** The request has been written. @param body where it was short enough to be kept. */
  sent(t: Millis, body: readonly Buffer[] | undefined): void {
    this.#tell((tap) => {
      tap.attempt.recorder.sent(t);
      const facts = requestFacts(this.#dialect, this.#path, body?.length === 1 ? body[0] : body && Buffer.concat(body));
      const { spec } = tap.attempt;
      spec.stream = facts.stream;
      spec.choices = facts.choices;
      spec.outputTokens = facts.outputTokens;
    });
  }

  head(t: Millis, status: number, contentType: string, encoding: string): void {
    this.#tell((tap) => {
      if (STREAMING.test(contentType)) tap.attempt.spec.stream = true;
      tap.head(t, status, contentType, encoding);
    });
  }

  /** Data of one read, which were passed on at `written`. */
  passed(bytes: Buffer, ranges: readonly number[], count: number, t: Millis, written: Millis): void {
    this.#x.later.read(this, bytes, ranges, count, t, written);
  }

  /** Told by `Later`. */
  read(bytes: Buffer, t: Millis, written: Millis): void {
    const tap = this.#tap;
    if (tap === undefined || !tap.attempt.isOpen) return;
    tap.read(bytes, t, written);
    if (this.#servedTold) return;
    const { recorder } = tap.attempt;
    if (!recorder.hasOutput) return;
    this.#servedTold = true;
    this.#x.served(t - (recorder.dispatchedAt ?? t));
  }

  /** The client could not take more for so long. */
  stalled(ms: Millis): void {
    this.#tell((tap) => {
      const { passage } = tap.attempt;
      passage.stalled = round((passage.stalled ?? 0) + ms);
    });
  }

  ended(t: Millis, ending: Ending): void {
    this.#tell((tap) => tap.ended(t, ending), true);
  }

  /** The client left. */
  left(t: Millis): void {
    this.#tell((tap) => tap.left(t), true);
  }

  #begin(): void {
    const caller = this.#callerOf();
    const attempt = this.#x.operations.begin(caller);
    const requestId = requestIdOf(this.#headers());
    if (requestId !== undefined) attempt.passage.requestId = requestId;
    if (caller.tenant !== '') attempt.passage.tenant = caller.tenant;
    if (caller.trace) attempt.passage.traceId = caller.trace.traceId;
    this.#tap = new Tap(this.#x, attempt, this.#dialect);
  }

  #callerOf(): Caller {
    return (this.#caller ??= this.#x.callers.of(this.at, this.#path, this.#headers()));
  }

  #tell(what: (tap: Tap) => void, whenOver = false): void {
    this.#x.later.do(() => {
      const tap = this.#tap;
      if (tap !== undefined && (whenOver || tap.attempt.isOpen)) what(tap);
    });
  }
}

const STREAMING = /^text\/event-stream|ndjson|jsonl|json-?lines|stream\+json|json-seq/i;

const round = (ms: Millis): Millis => Math.round(ms * 1000) / 1000;
