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
  /**
   * The load is of sessions: the cohort is those that arrive in the window (or `requests` of them), with all their turns.
   */
  readonly sessions?: boolean;
  /** The window spans the whole of a finite load (a trace): it stays as planned when the load is exhausted. */
  readonly whole?: boolean;
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
  /** The session that will arrive next. */
  #nextSession = 0;

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

  /** The cohort is counted, not timed. */
  get counted(): boolean {
    return this.#plan.requests !== undefined;
  }

  /**
   * An operation is about to be offered. @returns whether it is of the cohort.
   * @param session of a load of sessions, with the turn; a session arrives with its turn 0.
   */
  offered(operation: number, scheduled: Millis, session?: number, turn = 0): boolean {
    const { warmup } = this.#plan;
    if (session !== undefined && turn === 0) this.#nextSession = session;
    if (session !== undefined && turn > 0) {
      return this.#window !== undefined && inCohort(this.#window, operation, scheduled, session);
    }
    if (!this.#window && warmup !== 'auto' && scheduled >= this.#origin + warmup)
      this.#open(this.#origin + warmup, operation);
    if (session !== undefined) this.#arrived(session, scheduled);
    return this.#window !== undefined && inCohort(this.#window, operation, scheduled, session);
  }

  /** A session arrives: it joins the cohort of a timed window, which grows session by session. */
  #arrived(session: number, scheduled: Millis): void {
    this.#nextSession = session + 1;
    const w = this.#window;
    if (!w?.sessions || this.counted || scheduled < w.start || scheduled >= w.end) return;
    const [from, to] = w.sessions;
    this.#window = { ...w, sessions: [from === to ? session : from, session + 1] };
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
    if (!w) {
      this.#window = {
        start: this.#origin,
        end: Math.max(now, this.#origin + 1),
        estimated: true,
        ...(this.#plan.sessions && { sessions: [0, this.#nextSession] }),
      };
    } else if (w.sessions && this.counted) {
      const [from, to] = w.sessions;
      this.#window = {
        ...w,
        end: Math.max(w.start + 1, Math.min(w.end, now)),
        sessions: [from, Math.max(from, Math.min(to, this.#nextSession))],
      };
    } else if (w.operations) {
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
    if (w.sessions && this.counted) return this.#nextSession >= w.sessions[1];
    return w.operations ? next >= w.operations[1] : now >= w.end;
  }

  #open(start: Millis, next: number): void {
    const { duration, requests, rate, sessions } = this.#plan;
    const at = toMicroGrid(start);
    const first = this.#nextSession;
    if (requests === undefined) {
      this.#window = {
        start: at,
        end: toMicroGrid(at + (duration ?? 30_000)),
        ...(sessions && { sessions: [first, first] }),
      };
    } else {
      const length = rate === undefined ? undefined : (1000 * requests) / rate;
      this.#window = {
        start: at,
        end: toMicroGrid(at + (length ?? 1)),
        ...(length === undefined && { estimated: true }),
        ...(sessions ? { sessions: [first, first + requests] } : { operations: [next, next + requests] }),
      };
    }
  }

  /** A counted cohort without a planned rate is as long as its offers took: told when the last one was offered. */
  lastOffered(now: Millis): void {
    const w = this.#window;
    if (w?.operations && w.estimated) this.#window = { ...w, end: Math.max(w.start + 1, toMicroGrid(now)) };
  }
}
