/**
 * The sequences of a replica that decode. Each gains one token a step, so nothing is counted per sequence: what it has is
 * an offset to the count of completed steps, and the next to finish is the top of a heap keyed by that count.
 */
import { StepHeap } from './queues.ts';
import { DECODE, type Slots } from './slots.ts';

export class Decoding {
  readonly #slots: Slots;
  readonly #finishing = new StepHeap();
  /** How many need a KV block at a step ≡ r (mod block) after `step` completed. */
  readonly #needing: Int32Array;
  count = 0;
  /** Tokens in KV of them all. */
  kv = 0;
  /** Completed steps of the replica, prompt steps included. */
  step = 0;

  constructor(slots: Slots, blockTokens: number) {
    this.#slots = slots;
    this.#needing = new Int32Array(blockTokens);
  }

  /** A sequence with `kv` tokens in KV and `generated` sampled decodes from the next step on. */
  start(slot: number, kv: number, generated: number): void {
    const s = this.#slots;
    const { step } = this;
    s.state[slot] = DECODE;
    s.genBase[slot] = generated - step;
    s.kvBase[slot] = kv - step;
    const finish = step + s.output[slot]! - generated;
    s.finishStep[slot] = finish;
    this.#finishing.push(finish, slot);
    this.count++;
    this.kv += kv;
    this.#needing[this.#residue(slot)]!++;
  }

  /** Takes one out, between steps. @returns its tokens in KV. Whoever takes it out gives it another state. */
  leave(slot: number): number {
    const kv = this.#slots.kvBase[slot]! + this.step;
    this.count--;
    this.kv -= kv;
    this.#needing[this.#residue(slot)]!--;
    return kv;
  }

  /** Tokens a decoding sequence has after step `step`. */
  generated(slot: number, step = this.step): number {
    return this.#slots.genBase[slot]! + step;
  }

  completed(steps: number): void {
    this.kv += this.count * steps;
    this.step += steps;
  }

  /** The step after which the next one finishes, +∞ when none does. */
  nextFinish(): number {
    const heap = this.#finishing;
    while (heap.size > 0 && !this.#isDue(heap.minSlot, heap.minStep)) heap.pop();
    return heap.minStep;
  }

  /** One that has finished by now and was not told of yet, −1 when none. */
  popFinished(): number {
    const heap = this.#finishing;
    while (heap.minStep <= this.step) {
      const slot = heap.minSlot;
      const due = this.#isDue(slot, heap.minStep);
      heap.pop();
      if (due) return slot;
    }
    return -1;
  }

  // ---- KV blocks to come: one a sequence each `blockTokens` steps ----

  /** Blocks that the next step takes. */
  get blocksNow(): number {
    return this.#needing[this.step % this.#needing.length]!;
  }

  /** Blocks that the next `steps` steps take. */
  blocksOf(steps: number): number {
    const period = this.#needing.length;
    const whole = Math.floor(steps / period);
    let need = whole * this.count;
    for (let i = whole * period; i < steps; i++) need += this.#needing[(this.step + i) % period]!;
    return need;
  }

  /** Of `steps` steps, how many `free` blocks allow. */
  stepsWithin(free: number, steps: number): number {
    const period = this.#needing.length;
    const whole = Math.floor(free / this.count);
    if (whole * period >= steps) return steps;
    let left = free - whole * this.count;
    let i = 0;
    while (i < period && (left -= this.#needing[(this.step + i) % period]!) >= 0) i++;
    return Math.min(steps, whole * period + i);
  }

  /** The step count, modulo the block size, before which a sequence needs a new block. */
  #residue(slot: number): number {
    const period = this.#needing.length;
    const r = -this.#slots.kvBase[slot]! % period;
    return r < 0 ? r + period : r + 0;
  }

  /** Entries of those that left otherwise stay in the heap, and are told by this. */
  #isDue(slot: number, step: number): boolean {
    const s = this.#slots;
    return s.state[slot] === DECODE && s.finishStep[slot] === step && s.aborted[slot] === 0;
  }
}
