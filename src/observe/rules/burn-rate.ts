/**
 * Multiwindow, multi-burn-rate alerts (Google, *The Site Reliability Workbook*, ch. 5) on joint attainment. Burn rate is
 * the share of bad operations over the error budget 1 − target.
 */
import { InputError } from '../../base/errors.ts';
import type { Share } from '../../base/units.ts';

export interface Burn {
  readonly name: string;
  readonly severity: 'page' | 'ticket';
  /** Times the budget. */
  readonly multiple: number;
  /** Prometheus durations: the alert needs both windows over the threshold, so that it also ends soon. */
  readonly long: string;
  readonly short: string;
  /** Where the multiple cannot be reached: the threshold is `budget + cap × (1 − budget)`. */
  readonly cap: Share;
}

/** The workbook's three, each with what caps it on a loose target. */
export const BURNS: readonly Burn[] = [
  { name: 'Fast', severity: 'page', multiple: 14.4, long: '1h', short: '5m', cap: 0.5 },
  { name: 'Slow', severity: 'page', multiple: 6, long: '6h', short: '30m', cap: 0.25 },
  { name: 'Lasting', severity: 'ticket', multiple: 1, long: '3d', short: '6h', cap: 0 },
];

export interface Threshold extends Burn {
  /** Share of bad operations above which both windows must be. */
  readonly badShare: Share;
  /** The multiple could not be kept: `badShare / budget` is what stands for it. */
  readonly capped: boolean;
}

/**
 * The thresholds for a target. A budget of b can burn at most 1/b times: at a target of 90 % a burn of 14.4 would need
 * 144 % bad. Once the fastest cannot be reached, all three are put between the budget and everything bad (the last stays
 * at the budget), so that a faster alert never has a lower threshold than a slower one.
 * @throws InputError where the target leaves no budget, or is no target.
 */
export function thresholds(target: Share): readonly Threshold[] {
  const budget = budgetOf(target);
  const capped = BURNS.some((b) => b.multiple * budget >= 1);
  return BURNS.map((burn) => ({
    ...burn,
    capped: capped && burn.cap > 0,
    badShare: tidy(capped ? budget + burn.cap * (1 - budget) : burn.multiple * budget),
  }));
}

export function budgetOf(target: Share): Share {
  if (!(target > 0 && target < 1)) {
    throw new InputError(
      `rules: an attainment target of ${target} leaves ${target >= 1 ? 'no error budget to burn' : 'nothing to keep'}; give one between 0 and 1, like 99%`,
    );
  }
  return tidy(1 - target);
}

/** Without the noise of binary fractions: thresholds are read by people. */
const tidy = (x: number): number => Number(x.toPrecision(12));
