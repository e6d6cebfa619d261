/** A link that its transfers share evenly (processor sharing): KV hand-offs from prefill to decode. */
import { Heap } from '../base/heap.ts';
import type { Millis } from '../base/units.ts';

/**
 * Each of n transfers gets 1/n of the bandwidth, so all have received equally much since they began: a transfer ends
 * when that common account has grown by its size.
 */
export class SharedLink {
  readonly #bytesPerMs: number;
  readonly #latency: Millis;
  /** Bytes received by a transfer that was there from the start. */
  #account = 0;
  #at: Millis = 0;
  #active = 0;
  readonly #ending = new Heap<number>();
  readonly #gone = new Set<number>();

  /** @param bandwidth bytes a second, all transfers together; `latency` ms before a transfer's first byte is received. */
  constructor(bandwidth: number, latency: Millis = 0) {
    this.#bytesPerMs = bandwidth / 1000;
    this.#latency = latency;
  }

  begin(id: number, bytes: number, t: Millis): void {
    this.#to(t);
    this.#ending.push(this.#account + bytes + (this.#latency * this.#bytesPerMs) / (this.#active + 1), id);
    this.#active++;
  }

  /** Takes a transfer out. */
  drop(id: number, t: Millis): void {
    this.#to(t);
    this.#gone.add(id);
    this.#active--;
  }

  nextAt(): Millis {
    this.#skipGone();
    if (this.#active === 0) return Number.POSITIVE_INFINITY;
    const left = Math.max(0, this.#ending.minKey - this.#account);
    return this.#at + (left * this.#active) / this.#bytesPerMs;
  }

  /** Ids of transfers that end by `t`, in order. Call with `t = nextAt()` or earlier. */
  advance(t: Millis, ended: (id: number, at: Millis) => void): void {
    for (let next = this.nextAt(); next <= t; next = this.nextAt()) {
      this.#account = this.#ending.minKey;
      this.#at = next;
      const id = this.#ending.pop() as number;
      this.#active--;
      ended(id, next);
    }
  }

  #to(t: Millis): void {
    if (this.#active > 0) this.#account += ((t - this.#at) * this.#bytesPerMs) / this.#active;
    this.#at = t;
  }

  #skipGone(): void {
    while (this.#ending.size > 0 && this.#gone.delete(this.#ending.peek() as number)) this.#ending.pop();
  }
}
