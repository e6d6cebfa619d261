/** Did the load arrive as planned? What was sent, held against the process it was drawn from, or against the trace. */
import { type CohortFold, inCohort, type RequestRecord, type Window, windowSeconds } from '../core/index.ts';
import {
  countTest,
  interArrivalTest,
  type KolmogorovSmirnov,
  kolmogorovSmirnov,
  type PlannedArrivals,
} from '../stats/arrivals-test.ts';
import type { ArrivalsReport } from './report.ts';
import { spreadOf } from './spread.ts';

/** What was planned; `undefined` process: a trace, whose own times are the plan. */
export interface PlannedLoad {
  readonly arrivals?: PlannedArrivals;
  readonly rate?: number;
  readonly sessions: boolean;
  /** The cohort was asked for by number: that is no test of the process. */
  readonly counted: boolean;
}

/** Below this p-value the arrivals are not the plan's: one honest run in a thousand is called wrong. */
const REJECT = 0.001;
/** A constant process may have this share of gaps off by more than the lag allowed. */
const OFF_SHARE = 0.01;
const LAG_MS = 2;

/** Collects the times of a cohort's arrivals: of sessions the first turn alone. */
export class ArrivalLog {
  readonly #window: Window;
  readonly scheduled: number[] = [];
  readonly dispatched: number[] = [];
  constructor(window: Window) {
    this.#window = window;
  }
  add(record: RequestRecord): void {
    const { scheduled, dispatched } = record.stamps;
    if ((record.turn ?? 0) > 0 || !inCohort(this.#window, record.operation, scheduled, record.session)) return;
    this.scheduled.push(scheduled);
    if (dispatched !== undefined) this.dispatched.push(dispatched);
  }
}

export function arrivalsReport(log: ArrivalLog, fold: CohortFold, planned: PlannedLoad): ArrivalsReport | undefined {
  const { window } = fold;
  const seconds = windowSeconds(window);
  if (window.estimated || !(seconds > 0) || !Number.isFinite(seconds) || log.scheduled.length === 0) return undefined;
  const sent = Float64Array.from(log.dispatched).sort();
  const due = Float64Array.from(log.scheduled).sort();
  const lag = spreadOf(fold.columns.sendLag) ?? null;
  const base = {
    unit: planned.sessions ? ('sessions' as const) : ('requests' as const),
    planned_rps: planned.rate ?? log.scheduled.length / seconds,
    achieved_rps: log.dispatched.length / seconds,
    lag_ms: lag,
  };
  const { arrivals, rate } = planned;
  if (!arrivals || rate === undefined) {
    const gaps = sent.length > 1 && due.length > 1 ? againstTrace(sent, due) : null;
    return {
      ...base,
      process: 'trace',
      count: { observed: sent.length, expected: due.length, p: null },
      gaps: gaps && { n: gaps.n, distance: gaps.distance, p: gaps.p },
      as_planned: sent.length === due.length && (gaps === null || gaps.p >= REJECT),
    };
  }
  // A counted cohort has its number by plan: only its spacing can be tested.
  const count = planned.counted ? null : countTest(due.length, rate, seconds, arrivals);
  const tolerance = Math.min(0.5, Math.max(1e-3, (LAG_MS * rate) / 1000));
  const gaps = interArrivalTest(sent, rate / 1000, arrivals, tolerance) ?? null;
  const spaced = gaps === null || (arrivals.process === 'constant' ? gaps.distance <= OFF_SHARE : gaps.p >= REJECT);
  return {
    ...base,
    process: arrivals.process === 'gamma' ? `gamma ${arrivals.shape}` : arrivals.process,
    count: count && { observed: count.observed, expected: count.expected, p: count.p },
    gaps: gaps && { n: gaps.n, distance: gaps.distance, p: gaps.p },
    as_planned: (count === null || count.p >= REJECT) && spaced,
  };
}

/** The gaps as sent against the gaps of the trace: two samples, as if independent, which errs to calling them equal. */
function againstTrace(sent: Float64Array, due: Float64Array): KolmogorovSmirnov {
  const gapsOf = (x: Float64Array): Float64Array =>
    Float64Array.from({ length: x.length - 1 }, (_, i) => x[i + 1]! - x[i]!).sort();
  const a = gapsOf(sent);
  const b = gapsOf(due);
  // Equal gaps differ by what a stamp is late; half a millisecond is the same gap.
  const upTo = (x: number): number => {
    let low = 0;
    let high = b.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (b[mid]! <= x) low = mid + 1;
      else high = mid;
    }
    return low / b.length;
  };
  const n = Math.max(1, Math.floor((a.length * b.length) / (a.length + b.length)));
  let distance = 0;
  for (let i = 0; i < a.length; i++) {
    const above = (i + 1) / a.length - upTo(a[i]! + LAG_MS);
    const below = upTo(a[i]! - LAG_MS) - i / a.length;
    distance = Math.max(distance, above, below);
  }
  // The tail of the one-sample statistic at the effective number of gaps.
  return { distance, p: tail(distance, n), n: a.length };
}

/** Kolmogorov's tail of a known distance: that of a sample whose one step is as far off. */
function tail(distance: number, n: number): number {
  if (distance <= 0) return 1;
  return kolmogorovSmirnov(
    Float64Array.from({ length: n }, (_, i) => (i + 0.5) / n),
    (x) => Math.min(1, x + Math.max(0, distance - 0.5 / n)),
  ).p;
}
