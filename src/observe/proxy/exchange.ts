/**
 * One request on its way through: client to upstream and back. Bytes of the response go to the client's socket as they
 * came, before anything looks at them; head, end and trailers go through node's `ServerResponse`, which knows what the
 * client's connection needs. This is the hot path.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Millis } from '../../base/units.ts';
import type { TransportFailure } from '../../core/engine.ts';
import type { DialectName } from '../../wire/index.ts';
import type { Admission, Admitted } from './admission.ts';
import { BodyCutter } from './body-cutter.ts';
import type { Connection, ConnectionEvents } from './connection.ts';
import { endToEnd, type RequestFraming, upstreamHead } from './hop-headers.ts';
import { requestFacts } from './request-facts.ts';
import {
  BadResponse,
  bodyLength,
  headEnd,
  headerOf,
  keepsAlive,
  MAX_HEAD_BYTES,
  parseHead,
  type ResponseHead,
} from './response-head.ts';
import type { Tap } from './tap.ts';
import { choose, type Upstream } from './upstream.ts';

/** What the exchanges of one proxy share. */
export interface ExchangeContext {
  readonly now: () => Millis;
  readonly upstreams: readonly Upstream[];
  readonly admission: Admission;
  readonly open: Set<Exchange>;
  readonly counts: TransportCounts;
  /** Send the caller's own `Host` on, instead of the upstream's. */
  readonly preserveHost: boolean;
  readonly connectTimeout: Millis;
}

export interface TransportCounts {
  requests: number;
  passedThrough: number;
  /** A reused connection that was closed just as it was to be used: sent again on a fresh one. */
  staleReattempts: number;
  /** Not connected: sent to another upstream. */
  failovers: number;
  clientAborts: number;
  refused: number;
  badGateway: number;
}

/** What of a request's body is kept until its response begins: to learn what it asks, and to send it again. */
const KEPT_BODY = 4 * 1024 * 1024;

type State = 'queued' | 'connecting' | 'waiting' | 'body' | 'over';

const CLOSED = { kind: 'closed' } as const;

export class Exchange implements ConnectionEvents, Admitted {
  readonly at: Millis;
  readonly ttftLimit: Millis;
  readonly #x: ExchangeContext;
  readonly #req: IncomingMessage;
  readonly #res: ServerResponse;
  readonly #client: Socket;
  readonly #path: string;
  readonly #dialect: DialectName | undefined;
  readonly #tap: Tap | undefined;
  #expects: boolean;
  #state: State = 'queued';
  #upstream: Upstream | undefined;
  #connection: Connection | undefined;
  #since: Millis = 0;
  #tried = 1;
  #framing: RequestFraming;
  #kept: Buffer[] | undefined = [];
  #keptSize = 0;
  #reading = false;
  #bodySent = false;
  /** Bytes of a response head that is not whole yet. */
  #partial: Buffer | undefined;
  #anyByte = false;
  #cutter: BodyCutter | undefined;
  #reusable = false;
  /** Bytes go to the client's socket as they are; else through `ServerResponse`, which frames them anew. */
  #raw = false;
  #corked = false;
  #pausedAt: Millis | undefined;
  #servedTold = false;

