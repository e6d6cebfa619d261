/** Arguments as the parser can read them: what it does not know of our published flags, put into its terms. */
import { joinGoodputValues } from './slo-flags.ts';

/** @param argv what stands behind `goodput`. */
export function parsable(argv: readonly string[]): string[] {
  return oneLetterNames(joinGoodputValues(argv));
}

/**
 * The parser takes a name behind `--` for a flag only from two letters on: `--n 2` becomes its alias `-n 2`. Every command
 * with such a flag names the letter among its aliases.
 */
function oneLetterNames(argv: readonly string[]): string[] {
  const end = argv.indexOf('--');
  return argv.map((arg, i) => (end >= 0 && i > end ? arg : arg.replace(/^--(?=[a-z](=|$))/i, '-')));
}
