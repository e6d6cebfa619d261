/**
 * Text synthesised to a token length. Each piece is a common English word with its leading space, one token in the
 * byte-pair vocabularies in use; what the server really counted stands in the report. A text is a list of stretches, each
 * the beginning of an endless stream of words named by a key: the same key is the same text, wherever and in whatever run
 * of the same salt it appears. So shared prefixes are shared to the letter, and all other prompts differ from their first
 * block on, and no prefix cache is primed by accident.
 */
import { keyedSource } from '../base/random.ts';
import { PREFIX_BLOCK_TOKENS } from '../core/request.ts';

const WORDS = (
  'the of and to in is that for it as was with be by on not he his but at are this have from or had an they which one you ' +
  'were all her she there would their we him been has when who will no more if out so up said what its about than into ' +
  'them can only other time new some could these two may first then do any like my now over such our man me even most made ' +
  'after also did many off before must well back through years where much your way down should because long each just ' +
  'state those people too mr how little good world make very year still see own work men day get here old life both ' +
  'between being under three never know same last another while us might great go come since against right came take used ' +
  'himself few house use place during high without again home around small however found part school once general upon ' +
  'every don water got left number course war until always away something fact public though less put think almost hand ' +
  'enough far took head yet better set told nothing night end why called eyes find going look asked later point knew next ' +
  'city business give group toward young days let room word several second order number name country interest early'
).split(' ');

/** How texts of a run are made. */
export interface TextPlan {
  /**
   * Sets this run's texts apart from any other's, so that nothing a server cached before can match; below 2^20. 0: texts
   * follow from the seed alone and come again in every run of it.
   */
  readonly salt: number;
  /** Tokens the server's tokenizer makes of a word, measured there, or 1. */
  readonly tokensPerWord: number;
  /** Tokens the server adds to every prompt (chat template, begin token), measured there, or 0. */
  readonly overhead: number;
}

export const PLAIN_TEXT: TextPlan = { salt: 0, tokensPerWord: 1, overhead: 0 };

/** What a stretch is for: streams of different purposes never meet. */
const PURPOSES = ['prompt', 'prefix', 'answer', 'block'] as const;
export type Purpose = (typeof PURPOSES)[number];

/** The first `tokens` pieces of the stream (purpose, key). */
export interface Stretch {
  readonly purpose: Purpose;
  readonly key: number;
  readonly tokens: number;
}

/** Writes stretches as text. */
export interface TextSource {
  text(stretches: readonly Stretch[]): string;
  /** Words that make `tokens` by the measured ratio, at least one. */
  words(tokens: number): number;
  readonly plan: TextPlan;
}

export function textSource(seed: number, plan: TextPlan = PLAIN_TEXT): TextSource {
  const textSeed = plan.salt === 0 ? seed : (seed % 2 ** 32) + plan.salt * 2 ** 32;
  const sources = Object.fromEntries(PURPOSES.map((p) => [p, keyedSource(textSeed, p)])) as Record<
    Purpose,
    ReturnType<typeof keyedSource>
  >;
  const words = (tokens: number): number => Math.max(1, Math.round(tokens / plan.tokensPerWord));
  return {
    plan,
    words,
    text(stretches) {
      const pieces: string[] = [];
      for (const { purpose, key, tokens } of stretches) {
        const u = sources[purpose](key);
        for (let i = words(tokens); i > 0; i--) pieces.push(WORDS[Math.floor(u() * WORDS.length)] as string);
      }
      return pieces.join(' ');
    },
  };
}

/** A text of `tokens` pieces for (seed, operation); two operations share no prefix but by chance. */
export function promptText(tokens: number, seed: number, operation: number): string {
  return textSource(seed).text([{ purpose: 'prompt', key: operation, tokens }]);
}

/**
 * Hashes of the leading whole blocks of 16 tokens. Each covers all before it, so two lists of stretches share block k
 * exactly when they say the same up to its end. 53 bits in two lanes: among 10^6 blocks a false match has chance 10^-4.
 */
export function prefixBlocks(stretches: readonly Stretch[]): number[] {
  let total = 0;
  for (let s = 0; s < stretches.length; s++) total += (stretches[s] as Stretch).tokens;
  const blocks = new Array<number>(Math.floor(total / PREFIX_BLOCK_TOKENS));
  let count = 0;
  let a = 0x811c9dc5 | 0;
  let b = 0x6b43a9b5;
  let room = PREFIX_BLOCK_TOKENS;
  for (let s = 0; s < stretches.length; s++) {
    const { purpose, key, tokens } = stretches[s] as Stretch;
    const tag = PURPOSES.indexOf(purpose) + 1;
    const low = key | 0;
    const high = Math.floor(key / 2 ** 32) | 0;
    for (let at = 0; at < tokens; ) {
      const take = Math.min(room, tokens - at);
      // tag, low, high, at and take, each mixed into both lanes: written out, since a million offers a second pass here.
      a = Math.imul(a ^ tag, MIX_A);
      b = Math.imul(b ^ tag, MIX_B) ^ (b >>> 13);
      a = Math.imul(a ^ (a >>> 15) ^ low, MIX_A);
      b = Math.imul(b ^ low, MIX_B) ^ (b >>> 13);
      a = Math.imul(a ^ (a >>> 15) ^ high, MIX_A);
      b = Math.imul(b ^ high, MIX_B) ^ (b >>> 13);
      a = Math.imul(a ^ (a >>> 15) ^ at, MIX_A);
      b = Math.imul(b ^ at, MIX_B) ^ (b >>> 13);
      a = Math.imul(a ^ (a >>> 15) ^ take, MIX_A);
      b = Math.imul(b ^ take, MIX_B) ^ (b >>> 13);
      a ^= a >>> 15;
      at += take;
      room -= take;
      if (room > 0) continue;
      blocks[count++] = (a >>> 0) * 2 ** 21 + (b >>> 11);
      room = PREFIX_BLOCK_TOKENS;
    }
  }
  return blocks;
}

const MIX_A = 0x01000193;
const MIX_B = 0x85ebca6b;
