/** A bounded sample of the entries of a file, and what was left out of it. */
import { InputError } from '../../base/errors.ts';
import type { Prompt } from '../../core/request.ts';
import { type Dataset, type DatasetEntry, Reservoir } from '../dataset.ts';
import { entryFrom } from './entry.ts';
import { type DatasetOptions, MAX_PROMPT, MAX_TEXT } from './options.ts';

export class Collector {
  readonly #what: string;
  readonly #options: DatasetOptions;
  readonly #sample: Reservoir<{ entry: DatasetEntry; size: number }>;
  readonly #leftOut = new Map<string, number>();
  #held = 0;
  #skipped = 0;
  #tooLong = 0;

  constructor(what: string, options: DatasetOptions) {
    this.#what = what;
    this.#options = options;
    this.#sample = new Reservoir(options.sample, options.seed);
  }

  /** @param where `FILE:LINE`. @throws InputError naming it. */
  add(value: unknown, where: string): void {
    const entry = entryFrom(value, where, {
      outputOfFile: this.#options.outputOfFile,
      leftOut: (what) => this.#leftOut.set(what, (this.#leftOut.get(what) ?? 0) + 1),
    });
    if (entry === undefined) {
      this.#skipped++;
      return;
    }
    const size = sizeOf(entry.prompt);
    if (size >= MAX_PROMPT) {
      this.tooLong();
      return;
    }
    const dropped = this.#sample.add({ entry, size }, ownText);
    this.#held += size - (dropped?.size ?? 0);
    if (this.#held > MAX_TEXT) {
      throw new InputError(
        `${where}: ${this.#sample.items.length} prompts have more than ${MAX_TEXT >> 20} million characters; keep fewer of them with sample:`,
      );
    }
  }
  tooLong(): void {
    this.#skipped++;
    this.#tooLong++;
  }

  /** @throws InputError where there is nothing to ask. */
  finish(): Dataset {
    const { items, seen } = this.#sample;
    if (seen === 0) {
      throw new InputError(
        `${this.#what}: holds no prompt${this.#skipped > 0 ? ` (${this.#skipped} entries ask nothing, or are too long)` : ''}; nothing to ask`,
      );
    }
    const notes = [
      ...(this.#skipped > this.#tooLong ? [`${this.#skipped - this.#tooLong} entries ask nothing`] : []),
      ...(this.#tooLong > 0 ? [`${this.#tooLong} entries are longer than ${MAX_PROMPT} characters`] : []),
      ...[...this.#leftOut].map(([what, n]) => `${n} ${what}`),
    ];
    return {
      name: this.#what,
      entries: items.map((item) => item.entry),
      available: seen,
      skipped: this.#skipped,
      notes: notes.map((note) => `${note}: left out`),
    };
  }
}

/** A text cut from a piece of a file keeps the whole piece in memory: what is kept has its own. */
function ownText(item: { entry: DatasetEntry; size: number }): { entry: DatasetEntry; size: number } {
  return JSON.parse(JSON.stringify(item)) as typeof item;
}

/** Characters a prompt takes, images and all. */
function sizeOf(prompt: Prompt): number {
  if (typeof prompt === 'string') return prompt.length;
  let size = 0;
  for (const { content, toolCalls } of prompt) {
    if (typeof content === 'string') size += content.length;
    else for (const part of content) size += part.type === 'text' ? part.text.length : part.url.length;
    for (const call of toolCalls ?? []) size += call.arguments.length;
  }
  return size;
}
