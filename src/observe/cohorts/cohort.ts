/** The running fold of one class of one arrival window: counts and mergeable sketches, bounded whatever comes. */
import type { Millis, Seconds } from '../../base/units.ts';
import { LEDGER, type LedgerClass } from '../../core/judge.ts';
import { LogSketch } from '../../stats/sketch.ts';
import type { FinalOperation } from './operation.ts';
import type { LiveCohort, LiveQuantiles, QuantileRow } from './snapshot.ts';

/** Relative accuracy of a live quantile, 1 %: half the buckets of a stored one. */
export const LIVE_ACCURACY = 0.01;

const FIGURES = ['ttft', 'tpot', 'gap', 'latency', 'e2e'] as const;
type Figure = (typeof FIGURES)[number];

/** Measured on completed operations alone: a broken stream has neither a last token nor an end of its own. */
const COMPLETED_ONLY: ReadonlySet<Figure> = new Set(['tpot', 'latency', 'e2e']);

type Sketches = Record<Figure | 'queued', LogSketch>;

export class CohortFolder {
  readonly class: string;
  #offered = 0;
  #final = 0;
  #excluded = 0;
  #attempts = 0;
  readonly #outcomes = Object.fromEntries(LEDGER.map((c) => [c, 0])) as Record<LedgerClass, number>;
  /** Made at the first final operation. */
  #sketches: Sketches | undefined;

  constructor(name: string) {
    this.class = name;
  }

  get pending(): number {
    return this.#offered - this.#final;
  }

  arrived(): void {
    this.#offered++;
  }

  final({ metrics, verdict, record }: FinalOperation): void {
    this.#final++;
    this.#outcomes[verdict.class]++;
    if (verdict.excluded) this.#excluded++;
    this.#attempts += record.attempts;
    const sketches = (this.#sketches ??= makeSketches());
    const completed = record.outcome === 'completed';
    const undecided = verdict.class === 'undecided';
    const success = verdict.class === 'good' || verdict.class === 'late' || verdict.class === 'invalid';
    const never = (!success || metrics.chunks === 0) && !undecided && !verdict.excluded;
    for (const name of FIGURES) {
      const value = metrics[name];
      if (value !== undefined && (completed || !COMPLETED_ONLY.has(name))) sketches[name].add(value);
      else if (never) sketches[name].add(Number.POSITIVE_INFINITY);
    }
    if (record.passage?.queued !== undefined) sketches.queued.add(record.passage.queued);
  }

  merge(other: CohortFolder): void {
    this.#offered += other.#offered;
    this.#final += other.#final;
    this.#excluded += other.#excluded;
    this.#attempts += other.#attempts;
    for (const c of LEDGER) this.#outcomes[c] += other.#outcomes[c];
    const from = other.#sketches;
    if (from === undefined) return;
    const into = (this.#sketches ??= makeSketches());
    for (const name of Object.keys(into) as (keyof Sketches)[]) into[name].merge(from[name]);
  }

  /** @param seconds the window's length, or of its part that has passed; undefined where there is none. */
  read(seconds: Seconds | undefined, oldestWaiting: Millis | undefined, withSketches: boolean): LiveCohort {
    const outcomes = { ...this.#outcomes };
    const denominator = this.#offered - this.#excluded;
    const perSecond = (n: number): number | null => (seconds !== undefined && seconds > 0 ? n / seconds : null);
    const sketches = this.#sketches ?? EMPTY;
    const figure = (name: keyof Sketches): LiveQuantiles => quantilesOf(sketches[name], withSketches);
    return {
      class: this.class,
      offered: this.#offered,
      pending: this.pending,
      outcomes,
      excluded: this.#excluded,
      attempts: this.#attempts,
      attainment:
        denominator > 0
          ? {
              low: outcomes.good / denominator,
              high: (outcomes.good + this.pending + outcomes.undecided) / denominator,
              denominator,
            }
          : null,
      goodput_rps: perSecond(outcomes.good),
      offered_rps: perSecond(this.#offered),
      oldest_waiting_ms: oldestWaiting ?? null,
      ttft: figure('ttft'),
      tpot: figure('tpot'),
      gap: figure('gap'),
      latency: figure('latency'),
      e2e: figure('e2e'),
      queued: figure('queued'),
    };
  }
}

function makeSketches(): Sketches {
  return Object.fromEntries(
    [...FIGURES, 'queued'].map((name) => [name, new LogSketch({ accuracy: LIVE_ACCURACY })]),
  ) as Sketches;
}

const EMPTY = makeSketches();

/** Both rows of a sketch whose +∞ are operations that never had the event. */
export function quantilesOf(sketch: LogSketch, withSketch: boolean): LiveQuantiles {
  const { count, infinite } = sketch;
  const finite = count - infinite;
  // The finite values are the lowest ranks: quantile p of them stands at p · (finite − 1) of all.
  const scale = count > 1 ? (finite - 1) / (count - 1) : 1;
  return {
    measured: finite > 0 ? rowOf(sketch, finite, scale) : rowOf(EMPTY.ttft, 0, 1),
    offered: rowOf(sketch, count, 1),
    ...(withSketch && { sketch_ms: sketch.toJSON() }),
  };
}

function rowOf(sketch: LogSketch, count: number, scale: number): QuantileRow {
  const [p50, p90, p99] = sketch.quantiles([0.5 * scale, 0.9 * scale, 0.99 * scale]).map(shown);
  return { count, p50_ms: p50 ?? null, p90_ms: p90 ?? null, p99_ms: p99 ?? null };
}

function shown(x: number | undefined): number | 'inf' | null {
  if (x === undefined) return null;
  return x === Number.POSITIVE_INFINITY ? 'inf' : Number(x.toPrecision(6));
}
