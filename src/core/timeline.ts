/** Receipts of a response's chunks as columns: typed arrays, not an object a token. */
import type { Millis } from '../base/units.ts';
import { OUTPUT_KINDS, type OutputKind } from './stream.ts';

/** Chunks in order of receipt. A chunk is one output event of one choice; it is not a token. */
export interface Timeline {
  readonly length: number;
  /** Receipt, ms since the run's epoch, on the microsecond grid, non-decreasing. */
  readonly at: Float64Array;
  /** Tokens in the chunk, −1 where unknown. */
  readonly tokens: Int32Array;
  /** Index into `OUTPUT_KINDS`. */
  readonly kind: Uint8Array;
  readonly choice: Uint16Array;
}

export const EMPTY_TIMELINE: Timeline = {
  length: 0,
  at: new Float64Array(0),
  tokens: new Int32Array(0),
  kind: new Uint8Array(0),
  choice: new Uint16Array(0),
};

const KIND_INDEX = new Map(OUTPUT_KINDS.map((kind, i) => [kind, i]));

/** Grows by doubling; `finish` cuts to size. Also the plain way to write a timeline down in a test. */
export class TimelineBuilder {
  #length = 0;
  #at = new Float64Array(16);
  #tokens = new Int32Array(16);
  #kind = new Uint8Array(16);
  #choice = new Uint16Array(16);

  get length(): number {
    return this.#length;
  }

  push(at: Millis, tokens = -1, kind: OutputKind = 'text', choice = 0): void {
    const i = this.#length;
    if (i === this.#at.length) this.#grow(2 * i);
    this.#at[i] = at;
    this.#tokens[i] = tokens;
    this.#kind[i] = KIND_INDEX.get(kind) as number;
    this.#choice[i] = choice;
    this.#length = i + 1;
  }

  append(other: Timeline): void {
    for (let i = 0; i < other.length; i++) {
      this.push(other.at[i]!, other.tokens[i]!, OUTPUT_KINDS[other.kind[i]!]!, other.choice[i]!);
    }
  }

  finish(): Timeline {
    const n = this.#length;
    if (n === 0) return EMPTY_TIMELINE;
    return {
      length: n,
      at: this.#at.slice(0, n),
      tokens: this.#tokens.slice(0, n),
      kind: this.#kind.slice(0, n),
      choice: this.#choice.slice(0, n),
    };
  }

  #grow(size: number): void {
    const grown = <T extends { set(a: T): void }>(next: T, old: T): T => {
      next.set(old);
      return next;
    };
    this.#at = grown(new Float64Array(size), this.#at);
    this.#tokens = grown(new Int32Array(size), this.#tokens);
    this.#kind = grown(new Uint8Array(size), this.#kind);
    this.#choice = grown(new Uint16Array(size), this.#choice);
  }
}

/** A timeline of one choice from receipts alone. @param tokens one count a receipt, else all unknown. */
export function timelineOf(receipts: readonly Millis[], tokens?: readonly number[]): Timeline {
  const builder = new TimelineBuilder();
  receipts.forEach((at, i) => {
    builder.push(at, tokens?.[i] ?? -1);
  });
  return builder.finish();
}
