/**
 * The request's way: head and body from the client to whichever connection has it now. What of the body is short is kept
 * until the response begins, to learn what it asks and to send it again where a connection turns out to be stale.
 */
import type { Connection } from './connection.ts';
import type { DirectRequest } from './direct-request.ts';
import { type RequestHeaders, trailerLines, upstreamHead } from './hop-headers.ts';
import type { UpstreamTarget } from './upstream.ts';

/** What of a body is kept, and how much of it is taken before there is a connection for it. */
const KEPT_BODY = 4 * 1024 * 1024;
const AHEAD = 64 * 1024;

export class RequestHalf {
  readonly #req: DirectRequest;
  readonly #path: string;
  readonly #headers: RequestHeaders;
  readonly #preserveHost: boolean;
  /** Told once the whole body has been written to a connection, with what was kept of it. */
  readonly #sent: (body: readonly Buffer[] | undefined) => void;
  #to: Connection | undefined;
  /** A head that waits for the first of the body, which mostly came with it: one write, one waking of the upstream. */
  #head: string | undefined;
  #kept: Buffer[] | undefined = [];
  #keptSize = 0;
  /** All of it has come. */
  #isWhole = false;
  isSent = false;

  constructor(
    req: DirectRequest,
    path: string,
    headers: RequestHeaders,
    preserveHost: boolean,
    sent: (body: readonly Buffer[] | undefined) => void,
  ) {
    this.#req = req;
    this.#path = path;
    this.#headers = headers;
    this.#preserveHost = preserveHost;
    this.#sent = sent;
    req.takeBody(this.#take);
  }

  /** It could be sent again, from its beginning. */
  get canReplay(): boolean {
    return this.#kept !== undefined;
  }

  /** Sends on a connection that is open: from the beginning, whatever went to another before. */
  send(connection: Connection, target: UpstreamTarget): void {
    this.#to = connection;
    this.#head = upstreamHead(
      {
        method: this.#req.method ?? 'GET',
        target: target.prefix + this.#path,
        headers: this.#headers,
        http: this.#req.httpVersion,
      },
      this.#preserveHost ? undefined : target.authority,
    );
    for (const part of this.#kept ?? []) this.#write(part);
    if (this.#isWhole) this.#ended();
    else if (this.#keptSize > 0) {
      this.#writeHead();
      this.#req.moreBody();
    } else if (this.#headers.framing === undefined) this.#writeHead();
    // Behind the parser's present read, which mostly holds the body.
    else process.nextTick(() => this.#writeHead());
  }

  /** The connection took what was written. */
  drained(): void {
    if (this.#to !== undefined && !this.#isWhole) this.#req.moreBody();
  }

  /** The response has begun: nothing will be sent again, once all has gone. */
  answered(): void {
    if (this.isSent) this.#kept = undefined;
  }

  /** Away from a connection; the body waits for the next. */
  detach(): void {
    this.#to = undefined;
    this.#head = undefined;
  }

  /** Nothing is sent any more: what still comes of the body is dropped, so that the client's connection may go on. */
  drop(): void {
    this.#to = undefined;
    this.#head = undefined;
    this.#kept = undefined;
    if (!this.#isWhole) this.#req.dropBody();
  }

  readonly #take = (chunk: Buffer | null): boolean => {
    if (chunk === null) {
      this.#isWhole = true;
      this.#ended();
      return true;
    }
    this.#keptSize += chunk.length;
    // Without a connection all is kept: it is asked for no more then.
    if (this.#keptSize <= KEPT_BODY || this.#to === undefined) this.#kept?.push(chunk);
    else this.#kept = undefined;
    return this.#to === undefined ? this.#keptSize < AHEAD : this.#write(chunk);
  };

  #write(chunk: Buffer): boolean {
    const to = this.#to as Connection;
    const chunked = this.#headers.framing?.kind === 'chunked';
    const before = (this.#head ?? '') + (chunked ? `${chunk.length.toString(16)}\r\n` : '');
    this.#head = undefined;
    if (before === '') return to.write(chunk);
    if (chunk.length > 16 * 1024) {
      to.write(before);
      if (!chunked) return to.write(chunk);
      to.write(chunk);
      return to.write('\r\n');
    }
    const all = Buffer.allocUnsafe(before.length + chunk.length + (chunked ? 2 : 0));
    const at = all.write(before, 0, 'latin1');
    chunk.copy(all, at);
    if (chunked) all.write('\r\n', at + chunk.length, 'latin1');
    return to.write(all);
  }

  #writeHead(): void {
    const head = this.#head;
    if (head === undefined) return;
    this.#head = undefined;
    this.#to?.write(head);
  }

  #ended(): void {
    const to = this.#to;
    if (to === undefined) return;
    this.#writeHead();
    if (this.#headers.framing?.kind === 'chunked') {
      to.write(`0\r\n${trailerLines(this.#req.rawTrailers)}\r\n`);
    }
    this.isSent = true;
    this.#sent(this.#kept);
  }
}
