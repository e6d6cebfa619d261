/** Quantiles of a cohort's columns: over measured values, and beside them over offered operations. */
import type { Boundary, CohortFold, Column } from '../core/index.ts';
import { type LogSketch, offeredQuantile, quantile, quantileInterval } from '../stats/index.ts';
import {
  type MetricName,
  type MetricReport,
  type MetricsReport,
  type OfferedReport,
  QUANTILES,
  type QuantileName,
  type SmoothnessReport,
} from './report.ts';

const COLUMN_OF: Readonly<Record<Exclude<MetricName, 'chunk_gap_ms' | 'itl_ms'>, Column>> = {
  ttft_ms: 'ttft',
  ttft_dispatched_ms: 'ttftDispatched',
  ttfa_ms: 'ttfa',
  tpot_ms: 'tpot',
  max_gap_ms: 'gap',
  latency_ms: 'latency',
  e2e_ms: 'e2e',
  e2e_dispatched_ms: 'e2eDispatched',
};

/** Under the other boundary the plain columns are from `dispatched`; the report shows TTFT and E2E from both, always. */
const FROM_SCHEDULED = { ttft_ms: 'ttftScheduled', e2e_ms: 'e2eScheduled' } as const;

const NAMES = Object.keys(QUANTILES) as QuantileName[];

/**
 * @param worth how many independent operations one operation is worth (≤ 1): it widens the quantiles' intervals, since
 * neighbours share a queue.
 */
export function metricsReport(fold: CohortFold, boundary: Boundary, worth: number): MetricsReport {
  const columns = boundary === 'scheduled' ? COLUMN_OF : { ...COLUMN_OF, ...FROM_SCHEDULED };
  const of = (name: keyof typeof COLUMN_OF): MetricReport | null => columnReport(fold, columns[name], worth);
  const exact = fold.exactness.get('exact') ?? 0;
  const inferred = fold.exactness.get('inferred') ?? 0;
  const itl = sketchReport(fold.itl);
  return {
    ttft_ms: of('ttft_ms'),
    ttft_dispatched_ms: of('ttft_dispatched_ms'),
    ttfa_ms: of('ttfa_ms'),
    tpot_ms: of('tpot_ms'),
    chunk_gap_ms: sketchReport(fold.gaps),
    itl_ms: itl && { ...itl, exactness: inferred === 0 ? 'exact' : exact === 0 ? 'inferred' : 'mixed' },
    max_gap_ms: of('max_gap_ms'),
    latency_ms: of('latency_ms'),
    e2e_ms: of('e2e_ms'),
    e2e_dispatched_ms: of('e2e_dispatched_ms'),
    smoothness: smoothnessReport(fold.columns.smoothness),
  };
}

function columnReport(fold: CohortFold, column: Column, worth: number): MetricReport | null {
  const sorted = fold.columns[column];
  const count = sorted.length;
  if (count === 0) return null;
  const effectiveN = Math.max(1, count * worth);
  const intervals = NAMES.map((name) => quantileInterval(sorted, QUANTILES[name], { effectiveN }));
  return {
    count,
    mean: mean(sorted),
    ...byName((name) => quantile(sorted, QUANTILES[name]) as number),
    max: sorted[count - 1] as number,
    ci: byName((_, i) => [intervals[i]?.low ?? null, intervals[i]?.high ?? null] as const),
    // By the count alone: how dependent the values are, the interval says.
    unsupported: NAMES.filter((name) => quantileInterval(sorted, QUANTILES[name])?.supported === false),
    offered: offeredReport(sorted, fold.censored[column], fold.censoredAbove),
  };
}

/** The same over measured values and censored operations, which rank as +∞. */
export function offeredReport(sorted: Float64Array, censored: number, longest: number): OfferedReport {
  let above: number | null = null;
  const quantiles = byName((name) => {
    const q = offeredQuantile(sorted, censored, QUANTILES[name], longest);
    if (q?.censoredAbove != null) above = q.censoredAbove;
    return q?.value ?? null;
  });
  return { count: sorted.length + censored, ...quantiles, censored_above: above };
}

function sketchReport(sketch: LogSketch): MetricReport | null {
  if (sketch.count === 0) return null;
  const unsupported = NAMES.filter((name) => !supported(sketch.count, QUANTILES[name]));
  return {
    count: sketch.count,
    mean: sketch.mean as number,
    ...byName((name) => sketch.quantile(QUANTILES[name]) as number),
    max: sketch.max as number,
    // Gaps of one stream, and of streams of one step, move together: an interval that took them as independent would lie.
    ci: null,
    unsupported,
    offered: null,
    relative_error: sketch.accuracy,
  };
}

/** Fewer than some 5 values beyond the quantile leave it to chance. */
function supported(n: number, p: number): boolean {
  return n * (1 - p) >= 5 && n * p >= 5;
}

function smoothnessReport(sorted: Float64Array): SmoothnessReport | null {
  if (sorted.length === 0) return null;
  const q = (p: number): number => quantile(sorted, p) as number;
  return {
    count: sorted.length,
    mean: mean(sorted),
    p50: q(0.5),
    p10: q(0.1),
    p5: q(0.05),
    p1: q(0.01),
    min: sorted[0] as number,
  };
}

function byName<T>(of: (name: QuantileName, index: number) => T): Record<QuantileName, T> {
  return Object.fromEntries(NAMES.map((name, i) => [name, of(name, i)])) as Record<QuantileName, T>;
}

/** Kahan–Babuška–Neumaier: the columns may be long. */
function mean(values: Float64Array): number {
  let sum = 0;
  let carry = 0;
  for (const x of values) {
    const next = sum + x;
    carry += Math.abs(sum) >= Math.abs(x) ? sum - next + x : x - next + sum;
    sum = next;
  }
  return (sum + carry) / values.length;
}
