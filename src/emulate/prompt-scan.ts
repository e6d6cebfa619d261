/**
 * One pass over a prompt: how many tokens it has, and a hash for each whole leading block of them. A hash covers all that
 * comes before it, so two prompts share block k exactly when they share everything up to it (vLLM's block hashes).
 */
import { isSpace } from './words.ts';

/** Tokens a block: what the simulator's prefix cache takes one hash to stand for. */
export const BLOCK_TOKENS = 16;

export class PromptScan {
  tokens = 0;
  readonly blocks: number[] = [];
  // Two lanes of FNV-1a make a hash of 53 bits.
  #a = 0x811c9dc5 | 0;
  #b = 0x6b43a9b5;

  text(text: string): void {
    let inside = false;
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (!isSpace(code)) {
        this.#mix(code);
        inside = true;
      } else if (inside) {
        this.#token();
        inside = false;
      }
    }
    if (inside) this.#token();
  }

  ids(ids: readonly number[]): void {
    for (const id of ids) {
      this.#mix(id);
      this.#token();
    }
  }

  #token(): void {
    this.#mix(-1);
    this.tokens++;
    if (this.tokens % BLOCK_TOKENS === 0) this.blocks.push((this.#a >>> 0) * 2 ** 21 + (this.#b >>> 11));
  }

  #mix(x: number): void {
    this.#a = Math.imul(this.#a ^ x, 0x01000193);
    this.#b = Math.imul(this.#b ^ x, 0x85ebca6b) ^ (this.#b >>> 15);
  }
}
