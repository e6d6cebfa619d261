/**
 * The KV cache of one replica in blocks. A block is pinned by the sequences that use it; a block of a known prefix stays
 * after them until its room is needed, least recently used first (vLLM's block manager, arXiv 2309.06180).
 */

/** A cached run of prompt tokens known by its hash. */
interface Cached {
  readonly hash: number;
  pins: number;
  /** Neighbours among the unpinned ones; itself when it is pinned. */
  before: Cached;
  after: Cached;
}

function entry(hash: number, pins: number): Cached {
  const made = { hash, pins } as Cached;
  made.before = made;
  made.after = made;
  return made;
}

export class KvPool {
  readonly blocks: number;
  /** Blocks one hashed prefix block takes. */
  readonly #perHash: number;
  #used = 0;
  readonly #cache = new Map<number, Cached>();
  /** Head of a ring of unpinned entries, oldest first. */
  readonly #idle = entry(Number.NaN, 0);
  #idleCount = 0;
  /** What the last `hits` found: the two calls that follow it look nothing up. */
  #found: Cached[] = [];

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
    for (; i < n; i++) {
      const known = this.#cache.get(hashes[i]!);
      if (!known) break;
      this.#found[i] = known;
    }
    return i;
  }

  /** Blocks that pinning the first `n` of the hashes last asked for by `hits` would take from the free ones. */
  costOfPinning(n: number): number {
    let cost = 0;
    for (let i = 0; i < n; i++) if (this.#found[i]!.pins === 0) cost += this.#perHash;
    return cost;
  }

  /** Pins the first `n` of the hashes last asked for by `hits`. */
  pin(n: number): void {
    for (let i = 0; i < n; i++) {
      const known = this.#found[i]!;
      if (known.pins++ === 0) {
        this.#unlink(known);
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
    this.#cache.set(hash, entry(hash, 1));
    return true;
  }

  unpin(hash: number): void {
    const known = this.#cache.get(hash) as Cached;
    if (--known.pins > 0) return;
    const last = this.#idle.before;
    known.before = last;
    known.after = this.#idle;
    last.after = known;
    this.#idle.before = known;
    this.#idleCount++;
    this.#used -= this.#perHash;
  }

  #unlink(known: Cached): void {
    known.before.after = known.after;
    known.after.before = known.before;
    known.before = known;
    known.after = known;
    this.#idleCount--;
  }

  #evict(): void {
    let room = this.blocks - this.#used - this.#idleCount * this.#perHash;
    while (room < 0) {
      const oldest = this.#idle.after;
      this.#unlink(oldest);
      this.#cache.delete(oldest.hash);
      room += this.#perHash;
    }
  }
}
