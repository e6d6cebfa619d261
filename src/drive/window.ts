/**
 * When the measurement begins and ends. Warm-up lasts as long as the user says, or, unsaid, at least one p95 E2E of the
 * first operations: long enough for the batch to have filled as it will stay.
 */
import { type Millis, type PerSecond, toMicroGrid } from '../base/units.ts';
import { inCohort, type Window } from '../core/cohort.ts';
import { quantileOfUnsorted } from './ordered.ts';

export interface WindowPlan {
  /** Warm-up from the first possible arrival, or `auto`. */
  readonly warmup: Millis | 'auto';
  /** Length of the window; or else the number of operations of the cohort. */
  readonly duration?: Millis;
  readonly requests?: number;
  /** Planned offers a second, where the load has one (a closed loop has none). */
  readonly rate?: PerSecond;
}

/** How many of the first operations an automatic warm-up waits for: five seconds' worth, between 5 and 20. */
export function warmupSample(rate: PerSecond | undefined): number {
  return Math.max(5, Math.min(20, Math.ceil((rate ?? 4) * 5)));
}

export class WindowPlanner {
  readonly #plan: WindowPlan;
  readonly #origin: Millis;
  readonly #sample: number;
  #early: Millis[] = [];
  #window: Window | undefined;

  constructor(plan: WindowPlan, origin: Millis) {
    this.#plan = plan;
    this.#origin = origin;
    this.#sample = warmupSample(plan.rate);
    // A set warm-up fixes the window in time at once; counted cohorts begin at the first offer after it.
    if (plan.warmup !== 'auto' && plan.requests === undefined) this.#open(origin + plan.warmup, 0);
  }

  /** The window, once it is known. */
  get window(): Window | undefined {
    return this.#window;
  }

  /** An operation is about to be offered. @returns whether it is of the cohort. */
  offered(operation: number, scheduled: Millis): boolean {
    const { warmup } = this.#plan;
    if (!this.#window && warmup !== 'auto' && scheduled >= this.#origin + warmup)
      this.#open(this.#origin + warmup, operation);
    return this.#window !== undefined && inCohort(this.#window, operation, scheduled);
  }

  /** An operation ended `e2e` after it was scheduled. @param next the operation that will be offered next. */
  ended(now: Millis, e2e: Millis, next: number): void {
    if (this.#window || this.#plan.warmup !== 'auto') return;
    this.#early.push(e2e);
    if (this.#early.length < this.#sample) return;
    const p95 = quantileOfUnsorted(this.#early, 0.95);
    if (now - this.#origin >= p95) this.#open(now, next);
  }

  /**
   * The user stopped the run: the cohort is what was offered until now. Without a window yet it is everything offered.
   */
  stop(now: Millis, next: number): void {
    const w = this.#window;
    if (!w) this.#window = { start: this.#origin, end: Math.max(now, this.#origin + 1), estimated: true };
    else if (w.operations) {
      const from = w.operations[0];
      this.#window = {
        ...w,
        end: Math.max(w.start + 1, Math.min(w.end, now)),
        operations: [from, Math.max(from, Math.min(w.operations[1], next))],
      };
    } else this.#window = { ...w, end: Math.max(w.start + 0.001, Math.min(w.end, now)) };
  }

  /** True once no further offer can be of the cohort. */
  closed(now: Millis, next: number): boolean {
    const w = this.#window;
    if (!w) return false;
    return w.operations ? next >= w.operations[1] : now >= w.end;
  }

  #open(start: Millis, next: number): void {
    const { duration, requests, rate } = this.#plan;
    const at = toMicroGrid(start);
    if (requests === undefined) this.#window = { start: at, end: toMicroGrid(at + (duration ?? 30_000)) };
    else {
      const length = rate === undefined ? undefined : (1000 * requests) / rate;
      this.#window = {
        start: at,
        end: toMicroGrid(at + (length ?? 1)),
        ...(length === undefined && { estimated: true }),
        operations: [next, next + requests],
      };
    }
  }

  /** A counted cohort without a planned rate is as long as its offers took: told when the last one was offered. */
  lastOffered(now: Millis): void {
    const w = this.#window;
    if (w?.operations && w.estimated) this.#window = { ...w, end: Math.max(w.start + 1, toMicroGrid(now)) };
  }
}
