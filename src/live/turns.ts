/**
 * How late a stamp may be because other streams were read first. Sockets that are ready together are read one after
 * another; reads that follow one another without a pause are a volley, and the distance of a read's stamp from the first
 * of its volley bounds its lateness from this cause. Engines that batch emit in lock-step, so this is the bias of the
 * stamps there, and the report says so.
 */
import type { Millis } from '../base/units.ts';

/** A read that begins this long after the one before it did not wait for it: no single read takes as long. */
const PAUSE: Millis = 0.15;
/** Bins of 10 µs up to 200 ms; what is later counts in the last. */
const BINS = 20_000;
const PER_MS = 100;

export class Turns {
  readonly #bins = new Uint32Array(BINS);
  #count = 0;
  #max: Millis = 0;
  #first: Millis = Number.NEGATIVE_INFINITY;
  #last: Millis = Number.NEGATIVE_INFINITY;

  /** A read was stamped `t`; stamps never decrease. */
  read(t: Millis): void {
    if (t - this.#last > PAUSE) this.#first = t;
    this.#last = t;
    const late = t - this.#first;
    this.#bins[Math.min(BINS - 1, Math.floor(late * PER_MS))]!++;
    this.#count++;
    if (late > this.#max) this.#max = late;
  }

  /** Over all reads, to 10 µs; undefined before the first. */
  spread(): { readonly p50: Millis; readonly p99: Millis; readonly max: Millis } | undefined {
    if (this.#count === 0) return undefined;
    return { p50: this.#quantile(0.5), p99: this.#quantile(0.99), max: this.#max };
  }

  /** The upper edge of the bin that holds the quantile, or the largest value where that is less. */
  #quantile(p: number): Millis {
    let left = Math.ceil(p * this.#count);
    let bin = 0;
    while (bin < BINS - 1 && (left -= this.#bins[bin]!) > 0) bin++;
    return Math.min(this.#max, (bin + 1) / PER_MS);
  }
}
