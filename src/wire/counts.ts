/**
 * Tokens a chunk from a count that only grows (continuous usage, `predicted_n`, `completion_tokens`), for one choice.
 * What was counted while nothing could be seen (an incomplete character, held-back text) came with the next visible
 * chunk, so it is counted there; what was counted after the last one is dropped.
 *
 * A count is believed only when it was there from the first output on and has grown with every output since: a usage that
 * first appears on the last chunk is the final usage, and one that stands still is not a count of chunks.
 */
export class GrowingCount {
  #at = 0;
  #announced = false;
  #state: 'waiting' | 'counting' | 'unknown' = 'waiting';

  /** True once an output's count was believed, and as long as all are. */
  get counting(): boolean {
    return this.#state === 'counting';
  }

  /** The count stood on an event of this choice without output. */
  silent(total: number | undefined): void {
    if (total !== undefined) this.#announced = true;
  }

  /**
   * Tokens delivered by an output event, undefined when unknown.
   * @param last the event also finishes the choice. @param unseen end tokens that are in `total` and not in the text.
   */
  output(total: number | undefined, last: boolean, unseen: number): number | undefined {
    if (this.#state === 'unknown') return undefined;
    const first = this.#state === 'waiting';
    if (total === undefined || total <= this.#at || (first && last && !this.#announced)) {
      this.#state = 'unknown';
      return undefined;
    }
    const tokens = total - this.#at;
    this.#at = total;
    this.#state = 'counting';
    return last ? Math.max(0, tokens - unseen) : tokens;
  }
}
