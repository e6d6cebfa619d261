/**
 * Runs a workload against an engine. Offers go out when the workload says, whatever became of earlier ones; every offered
 * operation ends in exactly one outcome; the load goes on outside the cohort until every operation of the cohort is final.
 */
import { type Millis, type PerSecond, toMicroGrid } from '../base/units.ts';
import { foldAttempts } from '../core/attempts.ts';
import type { Cancel, Clock } from '../core/clock.ts';
import type { Window } from '../core/cohort.ts';
import type { Contract, ContractFor } from '../core/contract.ts';
import type { Ending, Engine } from '../core/engine.ts';
import { judgeRecord } from '../core/judge.ts';
import type { RequestRecord } from '../core/record.ts';
import { Recorder } from '../core/recorder.ts';
import type { Offer, RequestSpec, Workload } from '../core/request.ts';
import type { Sink } from '../core/sink.ts';
import { LogSketch } from '../stats/sketch.ts';
import { backoffOf, mayRetry, NO_RETRY, type RetryPlan } from './retry.ts';
import { type WindowPlan, WindowPlanner } from './window.ts';

export interface DrivePlan {
  readonly contract: Contract;
  /** Contracts of traffic classes that have their own. */
  readonly contractFor?: ContractFor;
  readonly window: WindowPlan;
  readonly seed: number;
  /** Operations in flight beyond which an offer becomes `unsent`, never silence. Unbounded when absent. */
  readonly maxInFlight?: number;
  readonly retry?: RetryPlan;
  /** Keep offering outside the cohort until it is final. On by default. */
  readonly coolDown?: boolean;
}

export interface Progress {
  readonly elapsed: Millis;
  readonly phase: 'warm-up' | 'measuring' | 'cool-down' | 'stopping';
  readonly window?: Window;
  readonly offered: number;
  readonly inFlight: number;
  readonly ended: number;
  /** Of the operations ended, warm-up included: good under the contract, and those of the cohort. */
  readonly good: number;
  readonly cohort: { readonly offered: number; readonly ended: number; readonly good: number };
  readonly ttft: { readonly p50?: Millis; readonly p99?: Millis };
}

export interface OpenOperation {
  readonly operation: number;
  readonly scheduled: Millis;
  readonly class: string;
  readonly session?: number;
  readonly turn?: number;
}

export interface DriveResult {
  readonly window: Window;
  readonly offered: number;
  /** Attempts sent, retries included. */
  readonly attempts: number;
  /** Stale sockets that were re-attempted. */
  readonly stale: number;
  /** Of the cohort, operations never sent because of the client's own limit. */
  readonly unsent: number;
  readonly maxInFlight: number;
  /** Records that found the sink full and were dropped. */
  readonly dropped: number;
  readonly stopped: 'finished' | 'stopped' | 'aborted';
  /** Achieved rate of arrivals over the window. */
  readonly offeredRate: PerSecond;
}

export interface Drive {
  readonly done: Promise<DriveResult>;
  /** Ends arrivals; the cohort is what was offered until now, and is still observed to its end. */
  stop(): void;
  /** Ends everything now: what is open is undecided. */
  abort(): void;
  progress(): Progress;
  open(): readonly OpenOperation[];
  readonly window: Window | undefined;
}

/** Room to plan the first arrivals before the first is due. */
const LEAD: Millis = 20;

export function drive(workload: Workload, engine: Engine, clock: Clock, plan: DrivePlan, sink: Sink): Drive {
  return new Driver(workload, engine, clock, plan, sink);
}

interface Operation {
  readonly spec: RequestSpec;
  readonly contract: Contract;
  readonly scheduled: Millis;
  readonly cohort: boolean;
  readonly records: RequestRecord[];
  attempt: Attempt | undefined;
  cancelAttempt: Cancel;
  cancelTimer: Cancel;
  stale: boolean;
  retries: number;
}

