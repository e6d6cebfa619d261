/**
 * The response's way: from the upstream's connection to the client. Bytes of the body go to the client's socket as they
 * came, before anything looks at them; head, end and trailers go through node's `ServerResponse`, which knows what the
 * client's connection needs. This is the hot path.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Millis } from '../../base/units.ts';
import type { Account } from './account.ts';
import { BodyCutter } from './body-cutter.ts';
import type { Connection } from './connection.ts';
import { endToEnd } from './hop-headers.ts';
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

export class ResponseHalf {
  readonly #req: IncomingMessage;
  readonly #res: ServerResponse;
  readonly #client: Socket;
  readonly #account: Account | undefined;
  readonly #now: () => Millis;
  #expects: boolean;
  /** Bytes of a head that is not whole yet. */
  #partial: Buffer | undefined;
  /** Once there is a head. */
  #cutter: BodyCutter | undefined;
  #keepsAlive = false;
  /** Bytes go to the client's socket as they are; else through `ServerResponse`, which frames them anew. */
  #raw = false;
  #corked = false;
  #pausedAt: Millis | undefined;
  #over = false;
  /** Some byte of an answer has come from the connection of now. */
  anyByte = false;
  /** The upstream's connection stands behind the answer and may carry another request. */
  isReusable = false;

  /** @param expects the client waits for `100 Continue` before it sends its body. */
  constructor(
    req: IncomingMessage,
    res: ServerResponse,
    account: Account | undefined,
    now: () => Millis,
    expects: boolean,
  ) {
    this.#req = req;
    this.#res = res;
    this.#client = req.socket;
    this.#account = account;
    this.#now = now;
    this.#expects = expects;
  }

  get hasBegun(): boolean {
    return this.#cutter !== undefined;
  }
  get isDone(): boolean {
    return this.#cutter?.done ?? false;
  }

  /** How long the client has taken nothing, though more waits for it. */
  stalledFor(now: Millis): Millis {
    return this.#pausedAt === undefined ? 0 : now - this.#pausedAt;
  }

  /** Another connection is to answer. */
  restart(): void {
    this.anyByte = false;
    this.#partial = undefined;
  }

  /** Takes a read. @throws BadResponse for what cannot be passed on without guessing. */
  read(connection: Connection, bytes: Buffer, length: number, t: Millis): void {
    if (this.#cutter !== undefined) this.#body(connection, this.#cutter, bytes, 0, length, t);
    else this.#head(connection, bytes, length, t);
  }

  /** The upstream closed its side. True where that ends the body, which it then does towards the client. */
  endedByClose(): boolean {
    const cutter = this.#cutter;
    if (cutter?.kind !== 'close' || cutter.done) return false;
    cutter.done = true;
    this.#res.end();
    return true;
  }

  /** Breaks an answer off that has begun, so that no client takes it for whole. */
  breakOff(): void {
    // To a client of HTTP/1.0 without a length a clean close would be the end.
    if (this.#req.httpVersion !== '1.1' && this.#cutter?.kind !== 'length') reset(this.#client);
    else this.#client.destroySoon();
  }

  /** Nothing more is passed on. */
  stop(): void {
    this.#over = true;
    this.#partial = undefined;
  }

  #head(connection: Connection, bytes: Buffer, length: number, t: Millis): void {
    this.anyByte = true;
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
        this.#begin(connection, head, all, from, to, t);
        return;
      }
      this.#interim(head);
    }
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

  #begin(connection: Connection, head: ResponseHead, bytes: Buffer, from: number, to: number, t: Millis): void {
    const cutter = this.#answer(head, t);
    if (from === to && !cutter.done) {
      this.#res.flushHeaders();
      return;
    }
    const client = this.#client;
    client.cork(); // head and first bytes in one write
    this.#res.flushHeaders();
    this.#corked = true;
    this.#body(connection, cutter, bytes, from, to, t);
    this.#corked = false;
    client.uncork();
    if (client.writableLength > 0) connection.giveBuffer();
  }

  #answer(head: ResponseHead, t: Millis): BodyCutter {
    const res = this.#res;
    const length = bodyLength(head, this.#req.method ?? 'GET');
    const raw = endToEnd(head.raw);
    const modern = this.#req.httpVersion === '1.1';
    if (length.kind === 'chunked' && modern) raw.push('transfer-encoding', 'chunked');
    this.#raw = res.socket !== null && (length.kind === 'length' || (length.kind === 'chunked' && modern));
    res.sendDate = false;
    // Its body may still come, though nobody waits for it.
    if (this.#expects) res.shouldKeepAlive = false;
    try {
      res.writeHead(head.status, head.reason, raw);
    } catch {
      throw new BadResponse('its headers are not allowed in HTTP');
    }
    this.#keepsAlive = keepsAlive(head) && length.kind !== 'close';
    this.#cutter = new BodyCutter(length);
    this.#account?.head(
      t,
      head.status,
      headerOf(head.raw, 'content-type') ?? '',
      headerOf(head.raw, 'content-encoding') ?? '',
    );
    return this.#cutter;
  }

  #body(connection: Connection, cutter: BodyCutter, bytes: Buffer, from: number, to: number, t: Millis): void {
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
      this.#res.end();
      this.isReusable = this.#keepsAlive && cutter.rest === to;
    } else if (!flowing) this.#pause(connection, t);
    // Still to be written by the system: the bytes must stay as they are.
    if (!this.#corked && client.writableLength > 0) connection.giveBuffer();
    if (cutter.count > 0) this.#account?.passed(bytes, cutter.ranges, cutter.count, t, this.#now());
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

  /** The client takes no more for now: nor is more read. */
  #pause(connection: Connection, t: Millis): void {
    if (this.#pausedAt !== undefined) return;
    this.#pausedAt = t;
    connection.pause();
    const waitOn = this.#raw ? this.#client : this.#res;
    waitOn.once('drain', () => {
      const since = this.#pausedAt;
      this.#pausedAt = undefined;
      if (this.#over || since === undefined) return;
      this.#account?.stalled(this.#now() - since);
      connection.resume();
    });
  }
}

/** Over TLS there is no reset of one's own; a connection without its closing alert is as plain. */
function reset(socket: Socket): void {
  if ('encrypted' in socket) socket.destroy();
  else socket.resetAndDestroy();
}
