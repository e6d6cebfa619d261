/**
 * The emulator's tokenizer and its vocabulary. The rule: a token is a maximal run of characters that are not white space.
 * Nothing is added for a chat template. So a prompt of k words has exactly k tokens, an answer of k tokens is k words, and
 * `/tokenize`, `usage` and a `split` on white space agree.
 */

/** Number of tokens in `text`. */
export function countTokens(text: string): number {
  let count = 0;
  let inside = false;
  for (let i = 0; i < text.length; i++) {
    const space = isSpace(text.charCodeAt(i));
    if (!space && !inside) count++;
    inside = !space;
  }
  return count;
}

export function splitTokens(text: string): string[] {
  return text.split(SPACE).filter((piece) => piece !== '');
}

// The two must agree on what is white space: ECMAScript's `\s`.
const SPACE = /\s+/u;
export function isSpace(code: number): boolean {
  if (code <= 32) return code === 32 || (code >= 9 && code <= 13);
  if (code < 0xa0) return false;
  return (
    code === 0xa0 ||
    code === 0x1680 ||
    (code >= 0x2000 && code <= 0x200a) ||
    code === 0x2028 ||
    code === 0x2029 ||
    code === 0x202f ||
    code === 0x205f ||
    code === 0x3000 ||
    code === 0xfeff
  );
}

/** What answers are made of: ASCII, and nothing that JSON would escape. */
const WORDS: readonly string[] = [
  ...new Set(
    (
      'the answer to this one is short but it takes a while to say since every word here stands for a single token and ' +
      'none of them means very much so read on if you like or count them instead which is what most people who come by do'
    ).split(' '),
  ),
];

/** The same with the space before it: a token in mid-text. */
const SPACED: readonly string[] = WORDS.map((word) => ` ${word}`);

/** Text of token `index` of an answer that starts at `start` in the vocabulary: with a leading space but for the first. */
export function tokenText(start: number, index: number): string {
  const at = (start + index) % WORDS.length;
  return index === 0 ? WORDS[at]! : SPACED[at]!;
}

/** The token's id, as `return_token_ids` gives it. */
export function tokenId(start: number, index: number): number {
  return FIRST_WORD_ID + ((start + index) % WORDS.length);
}

const FIRST_WORD_ID = 1000;
export const EOS_ID = 2;

/**
 * Ids for `/tokenize` and back. Ids are handed out in order of first sight, so text comes back from its ids (white space
 * folded to one space). The table is bounded: past it every new piece shares one id, and comes back as `<unk>`.
 */
export class Vocabulary {
  readonly #ids = new Map<string, number>();
  readonly #pieces: string[] = [];
  readonly #limit: number;
  constructor(limit = 50_000) {
    this.#limit = limit;
    for (const word of WORDS) this.idOf(word);
  }

  idOf(piece: string): number {
    const known = this.#ids.get(piece);
    if (known !== undefined) return known;
    if (this.#pieces.length >= this.#limit || piece.length > 200) return 0;
    const id = FIRST_WORD_ID + this.#pieces.length;
    this.#pieces.push(piece);
    this.#ids.set(piece, id);
    return id;
  }

  textOf(ids: readonly number[]): string {
    return ids.map((id) => this.#pieces[id - FIRST_WORD_ID] ?? '<unk>').join(' ');
  }
}
