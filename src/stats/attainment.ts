/**
 * The interval of a share of good operations within one run.
 *
 * Neighbouring operations share a queue: they are good together and bad together. A binomial interval takes them for
 * independent, and near saturation covers the truth in 5–30 % of runs instead of 95 %. Here the sample size is divided by
 * the autocorrelation time of the outcomes *and* of what lies behind them, a latent series (TTFT, say, +∞ where it never
 * came): in a lucky run the few misses look independent, or there are none, while the latent series still shows how slowly
 * the queue forgets. The largest of several estimates is taken, and Student's t with degrees of freedom from the effective
 * size, since the variance is itself estimated.
 *
 * On M/M/1 waits at utilisation 0.5 to 0.9, n = 300 to 5,000, this covers 85–100 % at nominal 95 % (`bench/stats`). A single
 * run shorter than some ten correlation times cannot know its own error; the note then says so, and only independent
 * replications help (`replications.ts`).
 */
import { autocorrelationTime, firstOrderTime, uniformRanks } from './autocorrelation.ts';
import { wilson } from './binomial.ts';
import { studentQuantile } from './normal.ts';

export interface AttainmentInterval {
  /** Good / all, in [0, 1]; undecided operations count as not good here. */
  readonly value: number;
  /** Good and undecided / all: the upper end of the pair when operations are undecided, else equal to `value`. */
  readonly valueHigh: number;
  /** Bounds at `level`: `low` takes undecided operations as not good, `high` as good. */
  readonly low: number;
  readonly high: number;
  readonly level: number;
  readonly n: number;
  /** How many independent operations these are worth, in [1, n]. */
  readonly effectiveN: number;
  readonly method: 'latent-autocorrelation' | 'outcome-autocorrelation' | 'conservative-batches';
  /** What the reader must know before trusting the interval, if anything. */
  readonly note: string | undefined;
}

/** Below this many effective operations an interval from one run is only indicative. */
const FEW = 10;

/**
 * @param outcomes arrival-ordered: 1 good, 0 not good, 2 undecided. Operations excluded by the contract are left out.
 * @param latent the same operations' continuous series behind the outcome, any unit, +∞ allowed, no NaN.
 * @param knownTime of the same series, `latentAutocorrelationTime`: it does not depend on the outcomes, and costs the most.
 * @returns undefined when there are no operations.
 */
export function attainmentInterval(
  outcomes: ArrayLike<number>,
  latent?: ArrayLike<number>,
  level = 0.95,
  knownTime?: number,
): AttainmentInterval | undefined {
  const n = outcomes.length;
  if (n === 0) return undefined;
  let good = 0;
  let undecided = 0;
  for (let i = 0; i < n; i++) {
    if (outcomes[i] === 1) good++;
    else if (outcomes[i] === 2) undecided++;
  }
  const ownTime = autocorrelationTime(Uint8Array.from(outcomes, (x) => (x === 1 ? 1 : 0)));
  const latentTime =
    knownTime ?? (latent !== undefined && latent.length === n ? latentAutocorrelationTime(latent) : undefined);
  let effectiveN: number;
  let method: AttainmentInterval['method'];
  if (latentTime !== undefined) {
    effectiveN = n / Math.max(latentTime, ownTime ?? 1);
    method = 'latent-autocorrelation';
  } else {
    // Few spells of misses say little about how they cluster: then no more than √n batches are taken as independent.
    const cap = Math.sqrt(n) * Math.max(1, spells(outcomes) / 5);
    effectiveN = Math.min(n / (ownTime ?? 1), cap);
    method = ownTime === undefined || cap < n / ownTime ? 'conservative-batches' : 'outcome-autocorrelation';
  }
  effectiveN = Math.min(n, Math.max(1, effectiveN));
  const critical = studentQuantile((1 + level) / 2, Math.max(1, effectiveN / 2 - 1));
  const value = good / n;
  const valueHigh = (good + undecided) / n;
  return {
    value,
    valueHigh,
    low: wilson(value, effectiveN, level, critical).low,
    high: wilson(valueHigh, effectiveN, level, critical).high,
    level,
    n,
    effectiveN,
    method,
    note: noteOf(n, effectiveN, method),
  };
}

/**
 * The autocorrelation time of a latent series: the largest of its ranks', of a first-order model of them, and of the
 * series cut at its quartiles and at its 90 %, since the tail may be remembered for longer than the middle.
 */
export function latentAutocorrelationTime(latent: ArrayLike<number>): number | undefined {
  const ranks = uniformRanks(latent);
  const times = [autocorrelationTime(ranks), firstOrderTime(ranks)];
  for (const cut of [0.5, 0.75, 0.9]) times.push(autocorrelationTime(ranks.map((r) => (r < cut ? 1 : 0))));
  const known = times.filter((t) => t !== undefined);
  return known.length > 0 ? Math.max(...known) : undefined;
}

/** Runs of consecutive misses. */
function spells(outcomes: ArrayLike<number>): number {
  let count = 0;
  for (let i = 0; i < outcomes.length; i++) if (outcomes[i] !== 1 && (i === 0 || outcomes[i - 1] === 1)) count++;
  return count;
}

function noteOf(n: number, effectiveN: number, method: AttainmentInterval['method']): string | undefined {
  if (effectiveN < FEW) {
    return `neighbouring operations are so alike that these ${n} are worth about ${Math.max(1, Math.round(effectiveN))} independent ones: measure longer, or repeat with other seeds`;
  }
  if (method === 'conservative-batches') {
    return 'too few misses to tell how they cluster: the interval assumes no more than a few independent batches';
  }
  return undefined;
}
