/**
 * One request on its way through, from admission to its last byte: which upstream and connection has it, what happens when
 * one fails, and when each part is let go. The bytes themselves pass by `request-half` and `response-half`.
 */
import type { ServerResponse } from 'node:http';
import type { Millis } from '../../base/units.ts';
import type { TransportFailure } from '../../core/engine.ts';
import type { Account } from './account.ts';
import type { Admission, Admitted } from './admission.ts';
import type { Connection, ConnectionEvents } from './connection.ts';
import type { DirectRequest } from './direct-request.ts';
import type { RequestHeaders } from './hop-headers.ts';
import { answer } from './own-answers.ts';
import { RequestHalf } from './request-half.ts';
import { ResponseHalf } from './response-half.ts';
import { BadResponse } from './response-head.ts';
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
  readonly stallTimeout: Millis;
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

/** One request as it came. */
export interface Incoming {
  readonly at: Millis;
  readonly req: DirectRequest;
  readonly res: ServerResponse;
  readonly path: string;
  readonly headers: RequestHeaders;
  /** What is to be recorded of it; undefined for what passes unrecorded. */
  readonly account: Account | undefined;
  /** The client waits for `100 Continue`. */
  readonly expects: boolean;
}

type State = 'queued' | 'connecting' | 'waiting' | 'body' | 'over';

const CLOSED = { kind: 'closed' } as const;

export class Exchange implements ConnectionEvents, Admitted {
  readonly at: Millis;
  readonly #x: ExchangeContext;
  readonly #res: ServerResponse;
  readonly #account: Account | undefined;
  readonly #request: RequestHalf;
  readonly #response: ResponseHalf;
  readonly #hangUp: () => void;
  #state: State = 'queued';
  #upstream: Upstream | undefined;
  #connection: Connection | undefined;
  #since: Millis = 0;
  #tried = 1;

  constructor(context: ExchangeContext, incoming: Incoming) {
    const { at, req, res, account } = incoming;
    this.#x = context;
    this.at = at;
    this.#res = res;
    this.#account = account;
    this.#hangUp = () => void req.socket.destroy();
    this.#request = new RequestHalf(req, incoming.path, incoming.headers, context.preserveHost, (body) => {
      account?.sent(context.now(), body);
      if (this.#state === 'body') this.#request.answered();
    });
    this.#response = new ResponseHalf(req, res, account, context.now, incoming.expects);
    context.open.add(this);
    res.once('close', () => this.#clientClosed());
    res.on('error', () => {});
  }

  start(): void {
    if (this.#account !== undefined) {
      this.#x.admission.enter(this);
      return;
    }
    // Lists of models, health and the like take no slot.
    const upstream = choose(this.#x.upstreams, this.#x.counts.requests, this.#x.now()) ?? this.#x.upstreams[0];
    this.dispatch(upstream as Upstream);
  }

  // What admission asks and says.

  get ttftLimit(): Millis {
    return this.#account?.ttftLimit ?? Number.POSITIVE_INFINITY;
  }

  dispatch(upstream: Upstream): void {
    if (this.#state !== 'queued') return;
    const t = this.#x.now();
    this.#account?.dispatched(t, Number.isFinite(upstream.maxConcurrency) ? t - this.at : undefined);
    this.#use(upstream, t, false);
  }

  refuse(retryAfter: number, why: string): void {
    if (this.#state !== 'queued') return;
    this.#x.counts.refused++;
    this.#account?.ended(this.#x.now(), { kind: 'refused', detail: `refused by the proxy: ${why}` });
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
    } else if (this.#response.stalledFor(now) > this.#x.stallTimeout) this.stop();
  }

  /** The proxy closes. */
  stop(): void {
    if (this.#state !== 'over') this.#hangUp();
  }

  // What the connection tells.

  connected(): void {
    if (this.#state === 'connecting') this.#send();
  }

  read(bytes: Buffer, length: number): void {
    const connection = this.#connection;
    if (connection === undefined || (this.#state !== 'body' && this.#state !== 'waiting')) return;
    const t = this.#x.now();
    const response = this.#response;
    try {
      response.read(connection, bytes, length, t);
      if (this.#state === 'waiting' && response.hasBegun) {
        this.#state = 'body';
        this.#upstream?.succeeded();
        this.#request.answered();
      }
      if (response.isDone) this.#done(t);
    } catch (error) {
      // One defect of ours breaks one exchange, not every stream of the process.
      const why = error instanceof BadResponse ? error.message : 'a defect in the proxy';
      this.#fail(502, 'protocol', `the upstream's answer cannot be passed on: ${why}`, t);
    }
  }

  end(): void {
    if (this.#state === 'body' && this.#response.endedByClose()) this.#done(this.#x.now());
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
      case 'waiting':
        if (!this.#response.anyByte && (this.#connection?.served ?? 0) > 1 && this.#request.canReplay) {
          this.#x.counts.staleReattempts++;
          this.#release();
          this.#use(upstream, t, true);
          return;
        }
        upstream.failed(t);
        this.#fail(502, 'reset', 'the upstream closed the connection before it answered', t);
        return;
      case 'body':
        upstream.failed(t);
        this.#fail(502, 'reset', 'the upstream closed the connection in the middle of its answer', t);
        return;
    }
  }

  drain(): void {
    this.#request.drained();
  }

  // From one state to the next.

  #use(upstream: Upstream, t: Millis, fresh: boolean): void {
    this.#upstream = upstream;
    if (this.#account !== undefined) upstream.inFlight++;
    this.#account?.upstream(upstream.target.url);
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

  #send(): void {
    const connection = this.#connection as Connection;
    this.#state = 'waiting';
    this.#response.restart();
    this.#account?.connected(this.#x.now(), connection.served > 1);
    this.#request.send(connection, (this.#upstream as Upstream).target);
  }

  /** The response has ended towards the client. */
  #done(t: Millis): void {
    const connection = this.#connection;
    const upstream = this.#upstream;
    this.#state = 'over';
    this.#account?.ended(t, CLOSED);
    this.#connection = undefined;
    if (connection !== undefined) {
      if (this.#response.isReusable && this.#request.isSent && upstream) upstream.keep(connection, t);
      else connection.destroy();
    }
    this.#leave();
  }

  #fail(status: 502 | 504, reason: TransportFailure, detail: string, t: Millis): void {
    this.#x.counts.badGateway++;
    const began = this.#res.headersSent;
    this.#account?.ended(t, { kind: 'failed', reason, detail });
    this.#leave();
    if (began) this.#response.breakOff();
    else answer(this.#res, status, 'bad_gateway', detail);
  }

  #clientClosed(): void {
    if (this.#state === 'over') return;
    this.#x.counts.clientAborts++;
    const t = this.#x.now();
    if (this.#state === 'queued') this.#x.admission.leave(this);
    this.#account?.left(t);
    this.#leave();
  }

  /** Lets go of the upstream for good. */
  #leave(): void {
    this.#state = 'over';
    this.#x.open.delete(this);
    this.#release();
    this.#request.drop();
    this.#response.stop();
  }

  #release(): void {
    const upstream = this.#upstream;
    const connection = this.#connection;
    this.#upstream = undefined;
    this.#connection = undefined;
    this.#request.detach();
    connection?.destroy();
    if (upstream === undefined || this.#account === undefined) return;
    upstream.inFlight--;
    this.#x.admission.released();
  }
}
