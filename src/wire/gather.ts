/** Collects what one event carries of one choice into at most one chunk. */
import type { OutputKind, OutputPart } from '../core/stream.ts';

/** An event of several kinds counts as the first of these it has: an answer outranks reasoning, the known the unknown. */
const RANK: Readonly<Record<OutputKind, number>> = {
  text: 0,
  refusal: 1,
  tool: 2,
  reasoning: 3,
  summary: 4,
  unclassified: 5,
};

/** Reused from event to event: `clear`, `add` what was found, then `part`. */
export class Gather {
  #kind: OutputKind | undefined;
  #text = '';
  #field: string | undefined;

  get found(): boolean {
    return this.#kind !== undefined;
  }
  get kind(): OutputKind | undefined {
    return this.#kind;
  }

  clear(): void {
    this.#kind = undefined;
    this.#text = '';
    this.#field = undefined;
  }

  /**
   * @param text visible text, empty where there is none. Of an unknown field it counts only where nothing is known: it
   * may repeat what is. @param field where unclassified output stood.
   */
  add(kind: OutputKind, text: string, field?: string): void {
    const before = this.#kind;
    if (before !== undefined && before !== kind && (kind === 'unclassified' || before === 'unclassified')) {
      if (kind === 'unclassified') return;
      this.clear();
    }
    if (this.#kind === undefined || RANK[kind] < RANK[this.#kind]) {
      this.#kind = kind;
      this.#field = field;
    }
    this.#text = this.#text === '' ? text : this.#text + text;
  }

  /** The chunk, or undefined when nothing was found. */
  part(choice: number, tokens?: number): OutputPart | undefined {
    const kind = this.#kind;
    if (kind === undefined) return undefined;
    const text = this.#text;
    if (this.#field === undefined && text !== '') {
      return tokens === undefined ? { choice, kind, text } : { choice, kind, tokens, text };
    }
    return {
      choice,
      kind,
      ...(tokens !== undefined && { tokens }),
      ...(text !== '' && { text }),
      ...(this.#field !== undefined && { field: this.#field }),
    };
  }
}
