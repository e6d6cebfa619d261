import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { KvPool } from './kv-pool.ts';
import type { Held } from './prefix-index.ts';

/** A sequence's life in the pool, as a replica has it: hits pinned, the rest computed in blocks of its own, then kept. */
class Sequence {
  readonly hits: number;
  readonly #pool: KvPool;
  readonly #hashes: readonly number[];
  #held: Held | undefined;
  #own: number;

  constructor(pool: KvPool, hashes: readonly number[]) {
    this.#pool = pool;
    this.#hashes = hashes;
    this.hits = pool.match(hashes, hashes.length);
    if (this.hits > 0) this.#held = pool.pin();
    this.#own = (hashes.length - this.hits) * pool.perHash;
    pool.take(this.#own);
  }
  computed(): void {
    const before = this.#held;
    this.#held = this.#pool.adopt(this.#hashes, this.hits, this.#hashes.length, before);
    if (this.#held && this.#held !== before) this.#own -= this.#held.blocks * this.#pool.perHash;
  }
  leave(): void {
    this.#pool.release(this.#own);
    if (this.#held) this.#pool.unpin(this.#held);
  }
}

/** Hashes that cover what comes before them: `branch` k leaves the common trunk after 3·k blocks. */
const prompt = (branch: number, length: number): number[] =>
  Array.from({ length }, (_, i) => (i < 3 * branch ? i : 1000 * (branch + 1) + i));

/** Begin, compute or end some sequence. */
const steps = fc.array(
  fc.record({ branch: fc.nat({ max: 4 }), length: fc.integer({ min: 1, max: 24 }), end: fc.nat({ max: 9 }) }),
  { minLength: 1, maxLength: 60 },
);

describe('KvPool', () => {
  it('finds the longest prefix computed before, when nothing was evicted', () => {
    fc.assert(
      fc.property(steps, (list) => {
        const pool = new KvPool(1e6, 2);
        const known: number[][] = [];
        const open: { sequence: Sequence; hashes: number[]; done: boolean }[] = [];
        for (const { branch, length, end } of list) {
          const hashes = prompt(branch, length);
          const common = Math.max(
            0,
            ...known
              .map((k) => k.findIndex((h, i) => h !== hashes[i]))
              .map((i, n) => Math.min(length, i < 0 ? known[n]!.length : i)),
          );
          const sequence = new Sequence(pool, hashes);
          expect(sequence.hits).toBe(common);
          open.push({ sequence, hashes, done: false });
          // One of those open computes its prompt, or goes.
          const one = open[end % open.length]!;
          if (!one.done) {
            one.sequence.computed();
            one.done = true;
            known.push(one.hashes);
          } else {
            one.sequence.leave();
            open.splice(open.indexOf(one), 1);
          }
        }
        for (const { sequence } of open) sequence.leave();
        expect(pool.used).toBe(0);
      }),
      { numRuns: 300, seed: 3 },
    );
  });

  it('never loses count of its blocks, however small it is and whatever the hashes are', () => {
    fc.assert(
      fc.property(steps, fc.integer({ min: 24, max: 60 }), fc.boolean(), (list, blocks, odd) => {
        const pool = new KvPool(blocks);
        const open: Sequence[] = [];
        for (const { branch, length, end } of list) {
          // Hashes that do not cover what comes before them break a promise, not the pool.
          const hashes = odd ? Array.from({ length }, (_, i) => (i * branch) % 3) : prompt(branch, length);
          while (pool.free < length) (open.splice(end % open.length, 1)[0] as Sequence).leave();
          const sequence = new Sequence(pool, hashes);
          open.push(sequence);
          expect(pool.used).toBeLessThanOrEqual(blocks);
          if (end % 3 > 0) sequence.computed();
          if (end % 4 === 0) (open.splice(end % open.length, 1)[0] as Sequence).leave();
        }
        for (const sequence of open) sequence.leave();
        expect(pool.used).toBe(0);
        pool.take(blocks); // all of it is to be had
        expect(pool.match(prompt(1, 3), 3)).toBe(0);
      }),
      { numRuns: 300, seed: 4 },
    );
  });

  it('forgets the least recently used, the end of a prompt first', () => {
    const pool = new KvPool(12);
    const [a, b] = [prompt(0, 4), prompt(2, 5)];
    for (const hashes of [a, b]) {
      const sequence = new Sequence(pool, hashes);
      sequence.computed();
      sequence.leave();
    }
    pool.take(4); // of 3 that were never used: one of `a` goes
    expect([pool.match(a, 9), pool.match(b, 9)]).toEqual([3, 5]);
    new Sequence(pool, a.slice(0, 2)).leave(); // the first half of `a` was used last, and its third block is the oldest
    pool.take(2);
    expect([pool.match(a, 9), pool.match(b, 9)]).toEqual([2, 4]);
    pool.take(4);
    expect([pool.match(a, 9), pool.match(b, 9)]).toEqual([2, 0]);
  });
});
