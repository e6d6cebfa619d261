/** Several proxies' windows as one: counts are summed, quantiles come of the merged sketches, never of each other. */
import type { Millis, PerSecond, Seconds } from '../../base/units.ts';
import { LEDGER, type LedgerClass } from '../../core/judge.ts';
import { LogSketch } from '../../stats/sketch.ts';
import type { LiveCohort, LiveQuantiles, LiveSnapshot, LiveWindow } from '../cohorts/snapshot.ts';

export interface WindowTogether {
  readonly start_s: Seconds;
  readonly end_s: Seconds;
  readonly state: LiveWindow['state'];
  readonly offered: number;
  readonly pending: number;
  readonly outcomes: Readonly<Record<LedgerClass, number>>;
  readonly attainment: { readonly low: number; readonly high: number; readonly denominator: number } | null;
  readonly goodput_rps: PerSecond | null;
  readonly oldest_waiting_ms: Millis | null;
  /** Over offered operations: those that ended without the event rank as +∞. Absent where a proxy sent no sketch. */
  readonly ttft?: Quantiles;
  readonly tpot?: Quantiles;
}

export interface Quantiles {
  readonly count: number;
  readonly p50_ms: Millis | 'inf' | null;
  readonly p99_ms: Millis | 'inf' | null;
}

const STATES: readonly LiveWindow['state'][] = ['final', 'settling', 'open'];

/** Windows of equal length that begin within half of it of each other are taken together; the last `count`, oldest first. */
export function windowsTogether(snapshots: readonly LiveSnapshot[], count: number): readonly WindowTogether[] {
  const byStart = new Map<number, LiveWindow[]>();
  for (const snapshot of snapshots) {
    for (const window of snapshot.windows) {
      const number = Math.round(window.start_s / snapshot.window_s) * snapshot.window_s;
      const found = byStart.get(number);
      if (found) found.push(window);
      else byStart.set(number, [window]);
    }
  }
  return [...byStart.entries()]
    .sort(([a], [b]) => a - b)
    .slice(-count)
    .map(([, windows]) => together(windows));
}

function together(windows: readonly LiveWindow[]): WindowTogether {
  const cohorts = windows.map((w) => w.all);
  const sum = (of: (c: LiveCohort) => number): number => cohorts.reduce((total, c) => total + of(c), 0);
  const outcomes = Object.fromEntries(LEDGER.map((name) => [name, sum((c) => c.outcomes[name])])) as Record<
    LedgerClass,
    number
  >;
  const denominator = sum((c) => c.attainment?.denominator ?? 0);
  const weighted = (side: 'low' | 'high'): number =>
    sum((c) => (c.attainment ? c.attainment[side] * c.attainment.denominator : 0)) / denominator;
  const oldest = cohorts.flatMap((c) => c.oldest_waiting_ms ?? []);
  const rates = cohorts.flatMap((c) => c.goodput_rps ?? []);
  const ttft = merged(cohorts.map((c) => c.ttft));
  const tpot = merged(cohorts.map((c) => c.tpot));
  return {
    start_s: Math.min(...windows.map((w) => w.start_s)),
    end_s: Math.max(...windows.map((w) => w.end_s)),
    state: STATES[Math.max(...windows.map((w) => STATES.indexOf(w.state)))] as LiveWindow['state'],
    offered: sum((c) => c.offered),
    pending: sum((c) => c.pending),
    outcomes,
    attainment: denominator > 0 ? { low: weighted('low'), high: weighted('high'), denominator } : null,
    goodput_rps: rates.length > 0 ? rates.reduce((a, b) => a + b, 0) : null,
    oldest_waiting_ms: oldest.length > 0 ? Math.max(...oldest) : null,
    ...(ttft && { ttft }),
    ...(tpot && { tpot }),
  };
}

function merged(all: readonly LiveQuantiles[]): Quantiles | undefined {
  const [only] = all;
  if (all.length === 1 && only) {
    const { count, p50_ms, p99_ms } = only.offered;
    return { count, p50_ms, p99_ms };
  }
  const sketches = all.map((q) => q.sketch_ms);
  if (sketches.length === 0 || sketches.some((s) => s === undefined)) return undefined;
  const [first, ...rest] = sketches.map((s) => LogSketch.from(s as NonNullable<typeof s>));
  const sum = first as LogSketch;
  for (const sketch of rest) sum.merge(sketch);
  const at = (p: number): Millis | 'inf' | null => {
    const value = sum.quantile(p);
    if (value === undefined || Number.isNaN(value)) return null;
    return value === Number.POSITIVE_INFINITY ? 'inf' : value;
  };
  return { count: sum.count, p50_ms: at(0.5), p99_ms: at(0.99) };
}
