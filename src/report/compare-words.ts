/** What a comparison says in words, and in one word. */
import type { Contract } from '../core/index.ts';
import { FEWEST_RUNS } from '../stats/index.ts';
import type { Comparison } from './compare.ts';
import type { Sides } from './compare-drafts.ts';
import type { Figure, FigureVerdict } from './compare-figure.ts';

/** Attainment decides; only where it says nothing do the others. */
export function overall(figures: readonly Figure[]): Comparison['verdict'] {
  const [attainment, ...others] = figures;
  const has = (verdict: FigureVerdict): boolean => others.some((f) => f.verdict === verdict);
  if (attainment!.verdict === 'worse') return 'worse';
  const better = attainment!.verdict === 'better' || has('better');
  if (better && has('worse')) return 'mixed';
  if (better) return 'better';
  if (has('worse')) return 'worse';
  return figures.some((f) => f.verdict === 'differs between these runs') ? 'differs between these runs' : 'not shown';
}

export function summaryOf(verdict: Comparison['verdict'], figures: readonly Figure[], why: readonly string[]): string {
  const names = (v: FigureVerdict): string =>
    figures
      .filter((f) => f.verdict === v)
      .map((f) => f.name)
      .join(', ');
  switch (verdict) {
    case 'void':
      // One reason is enough to mistrust the whole: the others are like it.
      return `void: ${why[0] ?? ''}${why.length > 1 ? `, and ${why.length - 1} more of these runs` : ''}`;
    case 'better':
      return `B is better: ${names('better')}`;
    case 'worse': {
      const cost = figures.some((f) => f.verdict === 'costs attainment')
        ? '; it yields more tokens, but that gain costs attainment and is no win'
        : '';
      const gained = names('better');
      return `B is worse: ${names('worse')}${gained === '' ? '' : ` (better: ${gained})`}${cost}`;
    }
    case 'mixed':
      return `B is better in ${names('better')} and worse in ${names('worse')}`;
    case 'differs between these runs':
      return `these runs differ (${names('differs between these runs')}); whether the systems do is not shown`;
    default:
      return 'no difference is shown; that is not a proof that there is none';
  }
}

export function notesOf(
  { a, b, opsA, opsB, paired, spread, assumed }: Sides,
  sameSeeds: boolean,
  closed: boolean,
  figures: readonly Figure[],
  contract: Contract,
): string[] {
  const notes: string[] = [];
  const fewest = Math.min(a.length, b.length);
  if (spread === undefined && fewest < FEWEST_RUNS) {
    notes.push(
      `${fewest === 1 ? 'one run' : `${fewest} runs`} a side cannot tell how much runs of one system differ: for better or worse repeat both (goodput bench --repeat 3 --against URL), or state the spread (--spread 3%)`,
    );
  }
  if (assumed) {
    notes.push(
      'no spread between runs was stated: what these runs show was moderated by the usual 3 %; state yours (--spread 2%), or believe these runs alone (--spread measured)',
    );
  }
  if (closed) notes.push('a closed loop offers what the server lets it, so its operations were not paired');
  else if (!sameSeeds)
    notes.push('the sides have not the same seeds, so their operations were not paired: small differences stay hidden');
  if (paired) {
    const shared = opsA.reduce((sum, o) => sum + o.length, 0);
    const all = Math.max(...[a, b].map((side) => side.reduce((sum, run) => sum + run.offered, 0)));
    if (shared < 0.9 * all)
      notes.push(`only ${shared} of ${all} operations are in both cohorts; fix --warmup so that the windows agree`);
  }
  if (fewest > 1 && new Set([...a, ...b].map((run) => run.seed)).size === 1) {
    notes.push('all runs have one seed: what is found holds for that one draw of requests');
  }
  const attainment = figures[0]!;
  const throughput = figures.find((f) => f.name === 'throughput');
  if (throughput?.verdict === 'better' && attainment.difference !== null && attainment.difference < 0) {
    notes.push('throughput rose and attainment fell in these runs, the latter not shown: do not count it as a win yet');
  }
  const undecided = [...opsA, ...opsB].some((o) => o.good.includes(2));
  if (undecided) notes.push('undecided operations count as not good here');
  if (figures.some((f) => f.why?.startsWith('the runs differ more'))) {
    notes.push(
      'the runs differ among themselves by more than the spread stated or assumed, so they are believed alone',
    );
  }
  if (contract.attainment < 1 && attainment.a !== null && attainment.b !== null) {
    const side = (x: number): string => (x >= contract.attainment ? 'meets' : 'misses');
    if (side(attainment.a) !== side(attainment.b)) {
      notes.push(
        `A ${side(attainment.a)} the attainment target and B ${side(attainment.b)} it, by the shares observed`,
      );
    }
  }
  return notes;
}
