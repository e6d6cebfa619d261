/**
 * The KV cache of one replica in blocks. A block is used by the sequences that hold it; a block of a known prefix stays
 * after them until its room is needed, least recently used first (vLLM's block manager, arXiv 2309.06180).
 */
import { type Held, PrefixIndex } from './prefix-index.ts';

export class KvPool {
  readonly blocks: number;
  /** Blocks one hashed prefix block takes. */
  readonly perHash: number;
  readonly #prefixes = new PrefixIndex();
  #used = 0;

  constructor(blocks: number, perHash = 1) {
    this.blocks = blocks;
    this.perHash = perHash;
  }

  /** Blocks that sequences hold. */
  get used(): number {
    return this.#used;
  }
  /** Blocks to be had, idle cached ones included. */
  get free(): number {
    return this.blocks - this.#used;
  }

  /** Takes `n` blocks of no known content. The caller has seen that they are free. */
  take(n: number): void {
    this.#used += n;
    if (this.#used > this.blocks) throw new Error('internal: more KV blocks taken than there are');
    this.#makeRoom();
  }

  release(n: number): void {
    this.#used -= n;
  }

  /** Leading hashes that are cached, at most `most`. */
  match(hashes: readonly number[], most: number): number {
    return this.#prefixes.match(hashes, most);
  }

  /** Blocks that pinning what `match` last found would take from the free ones. */
  costOfPinning(): number {
    return this.#prefixes.idleAmongFound() * this.perHash;
  }

  /** Holds what `match` last found. */
  pin(): Held | undefined {
    const before = this.#prefixes.idle;
    const held = this.#prefixes.pin();
    this.#used += (before - this.#prefixes.idle) * this.perHash;
    this.#makeRoom();
    return held;
  }

  /**
   * Makes known the hashed blocks `from … to` of a sequence that holds them as its own: they become the cache's, held by it.
   * Those known already (computed twice at once) stay its own. @returns what of the cache it holds then.
   */
  adopt(hashes: readonly number[], from: number, to: number, held: Held | undefined): Held | undefined {
    return this.#prefixes.adopt(hashes, from, to, held);
  }

  unpin(held: Held): void {
    const before = this.#prefixes.idle;
    this.#prefixes.unpin(held);
    this.#used -= (this.#prefixes.idle - before) * this.perHash;
  }

  #makeRoom(): void {
    const over = this.#used + this.#prefixes.idle * this.perHash - this.blocks;
    if (over > 0) this.#prefixes.evict(Math.ceil(over / this.perHash));
  }
}
