/** What each traffic class attained of its own contract. */
import type { CohortFold, Contract } from '../core/index.ts';
import { attainmentReport } from './attainment.ts';
import type { ClassReport } from './report.ts';

export interface ClassFold {
  readonly name: string;
  readonly contract: Contract;
  readonly fold: CohortFold;
}

export function classReports(classes: readonly ClassFold[]): readonly ClassReport[] {
  return classes.map(({ name, contract, fold }) => {
    const misses: Record<string, number> = {};
    for (const [key, count] of fold.missedSets) {
      for (const limit of key.split('+')) misses[limit] = (misses[limit] ?? 0) + count;
    }
    return {
      name,
      contract,
      offered: fold.offered,
      good: fold.ledger.good,
      late: fold.ledger.late,
      unsuccessful: fold.offered - fold.ledger.good - fold.ledger.late - fold.ledger.undecided,
      undecided: fold.ledger.undecided,
      attainment: attainmentReport(fold, contract),
      misses,
    };
  });
}
