/**
 * Output tokens received in a window, by receipt time, whoever they belong to: warm-up and cool-down operations deliver
 * into the window too. Without per-chunk counts a request's tokens are spread evenly over its chunks, and that is said.
 */
import type { PerSecond } from '../base/units.ts';
import { type Window, windowSeconds } from './cohort.ts';
import type { RequestRecord } from './record.ts';
import type { Reducer } from './sink.ts';
import { streamedTokens } from './tokens.ts';

export interface Throughput {
  readonly tokensPerSecond: PerSecond;
  readonly tokens: number;
  /** Share of the tokens that were spread evenly, not stamped. */
  readonly spreadShare: number;
  /** Requests with output in the window whose tokens are unknown: the figure leaves them out. */
  readonly unknown: number;
  readonly chunks: number;
}

export class ThroughputReducer implements Reducer<RequestRecord, Throughput> {
  readonly window: Window;
  #stamped = 0;
  #spread = 0;
  #unknown = 0;
  #chunks = 0;

  constructor(window: Window) {
    this.window = window;
  }

  add(record: RequestRecord): void {
    const { timeline } = record;
    const n = timeline.length;
    const { start, end } = this.window;
    if (n === 0 || timeline.at[0]! >= end || timeline.at[n - 1]! < start) return;
    const counted = streamedTokens(record);
    let inside = 0;
    let tokens = 0;
    for (let i = 0; i < n; i++) {
      const at = timeline.at[i]!;
      if (at < start || at >= end) continue;
      inside++;
      tokens += Math.max(0, timeline.tokens[i]!);
    }
    this.#chunks += inside;
    if (counted.source === 'per-chunk') this.#stamped += tokens;
    else {
      const total = counted.n ?? record.usage?.output;
      if (total === undefined) this.#unknown++;
      else this.#spread += (total * inside) / n;
    }
  }

  merge(other: this): void {
    this.#stamped += other.#stamped;
    this.#spread += other.#spread;
    this.#unknown += other.#unknown;
    this.#chunks += other.#chunks;
  }

  finish(): Throughput {
    const tokens = this.#stamped + this.#spread;
    return {
      tokensPerSecond: tokens / windowSeconds(this.window),
      tokens,
      spreadShare: tokens > 0 ? this.#spread / tokens : 0,
      unknown: this.#unknown,
      chunks: this.#chunks,
    };
  }
}
