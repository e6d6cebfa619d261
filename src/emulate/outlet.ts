/**
 * One response on its way out. A chunk is framed by hand and written to the socket in one call: `ServerResponse.write`
 * would make four writes of it and cork them to the next tick, so that a stamp taken before it would be early. What is
 * written here is in the kernel's hands when `write` returns, unless the client reads too slowly.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';

/** A client that leaves this much unread has gone: the connection is dropped. */
const MAX_UNREAD_BYTES = 4 << 20;

export class Outlet {
  readonly #response: ServerResponse;
  readonly #chunked: boolean;
  #ended = false;

  constructor(request: IncomingMessage, response: ServerResponse) {
    this.#response = response;
    this.#chunked = request.httpVersionMajor === 1 && request.httpVersionMinor >= 1;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Sends the head of a stream. */
  head(headers: Readonly<Record<string, string>>): void {
    if (this.#ended) return;
    this.#response.writeHead(200, { ...headers });
    this.#response.flushHeaders();
  }

  /** @param text ASCII, not empty. */
  write(text: string): void {
    if (this.#ended) return;
    const socket = this.#response.socket;
    if (!socket) {
      // A pipelined request, whose turn on the socket has not come; or the client has just gone.
      if (!this.#response.destroyed) this.#response.write(text, 'latin1');
      return;
    }
    socket.write(this.framed(text), 'latin1');
    if (socket.writableLength > MAX_UNREAD_BYTES) this.#response.destroy();
  }

  /** Several chunks in one call, for what belongs to one moment. @param texts ASCII; empty ones are left out. */
  writeTogether(texts: readonly string[]): void {
    const socket = this.#response.socket;
    const full = texts.filter((text) => text !== '');
    if (this.#ended || full.length === 0) return;
    if (socket) socket.write(full.map((text) => this.framed(text)).join(''), 'latin1');
    else for (const text of full) this.write(text);
  }

  /** Ends the response cleanly, with `text` before the end. */
  end(text = ''): void {
    if (this.#ended) return;
    this.#ended = true;
    if (text === '') this.#response.end();
    else this.#response.end(text, 'latin1');
  }

  /** A whole JSON or HTML answer. */
  whole(status: number, body: string, headers: Readonly<Record<string, string | number>>): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#response.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) });
    this.#response.end(body);
  }

  /** Resets the connection: the client sees ECONNRESET. */
  reset(): void {
    this.#ended = true;
    const socket = this.#response.socket;
    if (socket) socket.resetAndDestroy();
    else this.#response.destroy();
  }

  framed(text: string): string {
    return this.#chunked ? `${text.length.toString(16)}\r\n${text}\r\n` : text;
  }
}
