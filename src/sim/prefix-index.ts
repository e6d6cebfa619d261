/**
 * Which prompt prefixes are cached, as runs of hashed blocks: blocks that one sequence computed together stay one entry
 * until somebody shares only its first part. So looking up, holding and letting go of a prefix costs by the run, not by
 * the block, however long prompts are (the idea of a radix tree, arXiv 2312.07104, over hashes instead of tokens).
 *
 * Rests on what a hash of `RequestSpec.prefixBlocks` says: it covers all that comes before it, so two lists that agree at
 * a place agree up to it. Where lists break that, hits may be wrong; the count of blocks never is.
 */

/** What a sequence holds, the end of its prompt first. A run that was split since continues in its `rest`. */
export interface Held {
  readonly run: number;
  readonly blocks: number;
  readonly before: Held | undefined;
}

/** The run that stands for the end of the list of idle ones. */
const IDLE = 0;
const NONE = -1;

export class PrefixIndex {
  /** Runs by the hash of their first block. */
  readonly #heads = new Map<number, number>();
  /** Run r is `hashes[r]` from `from[r]` on, `length[r]` blocks. */
  readonly #hashes: (readonly number[])[] = [[]];
  #from = new Int32Array(64);
  #length = new Int32Array(64);
  #pins = new Int32Array(64);
  /** What was its second part before a split: followed only by those who held both. */
  #rest = new Int32Array(64);
  /** A ring of runs nobody holds, the oldest after `IDLE`. Inside a run the last block is the oldest. */
  #before = new Int32Array(64);
  #after = new Int32Array(64);
  #runs = 1;
  readonly #unused: number[] = [];
  #idle = 0;
  /** What the last `match` found: the calls that follow it look nothing up. */
  #founds = 0;
  readonly #found: number[] = [];
  readonly #foundBlocks: number[] = [];

  /** Cached blocks that nobody holds. */
  get idle(): number {
    return this.#idle;
  }

  /** Leading hashes that are cached, at most `most`. */
  match(hashes: readonly number[], most: number): number {
    this.#founds = 0;
    const n = Math.min(hashes.length, most);
    let i = 0;
    while (i < n) {
      const run = this.#at(hashes, i);
      if (run === NONE) break;
      const to = this.#agreeing(run, hashes, i, n);
      this.#found[this.#founds] = run;
      this.#foundBlocks[this.#founds++] = to - i;
      i = to;
    }
    return i;
  }

