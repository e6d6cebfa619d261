/** What a search says when it ends, found or not. */
import type { PerSecond } from '../../base/units.ts';
import { wilson } from '../../stats/binomial.ts';
import { normalQuantile } from '../../stats/normal.ts';
import { pooled } from './assess.ts';
import type { CapacityOutcome, CurvePoint, Miss, SearchEnd, SearchPlan } from './types.ts';

export interface Known {
  readonly points: readonly CurvePoint[];
  readonly bracket: { readonly low: PerSecond | null; readonly high: PerSecond | null };
  /** Confirmed by replications. */
  low: PerSecond | null;
  high: PerSecond | null;
  /** Points without load that miss the target. */
  readonly infeasible: readonly CurvePoint[];
  runs: number;
  /** A rate the client could not offer. */
  ceiling: PerSecond | null;
}

export function conclude(plan: SearchPlan, known: Known, end: SearchEnd): CapacityOutcome {
  const { points } = known;
  const atLow = points.find((p) => p.role === 'confirm' && p.rate === known.low && p.verdict === 'pass');
  return {
    end,
    low: known.low,
    high: end === 'infeasible' ? null : known.high,
    confidence: plan.confidence,
    target: plan.target,
    points,
    bracket: { ...known.bracket },
    goodputAtCapacity: atLow?.goodput ?? null,
    binding: bindingOf(known, end),
    notes: [...notesOf(plan, known, end), ...curveNotes(points)],
    runs: known.runs,
    offered: points.reduce((n, p) => n + p.offered, 0),
    elapsed: points.reduce((t, p) => t + p.elapsed, 0),
  };
}

function bindingOf(known: Known, end: SearchEnd): Miss | null {
  if (end === 'infeasible') return pooled(known.infeasible.flatMap((p) => p.misses))[0] ?? null;
  const fails = known.points.filter((p) => p.verdict === 'fail' && p.misses.length > 0);
  const confirmed = fails.filter((p) => p.role === 'confirm');
  const lowest = (confirmed.length > 0 ? confirmed : fails).reduce<CurvePoint | undefined>(
    (a, b) => (a && a.rate <= b.rate ? a : b),
    undefined,
  );
  return lowest?.misses[0] ?? null;
}

function notesOf(plan: SearchPlan, known: Known, end: SearchEnd): string[] {
  const notes: string[] = [];
  if (known.ceiling !== null) {
    notes.push(
      `The client could not offer ${rateText(known.ceiling)}: what lies beyond is unknown, and no statement about the server.`,
    );
  }
  if (end === 'above-range') notes.push(`No rate up to ${rateText(plan.maxRate)} failed; the search goes no higher.`);
  const undecided = known.points.filter((p) => p.role === 'confirm' && p.verdict === 'undecided');
  if (undecided.length > 0) {
    notes.push(
      `${undecided.map((p) => rateText(p.rate)).join(', ')}: too near capacity to be decided by so few operations; more replications or longer ones would narrow the interval.`,
    );
  }
  return notes;
}

/** What the curve shows beyond one crossing. */
export function curveNotes(points: readonly CurvePoint[]): string[] {
  const curve = curveOf(points);
  const notes: string[] = [];
  const rise = significantRise(curve);
  if (rise) {
    const [a, b] = rise;
    notes.push(
      `Attainment rises with the rate: ${percent(a.attainment)} at ${rateText(a.rate)}, ${percent(b.attainment)} at ${rateText(b.rate)}, more than chance makes. Look for cold caches, idle clocks or a warm-up that was too short; "the highest sustainable rate" is then not the end of one stretch.`,
    );
  }
  const fall = goodputFall(curve);
  if (fall) {
    const [a, b] = fall;
    notes.push(
      `Goodput peaks: ${rateText(a.goodput)} good at ${rateText(a.rate)} offered, but ${rateText(b.goodput)} at ${rateText(b.rate)}, while throughput still climbs from ${Math.round(a.throughput as number)} to ${Math.round(b.throughput as number)} tokens/s: more work, less of it in time.`,
    );
  }
  return notes;
}

/** The points of the curve, by rate; where a rate was confirmed, its steering probes give way. Void ones are left out. */
export function curveOf(points: readonly CurvePoint[]): CurvePoint[] {
  const byRate = new Map<number, CurvePoint>();
  for (const p of points) {
    if (p.verdict === 'void') continue;
    const had = byRate.get(p.rate);
    if (!had || p.effectiveN >= had.effectiveN) byRate.set(p.rate, p);
  }
  return [...byRate.values()].sort((a, b) => a.rate - b.rate);
}

/** The widest rise of attainment whose intervals are apart, all pairs together at 95 %. */
function significantRise(curve: readonly CurvePoint[]): readonly [CurvePoint, CurvePoint] | undefined {
  const pairs = (curve.length * (curve.length - 1)) / 2;
  const z = normalQuantile(1 - 0.025 / Math.max(1, pairs));
  const intervals = curve.map((p) => wilson(p.attainment, Math.max(1, p.effectiveN), 0.95, z));
  let best: readonly [CurvePoint, CurvePoint] | undefined;
  let widest = 0;
  for (let i = 0; i < curve.length; i++) {
    for (let j = i + 1; j < curve.length; j++) {
      const gap = intervals[j]!.low - intervals[i]!.high;
      if (gap > widest) {
        widest = gap;
        best = [curve[i]!, curve[j]!];
      }
    }
  }
  return best;
}

/** The peak of goodput and the lowest point beyond it, when the fall is plain and throughput has not fallen. */
function goodputFall(curve: readonly CurvePoint[]): readonly [CurvePoint, CurvePoint] | undefined {
  let best: readonly [CurvePoint, CurvePoint] | undefined;
  for (let i = 0; i < curve.length; i++) {
    for (let j = i + 1; j < curve.length; j++) {
      const a = curve[i]!;
      const b = curve[j]!;
      if (a.throughput === null || b.throughput === null || b.throughput < 1.01 * a.throughput) continue;
      if (b.high * b.rate >= a.low * a.rate || b.goodput >= 0.95 * a.goodput) continue;
      if (!best || a.goodput > best[0].goodput || (a === best[0] && b.goodput < best[1].goodput)) best = [a, b];
    }
  }
  return best;
}

const percent = (x: number): string => `${(100 * x).toFixed(1)} %`;
const rateText = (rate: number): string => `${Number(rate.toPrecision(3))} requests/s`;
