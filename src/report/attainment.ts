/** Attainment: the share of offered operations that are good, its interval, and what that shows of the target. */
import type { CohortFold, Contract } from '../core/index.ts';
import { clopperPearson } from '../stats/index.ts';
import type { AttainmentReport } from './report.ts';

const LEVEL = 0.95;

/** Above this share of a cohort, what was cancelled at the deadline shed load the server would have had to serve. */
export const SHED_LIMIT = 0.01;

/** Operations of the cohort that were given up at their deadline, as against those that completed after it. */
export function shedAtDeadline(fold: CohortFold): number {
  return fold.reasons.get('deadline')?.count ?? 0;
}

export function attainmentReport(fold: CohortFold, contract: Contract): AttainmentReport {
  const denominator = fold.offered - fold.excluded;
  const { good, undecided } = fold.ledger;
  const target = contract.attainment;
  const base = { denominator, target, level: LEVEL };
  if (denominator <= 0) {
    return {
      ...base,
      value: null,
      low: null,
      high: null,
      met: false,
      shown: 'neither',
      undecided: null,
      method: 'none: no operation counts',
      effective_n: null,
    };
  }
  const value = good / denominator;
  const worst = clopperPearson(good, denominator, LEVEL);
  const best = undecided === 0 ? worst : clopperPearson(good + undecided, denominator, LEVEL);
  const low = worst.low;
  const high = best.high;
  // Cancelling sheds the load that would have shown the overload: such a cohort cannot pass, whatever its share.
  const shed = shedAtDeadline(fold) > SHED_LIMIT * fold.offered;
  return {
    ...base,
    value,
    low,
    high,
    met: value >= target && !shed,
    shown: low >= target && !shed ? 'met' : high < target ? 'missed' : 'neither',
    undecided: undecided === 0 ? null : [value, (good + undecided) / denominator],
    method: 'Clopper–Pearson, taking operations as independent: too narrow near saturation',
    effective_n: denominator,
  };
}