  /** Of the blocks last matched, how many nobody holds. */
  idleAmongFound(): number {
    let blocks = 0;
    for (let i = 0; i < this.#founds; i++) if (this.#pins[this.#found[i]!] === 0) blocks += this.#foundBlocks[i]!;
    return blocks;
  }

  /** Holds the blocks last matched. */
  pin(): Held | undefined {
    let held: Held | undefined;
    for (let i = 0; i < this.#founds; i++) {
      const run = this.#found[i]!;
      const blocks = this.#foundBlocks[i]!;
      if (blocks < this.#length[run]!) this.#split(run, blocks);
      if (this.#pins[run]!++ === 0) this.#unlink(run);
      held = { run, blocks, before: held };
    }
    return held;
  }

  /**
   * Makes the blocks `from … to` of `hashes`, which a sequence has just computed, known and held by it, as far as they are
   * not known already (computed twice at once). @returns what it holds then: `held`, and these.
   */
  adopt(hashes: readonly number[], from: number, to: number, held: Held | undefined): Held | undefined {
    let i = from;
    while (i < to) {
      const known = this.#at(hashes, i);
      if (known === NONE) break;
      i = this.#agreeing(known, hashes, i, to);
    }
    if (i >= to) return held;
    return { run: this.#make(hashes, i, to - i, 1), blocks: to - i, before: held };
  }

  /** Lets go of all that is held. What nobody holds any more becomes idle, the end of the prompt the oldest. */
  unpin(held: Held): void {
    for (let one: Held | undefined = held; one; one = one.before) {
      if (one.blocks === this.#length[one.run]!) {
        this.#unpinRun(one.run);
        continue;
      }
      const pieces: number[] = [];
      let run = one.run;
      for (let left = one.blocks; left > 0; run = this.#rest[run]!) {
        pieces.push(run);
        left -= this.#length[run]!;
      }
      for (let i = pieces.length - 1; i >= 0; i--) this.#unpinRun(pieces[i]!);
    }
  }

  #unpinRun(run: number): void {
    if (--this.#pins[run]! > 0) return;
    this.#link(run, IDLE);
    this.#idle += this.#length[run]!;
  }

  /** Forgets the `n` oldest idle blocks. */
  evict(n: number): void {
    let left = n;
    while (left > 0) {
      const run = this.#after[IDLE]!;
      if (run === IDLE) throw new Error('internal: more cached blocks to be forgotten than are idle');
      const length = this.#length[run]!;
      if (length > left) {
        this.#length[run] = length - left;
        this.#idle -= left;
        return;
      }
      left -= length;
      this.#unlink(run);
      const head = this.#hashes[run]![this.#from[run]!]!;
      if (this.#heads.get(head) === run) this.#heads.delete(head);
      this.#hashes[run] = [];
      this.#unused.push(run);
    }
  }

  /** The run that begins with `hashes[i]`. One that does so at another place of its prompt is not the same prefix. */
  #at(hashes: readonly number[], i: number): number {
    const run = this.#heads.get(hashes[i]!);
    return run !== undefined && this.#from[run] === i ? run : NONE;
  }

  /** First place after `i` where `hashes` leaves the run that begins with `hashes[i]`, `to` at most. */
  #agreeing(run: number, hashes: readonly number[], i: number, to: number): number {
    const own = this.#hashes[run]!;
    const end = Math.min(to, i + this.#length[run]!);
    if (own[end - 1] === hashes[end - 1]) return end;
    let same = i + 1;
    let differs = end - 1;
    while (same < differs) {
      const k = (same + differs) >> 1;
      if (own[k] === hashes[k]) same = k + 1;
      else differs = k;
    }
    return same;
  }

  /** Cuts a run after `blocks`: the second part is a run of its own, as much held and as old. */
  #split(run: number, blocks: number): void {
    const pins = this.#pins[run]!;
    const tail = this.#make(this.#hashes[run]!, this.#from[run]! + blocks, this.#length[run]! - blocks, pins);
    this.#length[run] = blocks;
    this.#rest[tail] = this.#rest[run]!;
    this.#rest[run] = tail;
    if (pins === 0) this.#link(tail, run);
  }

  #make(hashes: readonly number[], from: number, length: number, pins: number): number {
    const run = this.#unused.pop() ?? this.#grow();
    this.#hashes[run] = hashes;
    this.#from[run] = from;
    this.#length[run] = length;
    this.#pins[run] = pins;
    this.#rest[run] = NONE;
    this.#heads.set(hashes[from]!, run);
    return run;
  }

  /** Puts a run into the ring of idle ones, just before `next` in age. */
  #link(run: number, next: number): void {
    const last = this.#before[next]!;
    this.#before[run] = last;
    this.#after[run] = next;
    this.#after[last] = run;
    this.#before[next] = run;
  }

  #unlink(run: number): void {
    const before = this.#before[run]!;
    const after = this.#after[run]!;
    this.#after[before] = after;
    this.#before[after] = before;
    this.#idle -= this.#length[run]!;
  }

  #grow(): number {
    if (this.#runs === this.#from.length) {
      const doubled = (from: Int32Array): Int32Array<ArrayBuffer> => {
        const to = new Int32Array(2 * from.length);
        to.set(from);
        return to;
      };
      this.#from = doubled(this.#from);
      this.#length = doubled(this.#length);
      this.#pins = doubled(this.#pins);
      this.#rest = doubled(this.#rest);
      this.#before = doubled(this.#before);
      this.#after = doubled(this.#after);
    }
    return this.#runs++;
  }
}
