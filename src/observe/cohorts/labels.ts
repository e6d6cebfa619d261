/** Label values from outside, kept to a bounded number of clean ones. */

/** What values beyond the limit are counted under. */
export const OTHER = 'other';

const MAX_LENGTH = 64;

/**
 * The first `limit` distinct values stand for themselves, every later one is `other`: whoever sends headers must not be
 * able to make series without end. Values named beforehand always have their place.
 */
export class BoundedLabels {
  readonly #known: Map<string, string>;
  readonly #limit: number;
  readonly #missing: string;

  /** @param missing what the absence of a value is called. */
  constructor(limit: number, missing: string, named: Iterable<string> = []) {
    this.#known = new Map([...named].map((name) => [name, name]));
    this.#limit = Math.max(limit, this.#known.size);
    this.#missing = missing;
  }

  /** @param value as it came; characters that are not printable ASCII become `_`. */
  of(value: string | undefined): string {
    if (value === undefined || value === '') return this.#missing;
    const had = this.#known.get(value);
    if (had !== undefined) return had;
    const clean = value
      .slice(0, MAX_LENGTH)
      .replace(/[^\x20-\x7e]/g, '_')
      .trim();
    if (clean === '') return this.#missing;
    if (clean !== value) return this.#known.get(clean) ?? this.#add(clean);
    return this.#add(clean);
  }

  #add(clean: string): string {
    if (this.#known.size >= this.#limit) return OTHER;
    this.#known.set(clean, clean);
    return clean;
  }
}
