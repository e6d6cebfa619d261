/**
 * How late a stamp may be because other streams were read first. Sockets that are ready together are read one after
 * another in one turn of the event loop; the distance of a read's stamp from the first of its turn bounds its lateness
 * from this cause. Engines that batch emit in lock-step, so this is the bias of the stamps there, and the report says so.
 */
import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';
import type { Millis } from '../base/units.ts';

export class Turns {
  /** Microseconds, plus 1: the histogram takes whole numbers from 1 on. */
  readonly #distance: RecordableHistogram = createHistogram({ lowest: 1, highest: 60_000_000, figures: 3 });
  #start: Millis = 0;
  #open = false;
  readonly #close = (): void => {
    this.#open = false;
  };

  /** A read was stamped `t`. */
  read(t: Millis): void {
    if (!this.#open) {
      this.#open = true;
      this.#start = t;
      setImmediate(this.#close); // runs when all that was ready in this turn has been read
    }
    this.#distance.record(Math.round((t - this.#start) * 1000) + 1);
  }

  /** Over all reads; undefined before the first. */
  spread(): { readonly p50: Millis; readonly p99: Millis; readonly max: Millis } | undefined {
    const h = this.#distance;
    if (h.count === 0) return undefined;
    const ms = (us: number): Millis => (us - 1) / 1000;
    return { p50: ms(h.percentile(50)), p99: ms(h.percentile(99)), max: ms(h.max) };
  }
}
