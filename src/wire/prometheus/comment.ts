/** `# HELP`, `# TYPE` and `# UNIT` lines. */
import { type ByteTable, PRIME, SEED } from './byte-table.ts';

export interface Comment {
  readonly keyword: 'HELP' | 'TYPE' | 'UNIT';
  readonly name: string;
  /** What stands after the name: help texts are long, and seldom asked for. */
  readonly rest: () => string;
}

const DECODER = new TextDecoder();
const BLANK = 32;
const QUOTE = 34;
/** `# HELP ` and the others. */
const HEAD = 7;
const KEYWORDS = ['HELP', 'TYPE', 'UNIT'] as const;

/** The comment in [from, to), undefined where it is another. @param names where names are kept. */
export function commentOf(b: Uint8Array, from: number, to: number, names: ByteTable): Comment | undefined {
  const end = b[to - 1] === 13 ? to - 1 : to;
  const keyword = keywordAt(b, from);
  if (keyword === undefined) return otherwise(DECODER.decode(b.subarray(from, end)));
  const start = from + HEAD;
  let hash = SEED;
  let at = start;
  for (; at < end && b[at]! > BLANK && b[at] !== QUOTE; at++) hash = Math.imul(hash ^ b[at]!, PRIME);
  if (at === start || (at < end && b[at] !== BLANK)) return otherwise(DECODER.decode(b.subarray(from, end)));
  let id = names.find(hash, b, start, at, 0, 0);
  if (id < 0) id = names.add(hash, b, start, at, 0, 0);
  return { keyword, name: names.text(id), rest: () => DECODER.decode(b.subarray(Math.min(at + 1, end), end)) };
}

function keywordAt(b: Uint8Array, from: number): Comment['keyword'] | undefined {
  if (b[from + 1] !== BLANK || b[from + 6] !== BLANK) return undefined;
  return KEYWORDS.find((word) => {
    for (let i = 0; i < 4; i++) if (b[from + 2 + i] !== word.charCodeAt(i)) return false;
    return true;
  });
}

/** With other blanks, or a quoted name. */
function otherwise(text: string): Comment | undefined {
  const m = /^#[ \t]+(HELP|TYPE|UNIT)[ \t]+("(?:[^"\\]|\\.)*"|\S+)(?:[ \t]+(.*))?\s*$/s.exec(text);
  if (m === null) return undefined;
  const [, keyword, quoted, rest = ''] = m;
  const name = quoted!.startsWith('"') ? quoted!.slice(1, -1) : quoted!;
  return { keyword: keyword as Comment['keyword'], name, rest: () => rest };
}
