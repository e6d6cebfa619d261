/** Newline-delimited JSON: a frame a line, blank lines none. A record separator before a line (RFC 7464) is dropped. */
import { HeldBytes } from './bytes.ts';
import { type FrameSink, type Framing, MAX_FRAME_BYTES, tooLarge } from './frame.ts';

const LF = 10;

export class NdjsonFraming implements Framing {
  readonly name = 'ndjson';
  readonly comments = 0;
  readonly #limit: number;
  readonly #held = new HeldBytes();
  #started = false;
  /** Inside a line that was too large. */
  #dropping = false;

  constructor(limit: number = MAX_FRAME_BYTES) {
    this.#limit = limit;
  }

  push(bytes: Uint8Array, emit: FrameSink): void {
    const n = bytes.length;
    if (n === 0) return;
    const end = bytes[n - 1] === LF ? n : bytes.lastIndexOf(LF) + 1;
    if (end > 0) this.#lines(this.#held.take(bytes, end), emit);
    if (end === n || this.#dropping) return;
    if (this.#held.size + n - end > this.#limit) {
      this.#held.clear();
      this.#dropping = true;
      emit(tooLarge(this.#limit));
    } else {
      this.#held.hold(bytes, end);
    }
  }

  end(emit: FrameSink): void {
    if (this.#held.size === 0) return;
    this.#line(this.#held.take(), emit, true);
  }

  #lines(text: string, emit: FrameSink): void {
    let pos = 0;
    if (this.#dropping) {
      this.#dropping = false;
      pos = text.indexOf('\n') + 1;
    }
    while (pos < text.length) {
      const lf = text.indexOf('\n', pos);
      this.#line(text.slice(pos, lf), emit, false);
      pos = lf + 1;
    }
  }

  #line(line: string, emit: FrameSink, cut: boolean): void {
    if (!this.#started) {
      this.#started = true;
      if (line.charCodeAt(0) === 0xfeff) line = line.slice(1);
    }
    if (line.charCodeAt(0) === 0x1e) line = line.slice(1);
    const data = line.trim();
    if (data.length > this.#limit) emit(tooLarge(this.#limit));
    else if (data !== '') emit(cut ? { data, cut } : { data });
  }
}
