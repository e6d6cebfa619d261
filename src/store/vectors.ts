/**
 * DuckDB's vectors read as they lie in memory. The typed arrays behind them are private to the binding and read by name;
 * where they are not what we expect, values are read one by one through its public calls, slower and the same.
 */
import type { DuckDBVector } from '@duckdb/node-api';

export type Numbers = { readonly [i: number]: number };

/** The numbers of a vector without NULLs. */
export function flat(vector: DuckDBVector, n: number): Numbers {
  const items: unknown = Reflect.get(vector, 'items');
  if (isNumbers(items) && items.length >= n) return items;
  const values = new Float64Array(n);
  for (let i = 0; i < n; i++) values[i] = Number(vector.getItem(i));
  return values;
}

function isNumbers(x: unknown): x is Float64Array | Int32Array | Uint8Array | Uint16Array {
  return x instanceof Float64Array || x instanceof Int32Array || x instanceof Uint8Array || x instanceof Uint16Array;
}

/** Rows remembered; a power of two. */
const PLACES = 1024;

/** The texts of a row, by `TEXT_SLOT`; undefined where NULL. */
export type Texts = readonly (string | undefined)[];

/**
 * The texts of rows. Decoding them is the dearest step of reading a row, and most rows repeat those of an earlier one: a
 * 64-bit hash of all of them together, made by DuckDB, tells so, and the earlier row's are given again. (That two rows
 * of different texts share a hash has a chance of 10⁻⁸ in a million different ones, and no bearing on any figure.)
 */
export class TextReader {
  readonly #low = new Uint32Array(PLACES);
  readonly #high = new Uint32Array(PLACES);
  readonly #known: Texts[] = [];

  /** The texts of each row of one chunk: `vectors`, and `hashes` of the same rows. */
  of(vectors: readonly DuckDBVector[], hashes: DuckDBVector, n: number): (row: number) => Texts {
    const halves = halvesOf(hashes, n);
    return (row) => {
      const low = halves[2 * row]!;
      const high = halves[2 * row + 1]!;
      const place = low & (PLACES - 1);
      const known = this.#known[place];
      if (known && this.#low[place] === low && this.#high[place] === high) return known;
      const texts = vectors.map((vector) => (vector.getItem(row) as string | null) ?? undefined);
      this.#low[place] = low;
      this.#high[place] = high;
      this.#known[place] = texts;
      return texts;
    };
  }
}

/** 64-bit integers as pairs of 32 bits. */
function halvesOf(vector: DuckDBVector, n: number): Uint32Array {
  const items: unknown = Reflect.get(vector, 'items');
  const whole =
    items instanceof BigUint64Array && items.length >= n
      ? items
      : BigUint64Array.from({ length: n }, (_, i) => vector.getItem(i) as bigint);
  return new Uint32Array(whole.buffer, whole.byteOffset, 2 * n);
}
