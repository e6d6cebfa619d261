/**
 * A request whose body is handed on as the parser finds it. Node's parser pushes each piece into the message, which is a
 * stream; whoever asked with `takeBody` gets it there and then, instead of some ticks later from the stream's own queue.
 */
import { IncomingMessage } from 'node:http';

/** Takes a piece of the body, or `null` at its end. False: no more for now, until `moreBody`. */
export type Taker = (chunk: Buffer | null) => boolean;

export class DirectRequest extends IncomingMessage {
  #taker: Taker | undefined;

  takeBody(taker: Taker): void {
    // Of a pipelined request some or all may have come before its turn.
    if (this.readableLength > 0) for (let chunk = this.read(); chunk !== null; chunk = this.read()) taker(chunk);
    this.#taker = taker;
    if (this.complete) taker(null);
  }

  /** What still comes of the body is dropped. */
  dropBody(): void {
    this.#taker = undefined;
    if (!this.complete) this.resume();
    this.moreBody();
  }

  moreBody(): void {
    if (!this.socket.destroyed) this.socket.resume();
  }

  override push(chunk: unknown, encoding?: BufferEncoding): boolean {
    const taker = this.#taker;
    if (taker === undefined) return super.push(chunk, encoding);
    if (chunk === null) {
      super.push(null);
      taker(null);
      return false;
    }
    return taker(chunk as Buffer);
  }
}
