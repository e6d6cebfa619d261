import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BLOCK_TOKENS, PromptScan } from './prompt-scan.ts';
import { countTokens, splitTokens, tokenId, tokenText, Vocabulary } from './words.ts';

const scanned = (...texts: string[]): PromptScan => {
  const scan = new PromptScan();
  for (const text of texts) scan.text(text);
  return scan;
};

describe('a token is a word', () => {
  const texts = fc.string({
    unit: fc.constantFrom(' ', '\n', '\t', '\u00a0', '\u2003', '\ufeff', 'a', 'é', '語', '\u0000', '😀'),
  });
  it('by every way of counting', () => {
    fc.assert(
      fc.property(texts, (text) => {
        expect(countTokens(text)).toBe(splitTokens(text).length);
        expect(scanned(text).tokens).toBe(countTokens(text));
      }),
    );
    for (let code = 0; code < 0x10000; code++) {
      const text = `a${String.fromCharCode(code)}b`;
      if (countTokens(text) !== splitTokens(text).length) throw new Error(`the two disagree on U+${code.toString(16)}`);
    }
  });
  it('and answers are made of as many', () => {
    let text = '';
    const ids: number[] = [];
    for (let i = 0; i < 300; i++) {
      text += tokenText(5, i);
      ids.push(tokenId(5, i));
    }
    expect(countTokens(text)).toBe(300);
    expect(JSON.stringify(text)).toBe(`"${text}"`);
    expect(new Vocabulary().textOf(ids)).toBe(text);
  });
  it('with ids that stay bounded', () => {
    const vocabulary = new Vocabulary(100);
    for (let i = 0; i < 200; i++) vocabulary.idOf(`new${i}`);
    expect(vocabulary.textOf([vocabulary.idOf('new0'), vocabulary.idOf('new199'), 7])).toBe('new0 <unk> <unk>');
  });
});

describe('block hashes', () => {
  const words = (n: number, name = 'w'): string => Array.from({ length: n }, (_, i) => `${name}${i}`).join(' ');
  it('are one a whole block, and shared exactly as far as the prompts are', () => {
    const a = scanned(words(70)).blocks;
    expect(a).toHaveLength(Math.floor(70 / BLOCK_TOKENS));
    const b = scanned(`${words(40)} other ${words(40, 'v')}`).blocks;
    expect(b.slice(0, 2)).toEqual(a.slice(0, 2));
    for (let i = 2; i < a.length; i++) expect(b[i]).not.toBe(a[i]);
    expect(scanned(`x ${words(70)}`).blocks.some((hash) => a.includes(hash))).toBe(false);
  });
  it('do not mind white space, or how a prompt is split over messages', () => {
    expect(scanned(words(16), words(20, 'v')).blocks).toEqual(scanned(`  ${words(16)}\n\n${words(20, 'v')}`).blocks);
  });
  it('are whole numbers, and differ', () => {
    const { blocks } = scanned(words(160_000));
    expect(new Set(blocks).size).toBe(10_000);
    expect(blocks.every(Number.isSafeInteger)).toBe(true);
  });
});