/** A recorder that says when its attempt has ended. */
class Attempt extends Recorder {
  readonly #onEnd: (t: Millis) => void;
  constructor(spec: RequestSpec, scheduled: Millis, onEnd: (t: Millis) => void) {
    super(spec, scheduled);
    this.#onEnd = onEnd;
  }
  override ended(t: Millis, ending: Ending): void {
    super.ended(t, ending);
    this.#onEnd(t);
  }
}

const nothing = (): void => {};

class Driver implements Drive {
  readonly done: Promise<DriveResult>;
  readonly #workload: Workload;
  readonly #engine: Engine;
  readonly #clock: Clock;
  readonly #plan: DrivePlan;
  readonly #sink: Sink;
  readonly #origin: Millis;
  readonly #planner: WindowPlanner;
  readonly #open = new Map<number, Operation>();
  readonly #planned = new Set<Cancel>();
  readonly #ttft = new LogSketch();
  #resolve!: (result: DriveResult) => void;
  #exhausted = false;
  #stopping = false;
  #how: 'stopped' | 'aborted' = 'stopped';
  #ended: DriveResult['stopped'] | undefined;
  #next = 0;
  #offered = 0;
  #final = 0;
  #good = 0;
  #cohortOffered = 0;
  /** Turns of the cohort's sessions that wait for their think time to pass. */
  #cohortPending = 0;
  #cohortFinal = 0;
  #cohortGood = 0;
  #attempts = 0;
  #stale = 0;
  #unsent = 0;
  #dropped = 0;
  #maxInFlight = 0;
  #cancelWatch: Cancel | undefined;

  constructor(workload: Workload, engine: Engine, clock: Clock, plan: DrivePlan, sink: Sink) {
    this.#workload = workload;
    this.#engine = engine;
    this.#clock = clock;
    this.#plan = plan;
    this.#sink = sink;
    this.#origin = toMicroGrid(clock.now() + LEAD);
    this.#planner = new WindowPlanner(plan.window, this.#origin);
    this.done = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    this.#pull();
    this.#watchWindow();
  }

  get window(): Window | undefined {
    return this.#planner.window;
  }

