/**
 * The KV cache of one replica in blocks. A block is pinned by the sequences that use it; a block of a known prefix stays
 * after them until its room is needed, least recently used first (vLLM's block manager, arXiv 2309.06180).
 */

/** A cached run of prompt tokens known by its hash. */
interface Cached {
  readonly hash: number;
  pins: number;
}

export class KvPool {
  readonly blocks: number;
  /** Blocks one hashed prefix block takes. */
  readonly #perHash: number;
  #used = 0;
  readonly #cache = new Map<number, Cached>();
  /** Unpinned entries, oldest first (a Map keeps insertion order). */
  readonly #idle = new Map<number, Cached>();

  constructor(blocks: number, perHash = 1) {
    this.blocks = blocks;
    this.#perHash = perHash;
  }

  /** Blocks pinned. */
  get used(): number {
    return this.#used;
  }
  /** Blocks to be had, idle cached ones included. */
  get free(): number {
    return this.blocks - this.#used;
  }

  /** Pins `n` blocks of no known content. The caller has seen that they are free. */
  take(n: number): void {
    this.#used += n;
    if (this.#used > this.blocks) throw new Error('internal: more KV blocks taken than there are');
    this.#evict();
  }

  release(n: number): void {
    this.#used -= n;
  }

  /** Leading hashes that are cached, at most `most`. */
  hits(hashes: readonly number[], most: number): number {
    const n = Math.min(hashes.length, most);
    let i = 0;
    while (i < n && this.#cache.has(hashes[i]!)) i++;
    return i;
  }

  /** Blocks that pinning the first `n` of `hashes` would take from the free ones. */
  costOfPinning(hashes: readonly number[], n: number): number {
    let cost = 0;
    for (let i = 0; i < n; i++) if (this.#idle.has(hashes[i]!)) cost += this.#perHash;
    return cost;
  }

  /** Pins the first `n` of `hashes`, all of them cached. */
  pin(hashes: readonly number[], n: number): void {
    for (let i = 0; i < n; i++) {
      const entry = this.#cache.get(hashes[i]!) as Cached;
      if (entry.pins++ === 0) {
        this.#idle.delete(entry.hash);
        this.#used += this.#perHash;
      }
    }
    this.#evict();
  }

  /**
   * Makes `hash` known with content some sequence just computed in blocks of its own: they become the entry's, pinned by
   * it. @returns false when it is known already (computed twice at once): the sequence keeps its own.
   */
  adopt(hash: number): boolean {
    if (this.#cache.has(hash)) return false;
    this.#cache.set(hash, { hash, pins: 1 });
    return true;
  }

  unpin(hash: number): void {
    const entry = this.#cache.get(hash) as Cached;
    if (--entry.pins === 0) {
      this.#idle.set(hash, entry);
      this.#used -= this.#perHash;
    }
  }

  #evict(): void {
    let room = this.blocks - this.#used - this.#idle.size * this.#perHash;
    if (room >= 0) return;
    for (const hash of this.#idle.keys()) {
      this.#idle.delete(hash);
      this.#cache.delete(hash);
      room += this.#perHash;
      if (room >= 0) return;
    }
  }
}
