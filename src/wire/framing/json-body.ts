/** A body that is one document: an answer that was not streamed, an error, a page of HTML. One frame, at the end. */
import { HeldBytes } from './bytes.ts';
import { type FrameSink, type Framing, MAX_FRAME_BYTES, tooLarge } from './frame.ts';

export class JsonBodyFraming implements Framing {
  readonly name = 'json';
  readonly comments = 0;
  readonly #limit: number;
  readonly #held = new HeldBytes();
  #dropping = false;

  constructor(limit: number = MAX_FRAME_BYTES) {
    this.#limit = limit;
  }

  push(bytes: Uint8Array): void {
    if (this.#dropping) return;
    if (this.#held.size + bytes.length > this.#limit) {
      this.#held.clear();
      this.#dropping = true;
    } else {
      this.#held.hold(bytes);
    }
  }

  end(emit: FrameSink): void {
    if (this.#dropping) emit(tooLarge(this.#limit));
    const text = this.#held.take();
    const data = (text.charCodeAt(0) === 0xfeff ? text.slice(1) : text).trim();
    if (data !== '') emit(isCutShort(data) ? { data, cut: true } : { data });
  }
}

/** True when a document that began as JSON ended inside a string, an object or an array. */
export function isCutShort(text: string): boolean {
  const first = text.charCodeAt(0);
  if (first !== 0x7b && first !== 0x5b) return false;
  let depth = 0;
  let inString = false;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (inString) {
      if (c === 0x5c) i++;
      else if (c === 0x22) inString = false;
    } else if (c === 0x22) inString = true;
    else if (c === 0x7b || c === 0x5b) depth++;
    else if (c === 0x7d || c === 0x5d) depth--;
  }
  return inString || depth > 0;
}
