/**
 * Byte strings, each kept once and known by a number from 0 on: a text repeats its names and labels thousands of times, and
 * looking a range of its bytes up needs no string. Hashes only guide the search; bytes decide.
 */

/** FNV-1a, a byte at a time: `h = Math.imul(h ^ byte, PRIME)`. */
export const SEED = 0x811c9dc5 | 0;
export const PRIME = 0x01000193;

/** Steps of a search before strings take over: hostile text may choose bytes whose hashes are equal. */
const MOST_STEPS = 64;
const DECODER = new TextDecoder();

export class ByteTable {
  #bytes = new Uint8Array(4096);
  /** Where each begins; it ends where the next one does. */
  #starts = new Int32Array(256);
  #hashes = new Int32Array(256);
  /** Its number + 1; 0 is free. */
  #slots = new Int32Array(1024);
  #size = 0;
  readonly #crowded = new Map<string, number>();
  readonly #texts: (string | undefined)[] = [];

  get size(): number {
    return this.#size;
  }
  /** Bytes held. */
  get bytes(): number {
    return this.#starts[this.#size]!;
  }

  /** The number of the bytes [from, to) and behind them [from2, to2), or −1. */
  find(hash: number, b: Uint8Array, from: number, to: number, from2: number, to2: number): number {
    const slots = this.#slots;
    const hashes = this.#hashes;
    const starts = this.#starts;
    const length = to - from + (to2 - from2);
    const mask = slots.length - 1;
    let at = hash & mask;
    for (let steps = 0; steps < MOST_STEPS; steps++) {
      const n = slots[at]! - 1;
      if (n < 0) return -1;
      if (hashes[n] === hash && starts[n + 1]! - starts[n]! === length && this.#is(starts[n]!, b, from, to, from2, to2))
        return n;
      at = (at + 1) & mask;
    }
    return this.#crowded.get(keyOf(b, from, to, from2, to2)) ?? -1;
  }

  #is(start: number, b: Uint8Array, from: number, to: number, from2: number, to2: number): boolean {
    const own = this.#bytes;
    let at = start;
    for (let i = from; i < to; i++) if (own[at++] !== b[i]) return false;
    for (let i = from2; i < to2; i++) if (own[at++] !== b[i]) return false;
    return true;
  }

  /** Numbers of those with this hash, the earliest first. */
  alike(hash: number): number[] {
    const found: number[] = [];
    const mask = this.#slots.length - 1;
    for (let at = hash & mask, steps = 0; steps < MOST_STEPS; at = (at + 1) & mask, steps++) {
      const n = this.#slots[at]! - 1;
      if (n < 0) break;
      if (this.#hashes[n] === hash) found.push(n);
    }
    return found;
  }

  /** What `find` did not find. */
  add(hash: number, b: Uint8Array, from: number, to: number, from2: number, to2: number): number {
    const n = this.#size++;
    const start = this.#starts[n]!;
    const end = start + (to - from) + (to2 - from2);
    if (end > this.#bytes.length) this.#bytes = grown(this.#bytes, Math.max(end, 2 * this.#bytes.length));
    if (n + 2 > this.#starts.length) {
      this.#starts = grown(this.#starts, 2 * this.#starts.length);
      this.#hashes = grown(this.#hashes, this.#starts.length);
    }
    this.#bytes.set(b.subarray(from, to), start);
    this.#bytes.set(b.subarray(from2, to2), start + (to - from));
    this.#starts[n + 1] = end;
    this.#hashes[n] = hash;
    if (2 * this.#size > this.#slots.length) {
      this.#slots = new Int32Array(2 * this.#slots.length);
      for (let i = 0; i < n; i++) this.#place(i);
    }
    if (!this.#place(n)) this.#crowded.set(keyOf(b, from, to, from2, to2), n);
    return n;
  }

  #place(n: number): boolean {
    const mask = this.#slots.length - 1;
    for (let at = this.#hashes[n]! & mask, steps = 0; steps < MOST_STEPS; at = (at + 1) & mask, steps++) {
      if (this.#slots[at] !== 0) continue;
      this.#slots[at] = n + 1;
      return true;
    }
    // Only `add` looks at the answer: one that was crowded before keeps its key.
    return false;
  }

  text(n: number): string {
    return (this.#texts[n] ??= DECODER.decode(this.#bytes.subarray(this.#starts[n]!, this.#starts[n + 1]!)));
  }

  clear(): void {
    this.#slots.fill(0);
    this.#starts.fill(0);
    this.#crowded.clear();
    this.#texts.length = 0;
    this.#size = 0;
  }
}

function grown<T extends Uint8Array | Int32Array>(list: T, length: number): T {
  const more = new (list.constructor as new (n: number) => T)(length);
  more.set(list);
  return more;
}

/** One character a byte. */
function keyOf(b: Uint8Array, from: number, to: number, from2: number, to2: number): string {
  let key = '';
  for (let i = from; i < to; i++) key += String.fromCharCode(b[i]!);
  for (let i = from2; i < to2; i++) key += String.fromCharCode(b[i]!);
  return key;
}
