/**
 * Requests that a client sent before it had the answers to those before. Each waits for its turn, so that one connection
 * holds one upstream connection; beyond a bound they are refused, in order. (Node stops reading from a connection once
 * enough answers of ours wait there.)
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

const MOST_WAITING = 16;

export class Pipelined {
  readonly #waiting = new WeakMap<Socket, number>();

  /** Calls `start` at its turn, or `left` when the client is gone before. False where too many wait. */
  wait(req: IncomingMessage, res: ServerResponse, start: () => void, left: () => void): boolean {
    const { socket } = req;
    const waiting = this.#waiting.get(socket) ?? 0;
    if (waiting >= MOST_WAITING) return false;
    this.#waiting.set(socket, waiting + 1);
    req.once('close', left);
    res.once('socket', () => {
      this.#waiting.set(socket, (this.#waiting.get(socket) ?? 1) - 1);
      req.off('close', left);
      start();
    });
    return true;
  }
}
