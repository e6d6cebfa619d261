/** A figure of a comparison, from what is known of it on each side to what may be said of it. */
import { ASSUMED_SPREAD, type Effect, effectOf, type Grounds } from './compare-stats.ts';

export type FigureVerdict =
  | 'better'
  | 'worse'
  /** Conclusive grounds, and no difference beyond chance. Never: "the same". */
  | 'not shown'
  /** One run a side without a stated spread: the runs differ; of the systems nothing is said. */
  | 'differs between these runs'
  /** A throughput gain while attainment got worse. */
  | 'costs attainment'
  | 'undefined';

export interface Figure {
  /** `attainment`, `goodput`, `throughput`, or metric and statistic: `ttft.p99`. */
  readonly name: string;
  readonly unit: 'share' | 'requests/s' | 'tokens/s' | 'ms';
  readonly better: 'high' | 'low';
  /** Mean over the runs of each side; null where undefined, or infinite (see `why`). */
  readonly a: number | null;
  readonly b: number | null;
  /** B − A in the unit, and its interval; each figure's own, not corrected for their number. */
  readonly difference: number | null;
  readonly low: number | null;
  readonly high: number | null;
  /** B / A − 1 and its interval; null for attainment. */
  readonly relative: number | null;
  readonly relative_low: number | null;
  readonly relative_high: number | null;
  readonly p: number | null;
  /** After the correction for the number of figures: a claim is made at 1 − level. Null where it was not tested. */
  readonly p_adjusted: number | null;
  readonly verdict: FigureVerdict;
  readonly grounds: Grounds | null;
  readonly method: string | null;
  /** Which operations it is taken over: all offered (those that never had it rank as +∞), or those measured. */
  readonly population: 'offered' | 'measured' | 'window';
  /** Spread of one run about its side, as these runs show it: relative, of attainment absolute. */
  readonly observed_spread: number | null;
  /** Its name's numbers are those of this figure, so it was not tested again. */
  readonly same_as: string | null;
  readonly why: string | null;
}

export interface Draft {
  readonly name: string;
  readonly unit: Figure['unit'];
  readonly better: Figure['better'];
  readonly population: Figure['population'];
  readonly weight: number;
  readonly a: readonly (number | undefined)[];
  readonly b: readonly (number | undefined)[];
  readonly noise: readonly number[];
  readonly scale: 'relative' | 'absolute';
  readonly spread: number | undefined;
  readonly why?: string;
  /** Shown, but never called better or worse. */
  readonly descriptive?: boolean;
  readonly same?: string;
}

export function effectOfDraft(
  draft: Draft,
  { paired, assumed }: { readonly paired: boolean; readonly assumed: boolean },
  level: number,
): Effect | undefined {
  const { a, b, scale, noise, spread } = draft;
  if (a.length === 0 || b.length === 0) return undefined;
  const all = [...a, ...b];
  if (!all.every((x) => x !== undefined && Number.isFinite(x) && (scale === 'absolute' || x > 0))) return undefined;
  return effectOf(
    {
      a: a as number[],
      b: b as number[],
      paired,
      scale,
      noise,
      ...(spread !== undefined && { spread, ...(assumed && { assumedRuns: ASSUMED_SPREAD.runs }) }),
    },
    level,
  );
}

export function figureOf(
  draft: Draft,
  effect: Effect | undefined,
  p: number | undefined,
  rule: { alpha: number; barred: boolean },
): Figure {
  const { name, unit, better, population } = draft;
  const [a, b] = [sideMean(draft.a), sideMean(draft.b)];
  const base = { name, unit, better, a, b, population, same_as: draft.same ?? null };
  if (!effect || a === null || b === null) {
    const infinite = [...draft.a, ...draft.b].some((x) => x === Number.POSITIVE_INFINITY);
    return {
      ...base,
      ...NOTHING,
      verdict: draft.same === undefined ? 'undefined' : 'not shown',
      why:
        draft.same !== undefined
          ? 'equal on every operation'
          : infinite
            ? 'so many operations ended without it that this quantile is infinite; see attainment'
            : (draft.why ?? 'not known in every run'),
    };
  }
  const isRelative = draft.scale === 'relative';
  const difference = b - a;
  // The interval's ends as distances from its middle, laid about the difference of the means shown.
  const at = (x: number): number =>
    isRelative ? difference + a * (Math.expm1(x) - Math.expm1(effect.value)) : difference + (x - effect.value);
  const asShare = (x: number): number | null =>
    isRelative ? Math.expm1(x) : name === 'attainment' || a === 0 ? null : x / a;
  const isApart = effect.low > 0 || effect.high < 0;
  const conclusive = effect.grounds !== 'single' && !draft.descriptive && !rule.barred;
  const improved = better === 'high' ? effect.value > 0 : effect.value < 0;
  const verdict: FigureVerdict =
    conclusive && p !== undefined
      ? p <= rule.alpha
        ? improved
          ? 'better'
          : 'worse'
        : 'not shown'
      : effect.grounds === 'single' && isApart
        ? 'differs between these runs'
        : 'not shown';
  return {
    ...base,
    difference,
    low: at(effect.low),
    high: at(effect.high),
    relative: asShare(effect.value),
    relative_low: asShare(effect.low),
    relative_high: asShare(effect.high),
    p: effect.p,
    p_adjusted: p ?? null,
    verdict,
    grounds: effect.grounds,
    method: effect.method,
    observed_spread: effect.observedSpread ?? null,
    why:
      draft.why ??
      (effect.spreadExceeded
        ? 'the runs differ more than the spread stated or assumed, so what they show was taken'
        : null),
  };
}

const NOTHING = {
  difference: null,
  low: null,
  high: null,
  relative: null,
  relative_low: null,
  relative_high: null,
  p: null,
  p_adjusted: null,
  grounds: null,
  method: null,
  observed_spread: null,
} as const;

function sideMean(values: readonly (number | undefined)[]): number | null {
  if (values.length === 0 || values.some((x) => x === undefined || !Number.isFinite(x))) return null;
  return mean(values as number[]);
}

function mean(x: readonly number[]): number {
  return x.reduce((sum, v) => sum + v, 0) / x.length;
}
