/** How late a server keeps its own schedule: a log-bucketed count of delays, 1/8 of an octave wide (error below 5 %). */
import type { Millis } from '../base/index.ts';

const STEPS = 8;
const SIZE = 40 * STEPS; // up to 2^40 microseconds

export interface Lateness {
  readonly count: number;
  readonly p50: Millis;
  readonly p99: Millis;
  readonly max: Millis;
}

export class LatenessMeter {
  readonly #counts = new Uint32Array(SIZE);
  #count = 0;
  #max = 0;

  /** @param late milliseconds after the planned time; early counts as 0. */
  add(late: Millis): void {
    const micros = late > 0 ? late * 1000 : 0;
    const at = Math.min(SIZE - 1, Math.floor(Math.log2(1 + micros) * STEPS));
    this.#counts[at]!++;
    this.#count++;
    if (late > this.#max) this.#max = late;
  }

  quantile(q: number): Millis {
    const rank = q * (this.#count - 1);
    let below = 0;
    for (let i = 0; i < SIZE; i++) {
      below += this.#counts[i]!;
      if (below > rank) return Math.min(this.#max, (2 ** ((i + 0.5) / STEPS) - 1) / 1000);
    }
    return this.#max;
  }

  /** Absent before anything was measured. */
  read(): Lateness | undefined {
    if (this.#count === 0) return undefined;
    return { count: this.#count, p50: this.quantile(0.5), p99: this.quantile(0.99), max: this.#max };
  }
}
