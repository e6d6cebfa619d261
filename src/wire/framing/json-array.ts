/**
 * One JSON array whose elements arrive over time (Gemini's streamGenerateContent without `alt=sse`): a frame an element,
 * delivered at the byte that ends it. Bytes are scanned once; structure is ASCII.
 */
import { HeldBytes } from './bytes.ts';
import { type FrameSink, type Framing, MAX_FRAME_BYTES, tooLarge } from './frame.ts';

export class JsonArrayFraming implements Framing {
  readonly name = 'json-array';
  readonly comments = 0;
  readonly #limit: number;
  readonly #held = new HeldBytes();
  /** 0 before and after the array, 1 in it, more inside an element. */
  #depth = 0;
  #inString = false;
  #escaped = false;
  #inElement = false;
  #dropping = false;

  constructor(limit: number = MAX_FRAME_BYTES) {
    this.#limit = limit;
  }

  push(bytes: Uint8Array, emit: FrameSink): void {
    let start = 0; // of the current element within this read
    for (let i = 0; i < bytes.length; i++) {
      const b = bytes[i];
      if (this.#inString) {
        if (this.#escaped) this.#escaped = false;
        else if (b === 0x5c) this.#escaped = true;
        else if (b === 0x22) this.#inString = false;
        continue;
      }
      if (this.#depth === 0) {
        if (b === 0x5b) this.#depth = 1; // [
        continue;
      }
      if (this.#depth === 1 && (b === 0x2c || b === 0x5d)) {
        if (this.#inElement) this.#finish(bytes, start, i, emit); // a bare value ended by , or ]
        if (b === 0x5d) this.#depth = 0;
        continue;
      }
      if (!this.#inElement) {
        if (b === 0x20 || b === 0x0a || b === 0x0d || b === 0x09) continue;
        this.#inElement = true;
        start = i;
      }
      if (b === 0x22) this.#inString = true;
      else if (b === 0x7b || b === 0x5b) this.#depth++;
      else if (b === 0x7d || b === 0x5d) {
        this.#depth = Math.max(1, this.#depth - 1);
        if (this.#depth === 1) this.#finish(bytes, start, i + 1, emit);
      }
    }
    if (!this.#inElement || this.#dropping) return;
    if (this.#held.size + bytes.length - start > this.#limit) {
      this.#held.clear();
      this.#dropping = true;
    } else {
      this.#held.hold(bytes, start);
    }
  }

  end(emit: FrameSink): void {
    if (this.#dropping) emit(tooLarge(this.#limit));
    else if (this.#inElement) emit({ data: this.#held.take().trim(), cut: true });
    this.#inElement = false;
    this.#dropping = false;
  }

  #finish(bytes: Uint8Array, start: number, end: number, emit: FrameSink): void {
    this.#inElement = false;
    if (this.#dropping || this.#held.size + end - start > this.#limit) {
      this.#dropping = false;
      this.#held.clear();
      emit(tooLarge(this.#limit));
      return;
    }
    const piece = bytes.subarray(start, end);
    emit({ data: this.#held.take(piece).trim() });
  }
}
