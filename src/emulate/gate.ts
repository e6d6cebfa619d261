/** Holds output back, for the faults that delay it: late headers, a stall, a buffering proxy. */
import type { Millis } from '../base/index.ts';
import type { Cancel, Clock } from '../core/index.ts';

/** One chunk with what the books need of it. */
export interface Held {
  readonly text: string;
  readonly choice: number;
  readonly tokens: number;
  readonly shown: boolean;
}

export class Gate {
  readonly #clock: Clock;
  /** Bytes that must have gathered before any leave; absent where nothing is gathered. 0 waits for the end. */
  readonly #block: number | undefined;
  readonly #flush: (held: readonly Held[], together: boolean) => void;
  #held: Held[] = [];
  #bytes = 0;
  readonly #holds = new Set<Cancel>();
  #end: (() => void) | undefined;

  /** @param flush sends what was held: merged into one write when `together`. */
  constructor(clock: Clock, block: number | undefined, flush: (held: readonly Held[], together: boolean) => void) {
    this.#clock = clock;
    this.#block = block;
    this.#flush = flush;
  }

  /** Lets nothing out before `until`; `then` runs at it. Shut several times, it opens when the last hold is over. */
  shut(until: Millis, then?: () => void): void {
    const hold = this.#clock.at(until, () => {
      this.#holds.delete(hold);
      then?.();
      this.#release();
    });
    this.#holds.add(hold);
  }

  push(held: Held): void {
    this.#held.push(held);
    this.#bytes += held.text.length;
    this.#release();
  }

  /** Runs `end` after everything that was pushed has left. */
  finish(end: () => void): void {
    this.#end = end;
    this.#release();
  }

  /** Drops what is held. */
  close(): void {
    for (const cancel of this.#holds) cancel();
    this.#holds.clear();
    this.#held = [];
    this.#end = undefined;
  }

  #release(): void {
    if (this.#holds.size > 0) return;
    const gathered = this.#block === undefined || (this.#block > 0 && this.#bytes >= this.#block);
    if (this.#held.length > 0 && (gathered || this.#end)) {
      const held = this.#held;
      this.#held = [];
      this.#bytes = 0;
      this.#flush(held, this.#block !== undefined);
    }
    const end = this.#end;
    this.#end = undefined;
    end?.();
  }
}
