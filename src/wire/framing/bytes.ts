/** Bytes held between reads, and their decoding. Line ends are ASCII, so only whole lines are ever decoded. */

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** Node's Buffer decodes small pieces several times faster than TextDecoder; where bytes are one, its method is used. */
interface NodeBytes extends Uint8Array {
  utf8Slice?(start: number, end: number): string;
}

/** UTF-8 to text; invalid sequences become U+FFFD, a byte order mark is kept. */
export function decodeUtf8(bytes: Uint8Array, start = 0, end = bytes.length): string {
  const node = bytes as NodeBytes;
  if (node.utf8Slice !== undefined) return node.utf8Slice(start, end);
  return decoder.decode(start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end));
}

/** Pieces of an unfinished line, copied out of the reads they came in; joined only once. */
export class HeldBytes {
  #pieces: Uint8Array[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  hold(bytes: Uint8Array, start = 0, end = bytes.length): void {
    if (end <= start) return;
    this.#pieces.push(Uint8Array.prototype.slice.call(bytes, start, end));
    this.#size += end - start;
  }

  clear(): void {
    this.#pieces = [];
    this.#size = 0;
  }

  /** Everything held and then `bytes[0, end)`, as text; nothing is held afterwards. */
  take(bytes?: Uint8Array, end = bytes?.length ?? 0): string {
    if (this.#size === 0) return bytes === undefined ? '' : decodeUtf8(bytes, 0, end);
    const whole = new Uint8Array(this.#size + end);
    let at = 0;
    for (const piece of this.#pieces) {
      whole.set(piece, at);
      at += piece.length;
    }
    if (bytes !== undefined) whole.set(bytes.subarray(0, end), at);
    this.clear();
    return decodeUtf8(whole);
  }
}
