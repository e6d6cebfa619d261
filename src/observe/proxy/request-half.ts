/**
 * The request's way: head and body from the client to whichever connection has it now. What of the body is short is kept
 * until the response begins, to learn what it asks and to send it again where a connection turns out to be stale.
 */
import type { IncomingMessage } from 'node:http';
import type { Connection } from './connection.ts';
import { type RequestHeaders, trailerLines, upstreamHead } from './hop-headers.ts';
import type { UpstreamTarget } from './upstream.ts';

/** What of a body is kept. */
const KEPT_BODY = 4 * 1024 * 1024;

export class RequestHalf {
  readonly #req: IncomingMessage;
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
  #reading = false;
  isSent = false;

  constructor(
    req: IncomingMessage,
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
    if (this.#reading) {
      this.#writeHead();
      this.#req.resume();
      if (this.#req.readableEnded) this.#ended();
      return;
    }
    this.#reading = true;
    this.#req.on('data', this.#data);
    this.#req.once('end', () => this.#ended());
    // Behind the tick in which `data` comes; at once where nothing is to come.
    if (this.#headers.framing === undefined) this.#writeHead();
    else process.nextTick(() => this.#writeHead());
  }

  /** The connection took what was written. */
  drained(): void {
    if (this.#to !== undefined && !this.isSent) this.#req.resume();
  }

  /** The response has begun: nothing will be sent again, once all has gone. */
  answered(): void {
    if (this.isSent) this.#kept = undefined;
  }

  /** Away from a connection; the body waits for the next. */
  detach(): void {
    this.#to = undefined;
    this.#head = undefined;
    if (this.#reading && !this.isSent) this.#req.pause();
  }

  /** Nothing is sent any more: what still comes of the body is dropped, so that the client's connection may go on. */
  drop(): void {
    this.#to = undefined;
    this.#head = undefined;
    this.#kept = undefined;
    if (!this.#reading || this.isSent) return;
    this.#req.off('data', this.#data);
    this.#req.resume();
  }

  readonly #data = (chunk: Buffer): void => {
    if (this.#kept !== undefined) {
      this.#keptSize += chunk.length;
      if (this.#keptSize <= KEPT_BODY) this.#kept.push(chunk);
      else this.#kept = undefined;
    }
    if (this.#to !== undefined && !this.#write(chunk)) this.#req.pause();
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
