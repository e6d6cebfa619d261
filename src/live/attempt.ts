/**
 * One attempt: a request sent on a lane and its response told to an observer. This is the hot path; a stamp is taken at
 * the entry of the data callback, before anything is parsed.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import { oneLine } from '../base/errors.ts';
import type { Millis } from '../base/units.ts';
import type { Cancel, Clock } from '../core/clock.ts';
import type { Ending, Observer } from '../core/engine.ts';
import type { StreamEvent } from '../core/stream.ts';
import { describeErrorBody, ERROR_BODY_BYTES, htmlTitle, isHtml } from './error-body.ts';
import type { EvidenceCounters } from './evidence.ts';
import { failureOf } from './failure.ts';
import type { Lane, Lanes } from './lanes.ts';
import { type Redactor, redactUrl } from './secrets.ts';

/** Turns the bytes of one response into events; `wire` makes these. */
export interface Decoder {
  push(bytes: Buffer, emit: (event: StreamEvent) => void): void;
  /** The response ended cleanly: what was still held back. */
  end(emit: (event: StreamEvent) => void): void;
}

/** What all attempts of one engine share. */
export interface Exchange {
  readonly clock: Clock;
  readonly lanes: Lanes;
  readonly evidence: EvidenceCounters;
  readonly redact: Redactor;
  readonly host: string;
  readonly secure: boolean;
  readonly open: Set<Attempt>;
}

/** How long an error response's body may take before we do without the rest of it. */
const ERROR_BODY_WAIT: Millis = 1000;

/**
 * The attempt whose bytes are being read. One socket read with several HTTP chunks gives several callbacks in one turn:
 * the first stamps, and until a microtask has cleared this, the others take its stamp.
 */
let reading: Attempt | undefined;
let clearing = false;
/** A reaction to it is a microtask at a third of the cost of `queueMicrotask`, which makes an async resource for each. */
const SETTLED = Promise.resolve();
const clear = (): void => {
  reading = undefined;
  clearing = false;
};

export class Attempt implements Dispatcher.DispatchHandler {
  readonly #x: Exchange;
  readonly #observer: Observer;
  readonly #request: Dispatcher.DispatchOptions;
  readonly #decoderFor: (contentType: string) => Decoder;

  #lane: Lane | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #decoder: Decoder | undefined;
  #errorBody: ErrorBody | undefined;
  #dispatchedAt: Millis | undefined;
  /** The last stamp given: that of the read, while one is under way. */
  #at: Millis = 0;
  /** Without a byte before the present read. */
  #silence: Millis = 0;
  #readOutputs = 0;
  #readEvents = 0;
  #outputReads = 0;
  #outputs = 0;
  #phase: 'connecting' | 'waiting' | 'receiving' = 'connecting';
  /** The connection was open before this request: reused, or opened beforehand. */
  #wasIdle = false;
  #bytesBefore = 0;
  #over = false;

  constructor(
    exchange: Exchange,
    observer: Observer,
    request: Dispatcher.DispatchOptions,
    decoderFor: (contentType: string) => Decoder,
  ) {
    this.#x = exchange;
    this.#observer = observer;
    this.#request = request;
    this.#decoderFor = decoderFor;
    exchange.open.add(this);
  }

