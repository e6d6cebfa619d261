/**
 * Prompts synthesised to a token length. Each piece is a common English word with its leading space, one token in the
 * byte-pair vocabularies in use; what the server really counted stands in the report. The first pieces are drawn from the
 * operation's own key, so that prompts differ from their first block on and no prefix cache is primed by accident.
 */
import { keyed } from '../base/random.ts';

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

/** A text of `tokens` pieces for (seed, operation); two operations share no prefix but by chance. */
export function promptText(tokens: number, seed: number, operation: number): string {
  const u = keyed(seed, 'prompt', operation);
  const pieces = new Array<string>(tokens);
  for (let i = 0; i < tokens; i++) pieces[i] = WORDS[Math.floor(u() * WORDS.length)] as string;
  return pieces.join(' ');
}
