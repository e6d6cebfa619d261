/**
 * From runs to a point of the curve and its verdict. One run only steers: looked at early, such an interval passes what is
 * below target far too often. A verdict rests on replications with seeds of their own.
 */
import { replicationInterval, shareFromReplications } from '../../stats/replications.ts';
import type { CapacityVerdict, CurvePoint, Miss, Probe, Quantiles } from './types.ts';

/** Above this share of a cohort, cancelling at the deadline spares the server load it could not have served. */
export const SHED_LIMIT = 0.01;

/** Kendall's τ beyond which TTFT plainly climbs: overload shows 0.6 to 1, a slow swing of a stable queue is as often down. */
const CLIMB = 0.3;
/** And by how much it must have grown over the run. */
const GROWS = 1.5;
const STEER_CLIMB = 0.5;
const STEER_CLIMB_P = 0.01;

const percent = (x: number): string => `${(100 * x).toFixed(1)} %`;

/** A steering probe: the verdict is the side its estimate lies on. */
export function steerPoint({ request, measure: m }: Probe, target: number): CurvePoint {
  const unstable = m.trend > STEER_CLIMB && m.trendP < STEER_CLIMB_P && m.climb > GROWS;
  let verdict: CapacityVerdict;
  let because: string;
  if (m.clientBound.length > 0) {
    verdict = 'void';
    because = `the client was the bottleneck: ${m.clientBound.join('; ')}`;
  } else if (unstable) {
    verdict = 'fail';
    because = 'TTFT climbs through the run: the queue grows without bound';
  } else if (m.shed > SHED_LIMIT) {
    verdict = 'fail';
    because = `${percent(m.shed)} were cancelled at the deadline, which spares the server its overload`;
  } else {
    verdict = m.attainment >= target ? 'pass' : 'fail';
    because = 'the side its estimate lies on: one run only steers';
  }
  return {
    rate: request.rate,
    role: request.role,
    verdict,
    attainment: m.attainment,
    low: m.low,
    high: m.high,
    level: 0.95,
    effectiveN: m.effectiveN,
    goodput: m.goodput,
    throughput: m.throughput,
    ttft: m.ttft,
    tpot: m.tpot,
    offered: m.offered,
    replications: 1,
    unstable,
    shed: m.shed,
    misses: m.misses,
    because,
    why: request.why,
    elapsed: m.elapsed,
  };
}

/**
 * The verdict of a group of ≥ 2 replications. `error` is the chance allowed that it is wrong: the truth lies on one side, so
 * each bound of the interval has it to itself, and the interval's confidence is 1 − 2·error.
 */
export function confirmPoint(probes: readonly Probe[], target: number, error: number): CurvePoint {
  const level = 1 - 2 * error;
  const runs = probes.map((p) => p.measure);
  const first = probes[0]!.request;
  const effectiveN = sum(runs.map((m) => m.effectiveN));
  const share = shareFromReplications(
    runs.map((m) => m.attainment),
    { level, effectiveN },
  );
  const trend = replicationInterval(
    runs.map((m) => m.trend),
    { level },
  );
  const shed = replicationInterval(
    runs.map((m) => m.shed),
    { level },
  );
  const unstable = trend.low > CLIMB && runs.every((m) => m.climb > GROWS);
  const bound = runs.find((m) => m.clientBound.length > 0);
  let verdict: CapacityVerdict = 'undecided';
  let because = `the interval ${percent(share.low)} to ${percent(share.high)} holds the target`;
  if (bound) {
    verdict = 'void';
    because = `the client was the bottleneck: ${bound.clientBound.join('; ')}`;
  } else if (unstable) {
    verdict = 'fail';
    because = 'TTFT climbs through every replication: the queue grows without bound';
  } else if (share.high < target) {
    verdict = 'fail';
    because = `at most ${percent(share.high)} are good`;
  } else if (shed.low > SHED_LIMIT) {
    verdict = 'fail';
    because = `${percent(shed.value)} were cancelled at the deadline, which spares the server its overload`;
  } else if (share.low >= target) {
    if (shed.value > SHED_LIMIT) {
      because = `${percent(shed.value)} were cancelled at the deadline: above ${percent(SHED_LIMIT)} no rate passes`;
    } else {
      verdict = 'pass';
      because = `at least ${percent(share.low)} are good`;
    }
  }
  const throughputs = runs.map((m) => m.throughput).filter((t) => t !== null);
  return {
    rate: first.rate,
    role: 'confirm',
    verdict,
    attainment: share.value,
    low: share.low,
    high: share.high,
    level,
    effectiveN: worthOf(share.value, share.spread, runs.length, effectiveN),
    goodput: sum(runs.map((m) => m.goodput)) / runs.length,
    throughput: throughputs.length > 0 ? sum(throughputs) / throughputs.length : null,
    ttft: meanQuantiles(runs.map((m) => m.ttft)),
    tpot: meanQuantiles(runs.map((m) => m.tpot)),
    offered: sum(runs.map((m) => m.offered)),
    replications: runs.length,
    unstable,
    shed: shed.value,
    misses: pooled(runs.flatMap((m) => m.misses)),
    because,
    why: first.why,
    elapsed: sum(runs.map((m) => m.elapsed)),
  };
}

/** How many independent operations a group is worth: what its runs say of themselves, or less where they differ by more. */
function worthOf(share: number, spread: number, runs: number, effectiveN: number): number {
  if (spread === 0) return effectiveN;
  return Math.min(effectiveN, Math.max(1, (runs * share * (1 - share)) / spread ** 2));
}

/** Of each replication's quantile the mean: an estimate of that quantile, as the median of runs is not. Null if one is. */
function meanQuantiles(of: readonly Quantiles[]): Quantiles {
  const mean = (name: keyof Quantiles): number | null => {
    const values = of.map((q) => q[name]);
    return values.some((v) => v === null) ? null : sum(values as number[]) / values.length;
  };
  return { p50: mean('p50'), p90: mean('p90'), p99: mean('p99') };
}

/** Counts of several runs together, the most missed first. */
export function pooled(misses: readonly Miss[]): Miss[] {
  const by = new Map<string, Miss>();
  for (const m of misses) {
    const key = `${m.limit} ${m.class}`;
    const had = by.get(key);
    by.set(key, had ? { ...m, count: had.count + m.count, offered: had.offered + m.offered } : m);
  }
  return [...by.values()].sort((a, b) => b.count / b.offered - a.count / a.offered);
}

const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);
