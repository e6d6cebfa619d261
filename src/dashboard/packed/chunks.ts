/**
 * When the chunks of some operations came: rows of receipts in µs since each operation was scheduled. Binary, little-endian:
 *
 *   'GPCHNK01' · uint32 rows · uint32 chunks · float64 operation a row · uint32 end of each row · uint32 µs a chunk
 *
 * A receipt more than 2^31 µs (36 minutes) after that stands at its end. A row may be thinned: some of its ticks left out, never an end of a large gap (`thin`).
 */
const MAGIC = 'GPCHNK01';

export interface Chunks {
  readonly operation: Float64Array;
  /** Row r holds `us[end[r − 1] … end[r])`. */
  readonly end: Uint32Array;
  readonly us: Uint32Array;
}

export class ChunksBuilder {
  readonly #operation: number[] = [];
  readonly #end: number[] = [];
  #us = new Uint32Array(4096);
  #n = 0;

  /** @param at receipts in ms on the run's clock. */
  add(operation: number, scheduled: number, at: ArrayLike<number>): void {
    if (this.#n + at.length > this.#us.length) {
      const grown = new Uint32Array(2 * (this.#n + at.length));
      grown.set(this.#us.subarray(0, this.#n));
      this.#us = grown;
    }
    for (let i = 0; i < at.length; i++) {
      this.#us[this.#n++] = Math.min(0x7fffffff, Math.max(0, Math.round((at[i]! - scheduled) * 1000)));
    }
    this.#operation.push(operation);
    this.#end.push(this.#n);
  }

  finish(): Chunks {
    return {
      operation: Float64Array.from(this.#operation),
      end: Uint32Array.from(this.#end),
      us: this.#us.slice(0, this.#n),
    };
  }
}

export function encodeChunks({ operation, end, us }: Chunks): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(16 + 12 * operation.length + 4 * us.length);
  bytes.set(new TextEncoder().encode(MAGIC));
  const view = new DataView(bytes.buffer);
  view.setUint32(8, operation.length, true);
  view.setUint32(12, us.length, true);
  new Float64Array(bytes.buffer, 16, operation.length).set(operation);
  new Uint32Array(bytes.buffer, 16 + 8 * operation.length, end.length).set(end);
  new Uint32Array(bytes.buffer, 16 + 12 * operation.length, us.length).set(us);
  return bytes;
}

export function decodeChunks(bytes: ArrayBuffer): Chunks {
  const view = new DataView(bytes);
  if (bytes.byteLength < 16 || new TextDecoder().decode(new Uint8Array(bytes, 0, 8)) !== MAGIC) {
    throw new Error('the chunks of this run are damaged');
  }
  const rows = view.getUint32(8, true);
  const n = view.getUint32(12, true);
  return {
    operation: new Float64Array(bytes, 16, rows),
    end: new Uint32Array(bytes, 16 + 8 * rows, rows),
    us: new Uint32Array(bytes, 16 + 12 * rows, n),
  };
}

export interface Thinned {
  readonly chunks: Chunks;
  /** Receipts kept, of how many. */
  readonly kept: number;
  readonly of: number;
}

/**
 * At most `budget` receipts (more only where the first, last and largest gap of each row need them). Of each row are kept:
 * the first and the last, both ends of its largest gap, both ends of every gap of `always` ms or more, and of the rest
 * every k-th, with one k for all rows.
 */
export function thin(chunks: Chunks, budget: number, always: number): Thinned {
  const { operation, end, us } = chunks;
  const of = us.length;
  if (of <= budget) return { chunks, kept: of, of };
  const must = new Uint8Array(of);
  let needed = 0;
  const keep = (i: number): void => {
    if (must[i] === 0) needed++;
    must[i] = 1;
  };
  for (let r = 0; r < operation.length; r++) {
    const from = r === 0 ? 0 : end[r - 1]!;
    const to = end[r]!;
    if (to === from) continue;
    keep(from);
    keep(to - 1);
    let largest = -1;
    let at = -1;
    for (let i = from + 1; i < to; i++) {
      const gap = us[i]! - us[i - 1]!;
      if (gap > largest) {
        largest = gap;
        at = i;
      }
      if (gap >= 1000 * always && needed < budget) {
        keep(i - 1);
        keep(i);
      }
    }
    if (at > 0) {
      keep(at - 1);
      keep(at);
    }
  }
  const every = Math.max(2, Math.ceil((of - needed) / Math.max(1, budget - needed)));
  const builderUs = new Uint32Array(of);
  const ends = new Uint32Array(end.length);
  let n = 0;
  for (let r = 0; r < operation.length; r++) {
    const from = r === 0 ? 0 : end[r - 1]!;
    for (let i = from; i < end[r]!; i++) {
      if (must[i] === 1 || (needed < budget && (i - from) % every === 0)) builderUs[n++] = us[i]!;
    }
    ends[r] = n;
  }
  return { chunks: { operation, end: ends, us: builderUs.slice(0, n) }, kept: n, of };
}