  stop(): void {
    if (this.#stopping || this.#ended) return;
    this.#stopping = true;
    for (const cancel of this.#planned) cancel();
    this.#planned.clear();
    this.#cohortPending = 0;
    this.#planner.stop(this.#clock.now(), this.#next);
    this.#checkEnd();
  }

  abort(): void {
    if (this.#ended) return;
    this.stop();
    this.#how = 'aborted';
    const now = this.#clock.now();
    for (const op of [...this.#open.values()]) this.#giveUp(op, now, 'undecided', 'stopped');
    this.#finish('aborted');
  }

  open(): readonly OpenOperation[] {
    return Array.from(this.#open.values(), ({ spec, scheduled }) => ({
      operation: spec.operation,
      scheduled,
      class: spec.class,
      ...(spec.session !== undefined && { session: spec.session }),
      ...(spec.turn !== undefined && { turn: spec.turn }),
    }));
  }

  progress(): Progress {
    const window = this.#planner.window;
    const now = this.#clock.now();
    const p50 = this.#ttft.quantile(0.5);
    const p99 = this.#ttft.quantile(0.99);
    return {
      elapsed: Math.max(0, now - this.#origin),
      phase: this.#stopping
        ? 'stopping'
        : !window || now < window.start
          ? 'warm-up'
          : this.#planner.closed(now, this.#next)
            ? 'cool-down'
            : 'measuring',
      ...(window && { window }),
      offered: this.#offered,
      inFlight: this.#open.size,
      ended: this.#final,
      good: this.#good,
      cohort: { offered: this.#cohortOffered, ended: this.#cohortFinal, good: this.#cohortGood },
      ttft: { ...(p50 !== undefined && { p50 }), ...(p99 !== undefined && { p99 }) },
    };
  }

  /** Plans the workload's next arrival. One is planned at a time, so an endless workload needs no memory. */
  #pull(): void {
    for (;;) {
      const offer = this.#workload.next();
      if (!offer) {
        this.#exhausted = true;
        return;
      }
      this.#planOffer(offer, true);
      if (offer.at > 0) return; // a closed loop opens all its slots at once
    }
  }

  #planOffer(offer: Offer, pull: boolean, pending = 0): void {
    const scheduled = toMicroGrid(this.#origin + offer.at);
    this.#cohortPending += pending;
    const cancel = this.#clock.at(scheduled, () => {
      this.#planned.delete(cancel);
      this.#cohortPending -= pending;
      this.#launch(offer, scheduled);
      if (pull && offer.at > 0 && !this.#stopping && !this.#ended) this.#pull(); // drawing the next one delays none
    });
    this.#planned.add(cancel);
  }

  #launch({ spec, unsent }: Offer, scheduled: Millis): void {
    if (this.#stopping || this.#ended) return;
    const cohort = this.#planner.offered(spec.operation, scheduled, spec.session, spec.turn);
    if (!cohort && this.#plan.coolDown === false && this.#planner.closed(scheduled, this.#next)) {
      this.#checkEnd();
      return;
    }
    this.#next = Math.max(this.#next, spec.operation + 1);
    this.#offered++;
    if (cohort) {
      this.#cohortOffered++;
      this.#planner.lastOffered(scheduled);
      this.#watchWindow();
    }
    const op: Operation = {
      spec,
      contract: this.#plan.contractFor?.(spec.class) ?? this.#plan.contract,
      scheduled,
      cohort,
      records: [],
      attempt: undefined,
      cancelAttempt: nothing,
      cancelTimer: nothing,
      stale: false,
      retries: 0,
    };
    const full = this.#plan.maxInFlight !== undefined && this.#open.size >= this.#plan.maxInFlight;
    this.#open.set(spec.operation, op);
    this.#maxInFlight = Math.max(this.#maxInFlight, this.#open.size);
    if (unsent !== undefined) {
      this.#giveUp(op, this.#clock.now(), 'unsent', unsent);
      return;
    }
    if (full) {
      if (cohort) this.#unsent++;
      this.#giveUp(op, this.#clock.now(), 'unsent', 'client-limit');
      return;
    }
    op.cancelTimer = this.#clock.at(scheduled + op.contract.deadline, () => this.#pastDeadline(op));
    this.#begin(op, scheduled);
  }

  #begin(op: Operation, scheduled: Millis): void {
    const spec = op.records.length === 0 ? op.spec : { ...op.spec, attempt: op.records.length };
    this.#attempts++;
    op.attempt = new Attempt(spec, scheduled, (t) => this.#attemptEnded(op, t));
    op.cancelAttempt = this.#engine.submit(spec, op.attempt);
  }

  /** Deadlines run from the contract's start; from `dispatched` it may be later than planned. */
  #pastDeadline(op: Operation): void {
    if (op.contract.boundary === 'dispatched') {
      const dispatched = op.records[0]?.stamps.dispatched ?? op.attempt?.dispatchedAt ?? this.#clock.now();
      const due = dispatched + op.contract.deadline;
      if (due > this.#clock.now()) {
        op.cancelTimer = this.#clock.at(due, () => this.#pastDeadline(op));
        return;
      }
    }
    this.#giveUp(op, this.#clock.now(), 'timed-out', 'deadline');
  }

  #attemptEnded(op: Operation, t: Millis): void {
    const record = this.#take(op);
    if (!record) return;
    if (record.reason === 'stale-connection' && !op.stale) {
      op.stale = true;
      this.#stale++;
      this.#begin(op, t);
      return;
    }
    const retry = this.#plan.retry ?? NO_RETRY;
    if (op.retries < retry.retries && mayRetry(record) && !this.#ended) {
      op.retries++;
      const due = toMicroGrid(t + backoffOf(retry, this.#plan.seed, op.spec.operation, op.retries));
      if (due < op.scheduled + op.contract.deadline) {
        op.cancelAttempt = this.#clock.at(due, () => this.#begin(op, due));
        return;
      }
    }
    this.#finalise(op, t);
  }

  #giveUp(op: Operation, t: Millis, outcome: 'timed-out' | 'cancelled' | 'unsent' | 'undecided', reason: string): void {
    op.cancelAttempt();
    if (!op.attempt && (op.records.length === 0 || outcome === 'undecided')) {
      // Never sent, or cut while waiting for a retry: an attempt of its own says how the operation stood.
      op.attempt = new Attempt(
        { ...op.spec, attempt: op.records.length },
        op.records.length === 0 ? op.scheduled : t,
        nothing,
      );
    }
    op.attempt?.giveUp(t, outcome, reason);
    this.#take(op);
    this.#finalise(op, t);
  }

  /** Moves the finished attempt's record to the operation. */
  #take(op: Operation): RequestRecord | undefined {
    const record = op.attempt?.record();
    op.attempt = undefined;
    op.cancelAttempt = nothing;
    if (record) op.records.push(record);
    return record;
  }

  #finalise(op: Operation, t: Millis): void {
    if (!this.#open.delete(op.spec.operation)) return;
    op.cancelTimer();
    for (const record of op.records) {
      if (this.#sink.full) this.#dropped++;
      else this.#sink.add(record);
    }
    this.#final++;
    const folded = foldAttempts(op.records);
    const { metrics, verdict } = judgeRecord(folded, op.contract);
    const good = verdict.class === 'good';
    if (good) this.#good++;
    if (op.cohort) {
      this.#cohortFinal++;
      if (good) this.#cohortGood++;
    }
    if (metrics.ttft !== undefined) this.#ttft.add(metrics.ttft);
    this.#planner.ended(t, t - op.scheduled, this.#next);
    this.#watchWindow();
    if (!this.#stopping && !this.#ended) {
      const ok = folded.outcome === 'completed';
      for (const offer of this.#workload.ended(op.spec.operation, t - this.#origin, ok)) {
        const next = op.cohort && offer.spec.session !== undefined && offer.spec.session === op.spec.session;
        this.#planOffer(offer, false, next ? 1 : 0); // the session's next turn: the cohort is not final without it
      }
    }
    this.#checkEnd();
  }

  /** The window's end passes by time, also when nothing arrives then. */
  #watchWindow(): void {
    const window = this.#planner.window;
    if (!window || this.#planner.counted || this.#cancelWatch) return;
    this.#cancelWatch = this.#clock.at(window.end, () => this.#checkEnd());
  }

  #checkEnd(): void {
    if (this.#ended) return;
    const cohortOpen = this.#cohortOffered - this.#cohortFinal + this.#cohortPending;
    if (this.#stopping) {
      if (this.#open.size === 0 || (cohortOpen === 0 && this.#cohortOffered > 0)) this.#finish(this.#how);
      return;
    }
    if (cohortOpen === 0 && this.#planner.closed(this.#clock.now(), this.#next)) this.#finish('finished');
    else if (this.#exhausted && this.#planned.size === 0 && this.#open.size === 0) {
      if (!this.#plan.window.whole) this.#planner.stop(this.#clock.now(), this.#next);
      this.#finish('finished');
    }
  }

  #finish(how: DriveResult['stopped']): void {
    if (this.#ended) return;
    this.#ended = how;
    this.#cancelWatch?.(); // a planned look at the window's end would keep a process alive
    for (const cancel of this.#planned) cancel();
    this.#planned.clear();
    const now = this.#clock.now();
    // What is still in flight is outside the cohort: cool-down load that has done its work.
    for (const op of [...this.#open.values()]) this.#giveUp(op, now, 'cancelled', 'run-ended');
    const window = this.#planner.window ?? {
      start: this.#origin,
      end: Math.max(now, this.#origin + 1),
      estimated: true,
    };
    this.#resolve({
      window,
      offered: this.#offered,
      attempts: this.#attempts,
      stale: this.#stale,
      unsent: this.#unsent,
      maxInFlight: this.#maxInFlight,
      dropped: this.#dropped,
      stopped: how,
      offeredRate: (1000 * this.#cohortOffered) / (window.end - window.start),
    });
  }
}
