/** Bytes of the text format: which may stand where, and what is told from them without a string. */
import { boundOf } from './family.ts';

export const BLANK = 32;
export const LF = 10;
export const CR = 13;
export const QUOTE = 34;
export const COMMA = 44;
export const POINT = 46;
export const EQUALS = 61;
export const BACKSLASH = 92;
export const BRACE = 123;
export const END_BRACE = 125;

/** Bits: may begin a metric's name, stand in it, begin a label's name, stand in it. */
export const NAME_START = 1;
export const NAME_PART = 2;
export const LABEL_START = 4;
export const LABEL_PART = 8;
export const CLASS = new Uint8Array(256);
for (let c = 0; c < 128; c++) {
  const s = String.fromCharCode(c);
  if (/[a-zA-Z_]/.test(s)) CLASS[c] = NAME_START | NAME_PART | LABEL_START | LABEL_PART;
  else if (s === ':') CLASS[c] = NAME_START | NAME_PART;
  else if (/[0-9.]/.test(s)) CLASS[c] = NAME_PART | LABEL_PART;
}

/** Whole numbers below 10^15 and powers of ten to 10^22 are exact, so that their quotient is rounded once: as Number() is. */
export const MOST_DIGITS = 15;
export const POWERS = Array.from({ length: MOST_DIGITS + 1 }, (_, i) => 10 ** i);
/** Characters of a number that is read here. */
export const MOST_TEXT = 64;
/** Labels of one line that are compared name by name; of more, the reader of characters decides. */
export const MOST_LABELS = 32;

const DECODER = new TextDecoder();

export function withoutComma(b: Uint8Array, from: number, to: number): number {
  return to > from && b[to - 1] === COMMA ? to - 1 : to;
}

/** The bytes [from, to) stand at `at` once more. */
export function isAgain(b: Uint8Array, from: number, to: number, at: number): boolean {
  for (let i = from, j = at; i < to; i++, j++) if (b[i] !== b[j]) return false;
  return true;
}

/** Where the text that begins at `from` is closed; −1 where an escape or the line's end comes first. */
export function quoteAfter(b: Uint8Array, from: number): number {
  for (let at = from; at < b.length; at++) {
    const c = b[at]!;
    if (c === QUOTE) return at;
    if (c === BACKSLASH || c === LF) break;
  }
  return -1;
}

export function boundIn(b: Uint8Array, from: number, to: number): number {
  let whole = 0;
  let point = -1;
  for (let at = from; at < to; at++) {
    const c = b[at]!;
    if (c >= 48 && c <= 57) whole = whole * 10 + (c - 48);
    else if (c === 46 && point < 0) point = at;
    else return boundOf(DECODER.decode(b.subarray(from, to)));
  }
  const digits = to - from - (point < 0 ? 0 : 1);
  if (digits === 0 || digits > MOST_DIGITS) return boundOf(DECODER.decode(b.subarray(from, to)));
  return point < 0 ? whole : whole / POWERS[to - point - 1]!;
}
