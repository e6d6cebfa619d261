/** Prompts of a file, sampled by seed. The readers are in `datasets/`. */
import { keyed } from '../base/random.ts';
import type { Message, Prompt, ToolDefinition } from '../core/request.ts';

export interface DatasetEntry {
  readonly prompt: Prompt;
  readonly tools?: readonly ToolDefinition[];
  /** As the file says. */
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  /** From the text's length, where nobody counted. */
  readonly estimatedTokens: number;
  /** Of a conversation: its turns, for asking it as a session. */
  readonly turns?: readonly DatasetTurn[];
}

export interface DatasetTurn {
  /** What this turn adds: the question, and what was said with it. */
  readonly said: readonly Message[];
  /** What was answered in the file: said before the next question. */
  readonly answer?: Message;
  /** Its length, from the text. */
  readonly outputTokens?: number;
}

export interface Dataset {
  /** The file, for people. */
  readonly name: string;
  readonly entries: readonly DatasetEntry[];
  /** Usable entries the file has; `entries` is a sample of them. */
  readonly available: number;
  /** Entries that had nothing to ask, and were left out. */
  readonly skipped: number;
  /** What was left out, and why. */
  readonly notes: readonly string[];
}

/** Characters a token, in English text by the usual vocabularies. Only estimates rest on it. */
const CHARACTERS_A_TOKEN = 4;

export function estimateTokens(prompt: Prompt): number {
  let characters = 0;
  const count = (text: string): void => {
    characters += text.length;
  };
  if (typeof prompt === 'string') count(prompt);
  else {
    for (const { content } of prompt) {
      if (typeof content === 'string') count(content);
      else for (const part of content) if (part.type === 'text') count(part.text);
    }
  }
  return Math.max(1, Math.round(characters / CHARACTERS_A_TOKEN));
}

/** The order in which operations take the entries: a permutation by seed, so none comes twice before all came once. */
export function datasetOrder(dataset: Dataset, seed: number): Uint32Array {
  const order = Uint32Array.from({ length: dataset.entries.length }, (_, i) => i);
  const u = keyed(seed, 'dataset-order');
  for (let i = order.length - 1; i > 0; i--) {
    const j = Math.floor(u() * (i + 1));
    [order[i], order[j]] = [order[j] as number, order[i] as number];
  }
  return order;
}

/** With a salt, the first message begins with a word of the run's own: no cache of an earlier run matches. */
export function saltedPrompt(prompt: Prompt, salt: number): Prompt {
  if (salt === 0) return prompt;
  const word = `[${salt.toString(36)}] `;
  if (typeof prompt === 'string') return word + prompt;
  return prompt.map((message, i): Message => {
    if (i > 0) return message;
    const { content } = message;
    return {
      ...message,
      content: typeof content === 'string' ? word + content : [{ type: 'text', text: word.trim() }, ...content],
    };
  });
}

/**
 * A uniform sample of bounded size from a stream of unknown length (Vitter 1985, algorithm R), by seed: the same file, size
 * and seed give the same sample.
 */
export class Reservoir<T> {
  readonly #size: number;
  readonly #u: () => number;
  readonly items: T[] = [];
  seen = 0;
  constructor(size: number, seed: number, purpose = 'dataset-sample') {
    this.#size = size;
    this.#u = keyed(seed, purpose);
  }
  /**
   * @param kept makes of an item what is kept of it.
   * @returns what is not kept: an earlier item, or this one; undefined where all are.
   */
  add(item: T, kept: (item: T) => T = (same) => same): T | undefined {
    this.seen++;
    if (this.items.length < this.#size) {
      this.items.push(kept(item));
      return undefined;
    }
    const at = Math.floor(this.#u() * this.seen);
    if (at >= this.#size) return item;
    const before = this.items[at];
    this.items[at] = kept(item);
    return before;
  }
}
