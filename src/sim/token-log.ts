/**
 * When each step of a replica ended, as a log of linear runs: every running sequence gains its token at a step's end, so
 * one log serves all of them and a request keeps only the steps between which it decoded.
 */
import type { Millis } from '../base/units.ts';

/**
 * Segments in a ring, named by an index that only grows. Segment i starts after `step` completed steps at time `t0`; its
 * m-th step ends at `t0 + m·a + b·m(m−1)/2`. It reaches to the next segment's first step.
 */
export class TokenLog {
  #capacity = 1024;
  #step = new Float64Array(1024);
  #t0 = new Float64Array(1024);
  #a = new Float64Array(1024);
  #b = new Float64Array(1024);
  /** Indices kept: [start, end). */
  #start = 0;
  #end = 0;

  /** Index of the newest segment. */
  get last(): number {
    return this.#end - 1;
  }
  get size(): number {
    return this.#end - this.#start;
  }

  push(step: number, t0: Millis, a: Millis, b: Millis): void {
    if (this.size === this.#capacity) this.#grow();
    const i = this.#end++ & (this.#capacity - 1);
    this.#step[i] = step;
    this.#t0[i] = t0;
    this.#a[i] = a;
    this.#b[i] = b;
  }

  /** Takes the newest segment back: it was planned and never begun. */
  pop(): void {
    this.#end--;
  }

  /** Forgets segments before `oldest`. */
  trim(oldest: number): void {
    this.#start = Math.max(this.#start, Math.min(oldest, this.#end));
  }

  /** Writes the ends of steps `from … to` into `into` from `at` on. @param segment the one that holds step `from`. */
  expand(segment: number, from: number, to: number, into: Float64Array, at: number): void {
    if (segment < this.#start) throw new Error('internal: token times asked for after the log was trimmed');
    const mask = this.#capacity - 1;
    let i = segment;
    let n = from;
    while (n <= to) {
      const k = i & mask;
      const base = this.#step[k]!;
      const t0 = this.#t0[k]!;
      const a = this.#a[k]!;
      const half = this.#b[k]! / 2;
      const stop = i + 1 < this.#end ? Math.min(to, this.#step[(i + 1) & mask]!) : to;
      for (; n <= stop; n++) {
        const m = n - base;
        into[at++] = t0 + m * a + half * m * (m - 1);
      }
      i++;
    }
  }

  #grow(): void {
    const old = this.#capacity;
    this.#capacity = old * 2;
    const move = (from: Float64Array<ArrayBuffer>): Float64Array<ArrayBuffer> => {
      const to = new Float64Array(this.#capacity);
      for (let i = this.#start; i < this.#end; i++) to[i & (this.#capacity - 1)] = from[i & (old - 1)]!;
      return to;
    };
    this.#step = move(this.#step);
    this.#t0 = move(this.#t0);
    this.#a = move(this.#a);
    this.#b = move(this.#b);
  }
}