  constructor(
    context: ExchangeContext,
    req: IncomingMessage,
    res: ServerResponse,
    path: string,
    about: { at: Millis; dialect: DialectName | undefined; tap: Tap | undefined; ttftLimit: Millis; expects: boolean },
  ) {
    this.#x = context;
    this.#req = req;
    this.#res = res;
    this.#client = req.socket;
    this.#path = path;
    this.at = about.at;
    this.ttftLimit = about.ttftLimit;
    this.#dialect = about.dialect;
    this.#tap = about.tap;
    this.#expects = about.expects;
    this.#framing = framingOf(req);
    context.open.add(this);
    res.once('close', () => this.#clientClosed());
    res.on('error', () => {});
  }

  start(): void {
    if (this.#tap !== undefined) {
      this.#x.admission.enter(this);
      return;
    }
    // Lists of models, health and the like take no slot.
    const upstream = choose(this.#x.upstreams, this.#x.counts.requests, this.#x.now()) ?? this.#x.upstreams[0];
    this.dispatch(upstream as Upstream);
  }

  // What admission says.

  dispatch(upstream: Upstream): void {
    if (this.#state !== 'queued') return;
    const t = this.#x.now();
    const attempt = this.#tap?.attempt;
    if (attempt?.isOpen) {
      attempt.recorder.dispatched(t);
      if (Number.isFinite(upstream.maxConcurrency)) attempt.passage.queued = round(t - this.at);
    }
    this.#use(upstream, t, false);
  }

  refuse(retryAfter: number, why: string): void {
    if (this.#state !== 'queued') return;
    this.#x.counts.refused++;
    this.#tap?.ended(this.#x.now(), { kind: 'refused', detail: `refused by the proxy: ${why}` });
    this.#leave();
    answer(this.#res, 429, 'rate_limit_exceeded', `the server is at capacity: ${why}; try again later`, [
      'retry-after',
      String(retryAfter),
    ]);
  }

  /** Called a few times a second. */
  sweep(now: Millis): void {
    if (this.#state === 'connecting' && now - this.#since > this.#x.connectTimeout) {
      const connection = this.#connection;
      connection?.destroy();
      this.closed(Object.assign(new Error('timeout'), { code: 'ETIMEDOUT' }));
    }
  }

  /** The proxy closes. */
  stop(): void {
    if (this.#state === 'over') return;
    this.#client.destroy();
  }

  // What the connection tells.

  connected(): void {
    if (this.#state === 'connecting') this.#send();
  }

  read(bytes: Buffer, length: number): void {
    const t = this.#x.now();
    try {
      if (this.#state === 'body') this.#body(bytes, 0, length, t);
      else if (this.#state === 'waiting') this.#head(bytes, length, t);
    } catch (error) {
      // One defect of ours breaks one exchange, not every stream of the process.
      const why = error instanceof BadResponse ? error.message : 'a defect in the proxy';
      this.#fail(502, 'protocol', `the upstream's answer cannot be passed on: ${why}`, t);
    }
  }

  end(): void {
    if (this.#state === 'body' && this.#cutter?.kind === 'close') this.#complete(this.#x.now());
  }

  closed(error: NodeJS.ErrnoException | undefined): void {
    const t = this.#x.now();
    const upstream = this.#upstream;
    if (upstream === undefined) return;
    switch (this.#state) {
      case 'connecting': {
        upstream.failed(t);
        const next = this.#nextUpstream(upstream, t);
        if (next !== undefined) {
          this.#x.counts.failovers++;
          this.#release();
          this.#tried++;
          this.#use(next, t, false);
          return;
        }
        const code = error?.code ?? 'closed';
        this.#fail(code === 'ETIMEDOUT' ? 504 : 502, 'connect', `the upstream cannot be reached (${code})`, t);
        return;
      }
      case 'waiting': {
        const untouched = !this.#anyByte;
        if (untouched && (this.#connection?.served ?? 0) > 1 && this.#canReplay) {
          this.#x.counts.staleReattempts++;
          const again = upstream;
          this.#release();
          this.#use(again, t, true);
          return;
        }
        upstream.failed(t);
        this.#fail(502, 'reset', 'the upstream closed the connection before it answered', t);
        return;
      }
      case 'body':
        upstream.failed(t);
        this.#fail(502, 'reset', 'the upstream closed the connection in the middle of its answer', t);
        return;
    }
  }

  drain(): void {
    if (!this.#bodySent) this.#req.resume();
  }

  // Towards the upstream.

  #use(upstream: Upstream, t: Millis, fresh: boolean): void {
    this.#upstream = upstream;
    if (this.#tap) {
      upstream.inFlight++;
      this.#tap.attempt.passage.upstream = upstream.target.url;
    }
    upstream.requests++;
    this.#since = t;
    this.#state = 'connecting';
    const connection = upstream.connection(fresh);
    connection.served++;
    this.#connection = connection;
    connection.listen(this);
    if (connection.isOpen) this.#send();
  }

  #nextUpstream(failed: Upstream, t: Millis): Upstream | undefined {
    if (this.#tried >= this.#x.upstreams.length) return undefined;
    return choose(this.#x.upstreams, this.#x.counts.requests, t, failed);
  }

  get #canReplay(): boolean {
    return this.#kept !== undefined;
  }

  #send(): void {
    const connection = this.#connection as Connection;
    const { target } = this.#upstream as Upstream;
    this.#state = 'waiting';
    this.#anyByte = false;
    const attempt = this.#tap?.attempt;
    if (attempt?.isOpen) attempt.recorder.connected(this.#x.now(), { reused: connection.served > 1, http: '1.1' });
    const head = {
      method: this.#req.method ?? 'GET',
      target: target.prefix + this.#path,
      raw: this.#req.rawHeaders,
      http: this.#req.httpVersion,
    };
    // What of the body has come with the head goes with the head: one write, one waking of the upstream.
    const { socket } = connection;
    socket.cork();
    connection.write(upstreamHead(head, this.#x.preserveHost ? undefined : target.authority, this.#framing, NOTHING));
    for (const part of this.#kept ?? []) this.#write(part);
    if (this.#reading) {
      this.#req.resume();
      if (this.#req.readableEnded) this.#requestEnded();
    } else {
      this.#reading = true;
      this.#req.on('data', (chunk: Buffer) => this.#requestData(chunk));
      this.#req.once('end', () => this.#requestEnded());
    }
    process.nextTick(() => socket.uncork()); // after the tick in which `data` comes
  }

  #requestData(chunk: Buffer): void {
    if (this.#kept !== undefined) {
      this.#keptSize += chunk.length;
      if (this.#keptSize <= KEPT_BODY) this.#kept.push(chunk);
      else this.#kept = undefined;
    }
    // Between two connections, what is kept will be sent on the next.
    if (this.#state !== 'waiting' && this.#state !== 'body') return;
    if (!this.#write(chunk)) this.#req.pause();
  }

  #write(chunk: Buffer): boolean {
    const connection = this.#connection as Connection;
    if (this.#framing?.kind !== 'chunked') return connection.write(chunk);
    connection.write(`${chunk.length.toString(16)}\r\n`);
    connection.write(chunk);
    return connection.write('\r\n');
  }

  #requestEnded(): void {
    if (this.#state !== 'waiting' && this.#state !== 'body') return;
    if (this.#framing?.kind === 'chunked') {
      const raw = this.#req.rawTrailers;
      let text = '0\r\n';
      for (let i = 0; i < raw.length; i += 2) text += `${raw[i]}: ${raw[i + 1]}\r\n`;
      this.#connection?.write(`${text}\r\n`);
    }
    this.#bodySent = true;
    const attempt = this.#tap?.attempt;
    if (attempt?.isOpen) {
      attempt.recorder.sent(this.#x.now());
      const body = this.#kept && Buffer.concat(this.#kept);
      const facts = requestFacts(this.#dialect as DialectName, this.#path, body);
      attempt.spec.stream = facts.stream;
      attempt.spec.choices = facts.choices;
      attempt.spec.outputTokens = facts.outputTokens;
    }
    if (this.#state === 'body') this.#kept = undefined;
  }

  // Back to the client.

  #head(bytes: Buffer, length: number, t: Millis): void {
    this.#anyByte = true;
    let all = bytes;
    let to = length;
    if (this.#partial !== undefined) {
      all = Buffer.concat([this.#partial, bytes.subarray(0, length)]);
      to = all.length;
      this.#partial = undefined;
    }
    let from = 0;
    for (;;) {
      const end = headEnd(all, from, to);
      if (end < 0) {
        if (to - from > MAX_HEAD_BYTES) throw new BadResponse('its head is larger than 64 KiB');
        this.#partial = Buffer.from(all.subarray(from, to));
        return;
      }
      if (end - from > MAX_HEAD_BYTES) throw new BadResponse('its head is larger than 64 KiB');
      const head = parseHead(all.toString('latin1', from, end));
      from = end;
      if (head.status >= 200) {
        this.#answer(head, t);
        break;
      }
      this.#interim(head);
    }
    if ((this.#state as State) !== 'body') return;
    if (from < to || this.#cutter?.done) {
      const client = this.#client;
      client.cork(); // head and first bytes in one write
      this.#res.flushHeaders();
      const connection = this.#connection;
      this.#corked = true;
      this.#body(all, from, to, t);
      this.#corked = false;
      client.uncork();
      if (client.writableLength > 0) connection?.giveBuffer();
    } else this.#res.flushHeaders();
  }

  #interim(head: ResponseHead): void {
    if (head.status === 101) throw new BadResponse('it switches protocols, which was not asked for');
    if (head.status === 100) {
      if (this.#expects) this.#res.writeContinue();
      this.#expects = false;
    } else if (this.#req.httpVersion === '1.1' && this.#res.socket) {
      const raw = endToEnd(head.raw);
      let text = `HTTP/1.1 ${head.status} ${head.reason}\r\n`;
      for (let i = 0; i < raw.length; i += 2) text += `${raw[i]}: ${raw[i + 1]}\r\n`;
      this.#client.write(`${text}\r\n`, 'latin1');
    }
  }

  #answer(head: ResponseHead, t: Millis): void {
    const res = this.#res;
    const length = bodyLength(head, this.#req.method ?? 'GET');
    const raw = endToEnd(head.raw);
    const modern = this.#req.httpVersion === '1.1';
    if (length.kind === 'chunked' && modern) raw.push('transfer-encoding', 'chunked');
    // A pipelined response whose turn has not come has no socket yet: node holds it back, so node must frame it.
    this.#raw = res.socket !== null && (length.kind === 'length' || (length.kind === 'chunked' && modern));
    res.sendDate = false;
    // Its body may still come, though nobody waits for it.
    if (this.#expects) res.shouldKeepAlive = false;
    try {
      res.writeHead(head.status, head.reason, raw);
    } catch {
      throw new BadResponse('its headers are not allowed in HTTP');
    }
    this.#reusable = keepsAlive(head) && length.kind !== 'close';
    this.#cutter = new BodyCutter(length);
    this.#state = 'body';
    this.#upstream?.succeeded();
    if (this.#bodySent) this.#kept = undefined;
    if (this.#tap === undefined) return;
    const contentType = headerOf(head.raw, 'content-type') ?? '';
    const { spec, isOpen } = this.#tap.attempt;
    if (isOpen && STREAMING.test(contentType)) spec.stream = true;
    this.#tap.head(t, head.status, contentType, headerOf(head.raw, 'content-encoding') ?? '');
  }

  #body(bytes: Buffer, from: number, to: number, t: Millis): void {
    const cutter = this.#cutter as BodyCutter;
    if (cutter.done) cutter.rest = from; // no body at all
    const pass = cutter.done ? from : cutter.read(bytes, from, to);
    const client = this.#client;
    let flowing = true;
    if (this.#raw) {
      if (pass > from) {
        if (cutter.done) client.cork(); // the end goes with it
        if (cutter.before !== '') client.write(cutter.before, 'latin1');
        flowing = client.write(from === 0 && pass === bytes.length ? bytes : bytes.subarray(from, pass));
      }
    } else {
      for (let i = 0; i < cutter.count; i += 2) {
        flowing = this.#res.write(Buffer.from(bytes.subarray(cutter.ranges[i], cutter.ranges[i + 1])));
      }
    }
    if (cutter.done) {
      if (cutter.trailers.length > 0) this.#addTrailers(cutter.trailers);
      this.#finishClient();
      flowing = true;
    }
    // Still to be written by the system: the bytes must stay as they are.
    if (!this.#corked && client.writableLength > 0) this.#connection?.giveBuffer();
    const tap = this.#tap;
    if (tap?.attempt.isOpen) {
      tap.read(bytes, cutter.ranges, cutter.count, t, this.#x.now());
      if (!this.#servedTold && tap.attempt.recorder.hasOutput) {
        this.#servedTold = true;
        this.#x.admission.served(t - (tap.attempt.recorder.dispatchedAt ?? t));
      }
    }
    if (cutter.done) this.#done(t, cutter.rest === to);
    else if (!flowing) this.#pause(t);
  }

  #addTrailers(raw: readonly string[]): void {
    const pairs: [string, string][] = [];
    const kept = endToEnd(raw);
    for (let i = 0; i < kept.length; i += 2) pairs.push([kept[i] as string, kept[i + 1] as string]);
    try {
      this.#res.addTrailers(pairs);
    } catch {
      // not allowed in HTTP: the answer itself is whole
    }
  }

  /** Ends the response towards the client; it is over before the record is made. */
  #finishClient(): void {
    this.#res.end();
  }

  /** A body that only the close of the connection ends. */
  #complete(t: Millis): void {
    this.#finishClient();
    this.#done(t, false);
  }

  #pause(t: Millis): void {
    if (this.#pausedAt !== undefined) return;
    this.#pausedAt = t;
    this.#connection?.pause();
    const waitOn = this.#raw ? this.#client : this.#res;
    waitOn.once('drain', () => {
      const since = this.#pausedAt;
      this.#pausedAt = undefined;
      if (this.#state !== 'body' || since === undefined) return;
      const passage = this.#tap?.attempt.passage;
      if (passage) passage.stalled = round((passage.stalled ?? 0) + this.#x.now() - since);
      this.#connection?.resume();
    });
  }

  #done(t: Millis, clean: boolean): void {
    const connection = this.#connection;
    const upstream = this.#upstream;
    this.#state = 'over';
    this.#tap?.ended(t, CLOSED);
    this.#connection = undefined;
    if (connection !== undefined) {
      if (clean && this.#reusable && this.#bodySent && upstream) upstream.keep(connection, t);
      else connection.destroy();
    }
    this.#leave();
  }

  #fail(status: 502 | 504, reason: TransportFailure, detail: string, t: Millis): void {
    this.#x.counts.badGateway++;
    const began = this.#res.headersSent;
    // To a client of HTTP/1.0 without a length a clean close would be the end.
    const unmarked = this.#req.httpVersion !== '1.1' && this.#cutter?.kind !== 'length';
    this.#tap?.ended(t, { kind: 'failed', reason, detail });
    this.#leave();
    if (!began) answer(this.#res, status, 'bad_gateway', detail);
    else if (unmarked) this.#client.resetAndDestroy();
    else this.#client.destroySoon();
  }

  #clientClosed(): void {
    if (this.#state === 'over') return;
    this.#x.counts.clientAborts++;
    const t = this.#x.now();
    if (this.#state === 'queued') this.#x.admission.leave(this);
    this.#tap?.left(t);
    this.#leave();
  }

  /** Lets go of the upstream for good. */
  #leave(): void {
    this.#state = 'over';
    this.#kept = undefined;
    this.#x.open.delete(this);
    this.#release();
  }

  #release(): void {
    const upstream = this.#upstream;
    const connection = this.#connection;
    this.#upstream = undefined;
    this.#connection = undefined;
    this.#partial = undefined;
    connection?.destroy();
    if (upstream === undefined || this.#tap === undefined) return;
    upstream.inFlight--;
    this.#x.admission.released();
  }
}

const NOTHING: readonly string[] = [];
const STREAMING = /^text\/event-stream|ndjson|jsonl|json-?lines|stream\+json|json-seq/i;

const round = (ms: Millis): Millis => Math.round(ms * 1000) / 1000;

function framingOf(req: IncomingMessage): RequestFraming {
  const { 'content-length': length, 'transfer-encoding': coding } = req.headers;
  if (coding !== undefined) return { kind: 'chunked' };
  return length === undefined ? undefined : { kind: 'length', bytes: Number(length) };
}

/** An answer of the proxy's own, in the shape that clients of every dialect can read. */
export function answer(
  res: ServerResponse,
  status: number,
  type: string,
  message: string,
  headers: readonly string[] = [],
): void {
  if (res.headersSent || res.destroyed) return;
  const body = JSON.stringify({ error: { message: `goodput proxy: ${message}`, type, code: status } });
  res.writeHead(status, [
    'content-type',
    'application/json',
    'content-length',
    String(Buffer.byteLength(body)),
    ...headers,
  ]);
  res.end(body);
}