  start(): void {
    if (!this.#dispatch()) return;
    this.#lane = this.#x.lanes.take();
    this.#lane.client.dispatch(this.#request, this);
  }

  cancel(): void {
    if (!this.#over) this.#leave();
  }

  /** Ends the attempt from the engine's side. */
  fail(ending: Ending): void {
    if (this.#over || (this.#dispatchedAt === undefined && !this.#dispatch())) return;
    this.#end(this.#now(), ending);
  }

  /** False when the attempt was given up before or in this. */
  #dispatch(): boolean {
    if (this.#over) return false;
    this.#at = this.#dispatchedAt = this.#x.clock.now();
    this.#observer.dispatched(this.#at);
    return !this.#over;
  }

  // What undici calls, in this order; `onRequestStart` again if it sends the request anew.

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#over) {
      controller.abort(GIVEN_UP);
      return;
    }
    const again = this.#controller !== undefined;
    this.#controller = controller;
    this.#phase = 'waiting';
    const lane = this.#lane!;
    const reused = lane.served > 0;
    this.#wasIdle = reused || lane.openedAt < (this.#dispatchedAt ?? 0);
    this.#bytesBefore = lane.socket?.bytesRead ?? 0;
    lane.served++;
    if (again) return;
    const { evidence } = this.#x;
    if (reused) evidence.onReusedConnection++;
    else evidence.onFreshConnection++;
    const t = this.#now();
    const connectedAt = reused ? t : Math.min(t, Math.max(this.#dispatchedAt ?? t, lane.openedAt));
    this.#observer.connected(connectedAt, { reused, http: '1.1' });
    if (!this.#over) this.#observer.sent(t);
  }

  onResponseStart(_: unknown, status: number, headers: IncomingHttpHeaders): void {
    if (this.#over || status < 200) return; // 1xx only announces
    const t = this.#now();
    this.#phase = 'receiving';
    this.#x.evidence.response(headers, (text) => this.#clean(text));
    this.#observer.headers(t, status);
    if (this.#over) return;
    const contentType = headers['content-type'] ?? '';
    const encoding = headers['content-encoding'] ?? 'identity';
    const compressed = encoding !== '' && encoding.toLowerCase() !== 'identity';
    if (status < 200 || status > 299) {
      this.#expectError(t, new ErrorBody(status, compressed ? 'compressed' : contentType, headers.location));
    } else if (compressed) {
      const detail = `the server compresses the stream (content-encoding: ${encoding}) though asked not to, which holds tokens back; switch compression off for streams there or in the proxy before it`;
      this.#end(t, { kind: 'failed', reason: 'not-a-stream', detail: this.#clean(detail) });
    } else if (isHtml(contentType, '')) {
      this.#expectError(t, new ErrorBody(status, contentType, undefined));
    } else {
      this.#decoder = this.#decoderFor(contentType);
    }
  }

  onResponseData(_: unknown, bytes: Buffer): void {
    if (reading !== this) {
      if (this.#over) return;
      const t = this.#x.clock.now();
      if (this.#readOutputs > 0) this.#closeRead();
      this.#silence = t - this.#at;
      if (t > this.#at) this.#at = t;
      this.#x.evidence.turns.read(t);
      this.#readEvents = 0;
      reading = this;
      if (!clearing) {
        clearing = true;
        void SETTLED.then(clear);
      }
    } else if (this.#over) return;

    if (this.#decoder !== undefined) {
      this.#decoder.push(bytes, this.#emit);
    } else if (this.#errorBody?.add(bytes)) {
      this.#endWithError(this.#at);
    }
  }

  onResponseEnd(): void {
    if (this.#over) return;
    const t = reading === this ? this.#at : this.#now();
    this.#endWithError(t, true);
    // The bytes of what was held back came with the last read.
    if (!this.#over) this.#decoder?.end(this.#emit);
    if (!this.#over) this.#end(t, CLOSED, true);
  }

  onResponseError(_: unknown, error: Error): void {
    if (this.#over) return;
    const t = this.#now();
    this.#endWithError(t);
    if (this.#over) return;
    const { host, secure, redact } = this.#x;
    const untouchedReuse =
      this.#phase === 'waiting' && this.#wasIdle && (this.#lane?.socket?.bytesRead ?? 0) === this.#bytesBefore;
    this.#end(t, failureOf(error, { host, secure, phase: this.#phase, untouchedReuse }, redact));
  }

  readonly #emit = (event: StreamEvent): void => {
    if (this.#over) return; // cancelled by an earlier event of the same bytes
    if (event.outputs.length > 0) this.#readOutputs++;
    this.#observer.event(this.#at, event.error === undefined ? event : this.#cleaned(event), this.#readEvents++ > 0);
  };

  #closeRead(): void {
    this.#x.evidence.read(this.#readOutputs, this.#silence);
    this.#outputs += this.#readOutputs;
    this.#outputReads++;
    this.#readOutputs = 0;
  }

  #expectError(t: Millis, body: ErrorBody): void {
    this.#errorBody = body;
    body.stopWaiting = this.#x.clock.at(t + ERROR_BODY_WAIT, () => this.#endWithError(this.#now()));
  }

  #endWithError(t: Millis, whole = false): void {
    const body = this.#errorBody;
    if (this.#over || body === undefined) return;
    this.#end(
      t,
      body.ending((text) => this.#clean(text)),
      whole,
    );
  }

  #end(t: Millis, ending: Ending, whole = false): void {
    const lane = this.#lane;
    if (whole && lane !== undefined) {
      this.#lane = undefined;
      this.#x.lanes.give(lane);
    }
    this.#leave();
    this.#observer.ended(t, ending);
  }

  /** Leaves the request for good: nothing is told from here on, and a connection still ours is destroyed. */
  #leave(): void {
    this.#over = true;
    this.#x.open.delete(this);
    this.#errorBody?.stopWaiting();
    if (this.#readOutputs > 0) this.#closeRead();
    if (this.#outputReads === 1 && this.#outputs > 1) this.#x.evidence.inOneRead++;
    const lane = this.#lane;
    this.#lane = undefined;
    this.#decoder = undefined;
    if (lane === undefined) return;
    this.#controller?.abort(GIVEN_UP);
    this.#x.lanes.drop(lane);
  }

  /** A stamp, never before the last one given. */
  #now(): Millis {
    return (this.#at = Math.max(this.#at, this.#x.clock.now()));
  }

  #clean(text: string): string {
    return oneLine(this.#x.redact(text));
  }

  #cleaned(event: StreamEvent): StreamEvent {
    const { error } = event;
    return error === undefined ? event : { ...event, error: { ...error, message: this.#x.redact(error.message) } };
  }
}

const CLOSED: Ending = { kind: 'closed' };
const GIVEN_UP = new Error('given up');

/** The body of a response that is an error, kept up to a bound. */
class ErrorBody {
  readonly #status: number;
  readonly #contentType: string;
  readonly #location: string | undefined;
  readonly #parts: Uint8Array[] = [];
  #size = 0;
  stopWaiting: Cancel = () => {};

  constructor(status: number, contentType: string, location: string | undefined) {
    this.#status = status;
    this.#contentType = contentType;
    this.#location = location;
  }

  /** True when no more is wanted. */
  add(bytes: Uint8Array): boolean {
    const part = bytes.subarray(0, ERROR_BODY_BYTES - this.#size);
    this.#parts.push(part);
    this.#size += part.length;
    return this.#size >= ERROR_BODY_BYTES;
  }

  ending(clean: (text: string) => string): Ending {
    const body = this.#contentType === 'compressed' ? '' : Buffer.concat(this.#parts).toString('utf8');
    if (this.#status >= 200 && this.#status <= 299) {
      const title = htmlTitle(body);
      const page = title ? `an HTML page titled '${title}'` : 'an HTML page';
      const detail = `the server answered with ${page}, not a stream; check that the URL is that of the API, and not of a web page or login in front of it`;
      return { kind: 'failed', reason: 'not-a-stream', detail: clean(detail) };
    }
    const said = describeErrorBody(body, this.#contentType);
    const moved = this.#location === undefined ? '' : `moved to ${redactUrl(this.#location)}; use that URL`;
    return { kind: 'http-error', status: this.#status, detail: clean(moved || said) };
  }
}
