/** Attainment: the share of offered operations that are good, its interval, and what that shows of the target. */
import type { CohortFold, Contract } from '../core/index.ts';
import { type AttainmentInterval, attainmentInterval } from '../stats/attainment.ts';
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
  const target = contract.attainment;
  const interval = attainmentInterval(fold.good, fold.latent, LEVEL);
  if (!interval) {
    return {
      denominator,
      target,
      level: LEVEL,
      value: null,
      low: null,
      high: null,
      met: false,
      shown: 'neither',
      undecided: null,
      method: 'none: no operation counts',
      method_note: null,
      effective_n: null,
    };
  }
  const { value, valueHigh, low, high } = interval;
  // Cancelling sheds the load that would have shown the overload: such a cohort cannot pass, whatever its share.
  const shed = shedAtDeadline(fold) > SHED_LIMIT * fold.offered;
  return {
    denominator,
    target,
    level: LEVEL,
    value,
    low,
    high,
    met: value >= target && !shed,
    shown: low >= target && !shed ? 'met' : high < target ? 'missed' : 'neither',
    undecided: fold.ledger.undecided === 0 ? null : [value, valueHigh],
    method: METHOD[interval.method],
    method_note: interval.note ?? null,
    effective_n: interval.effectiveN,
  };
}

const METHOD: Readonly<Record<AttainmentInterval['method'], string>> = {
  'latent-autocorrelation':
    'neighbours share a queue: sample size divided by the autocorrelation time of TTFT and outcomes',
  'outcome-autocorrelation': 'neighbours share a queue: sample size divided by the autocorrelation time of outcomes',
  'conservative-batches': 'neighbours share a queue: a few batches taken as independent',
};
