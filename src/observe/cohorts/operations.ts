/**
 * Attempts grouped into operations, and the moment each is final: at success, at its deadline, or when its attempts are
 * exhausted. Who watches traffic cannot know that no retry will come, so an operation whose callers name it (by a key, or by
 * its trace) waits a while for another attempt; one without a name is final with its only attempt.
 */
import { type Millis, toMicroGrid } from '../../base/units.ts';
import { foldAttempts } from '../../core/attempts.ts';
import type { ContractFor } from '../../core/contract.ts';
import type { Ending } from '../../core/engine.ts';
import { judgeRecord } from '../../core/judge.ts';
import type { Outcome } from '../../core/outcome.ts';
import type { Passage, RequestRecord } from '../../core/record.ts';
import { Recorder } from '../../core/recorder.ts';
import type { RequestSpec } from '../../core/request.ts';
import type { GroupedBy, InFlight, OperationListener, TraceContext } from './operation.ts';

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

export interface OperationsOptions {
  readonly contractFor: ContractFor;
  readonly listeners: readonly OperationListener[];
  /** Every attempt's record as soon as it has ended. */
  readonly record: (record: RequestRecord) => void;
  /** How long a named operation whose attempt failed waits for another, default 10 s: SDKs back off for up to 8 s. */
  readonly retryWindow?: Millis;
  /** Named operations waiting at once; beyond it the oldest is final at once. Default 10,000. */
  readonly mostWaiting?: number;
}

/** Who asks. */
export interface Caller {
  readonly at: Millis;
  readonly class: string;
  readonly tenant: string;
  readonly name?: OperationName;
  /** Known to be no retry: an operation of its name that still waits for one has had its last attempt. */
  readonly first?: boolean;
  readonly trace?: TraceContext;
}

/** What names an operation. By a trace only attempts one after another are joined: a trace may hold many operations. */
export interface OperationName {
  readonly by: Exclude<GroupedBy, 'none'>;
  readonly value: string;
}

/** One attempt under way. */
export interface Attempt {
  readonly operation: Operation;
  readonly spec: Mutable<RequestSpec>;
  readonly recorder: Recorder;
  /** Filled in while it goes. */
  readonly passage: Mutable<Passage>;
  /** False once it has ended or been given up: what follows is not recorded. */
  readonly isOpen: boolean;
}

export interface OpenState {
  readonly operation: number;
  readonly attempt: number;
  readonly scheduled: Millis;
  readonly class: string;
  readonly dispatched?: Millis;
}

class Operation implements InFlight {
  readonly operation: number;
  readonly at: Millis;
  readonly class: string;
  readonly tenant: string;
  readonly name: OperationName | undefined;
  readonly trace: TraceContext | undefined;
  readonly deadline: Millis;
  readonly open = new Set<OpenAttempt>();
  readonly ended: RequestRecord[] = [];
  attempts = 0;
  outcome: 'open' | 'succeeded' | 'over' = 'open';
  waitingSince: Millis | undefined;

  constructor(operation: number, caller: Caller, deadline: Millis) {
    this.operation = operation;
    this.at = toMicroGrid(caller.at);
    this.class = caller.class;
    this.tenant = caller.tenant;
    this.name = caller.name;
    this.trace = caller.trace;
    this.deadline = deadline;
  }

  get hasOutput(): boolean {
    for (const attempt of this.open) if (attempt.recorder.hasOutput) return true;
    return this.ended.some((record) => record.timeline.length > 0);
  }
}

class OpenAttempt implements Attempt {
  readonly operation: Operation;
  readonly spec: Mutable<RequestSpec>;
  readonly recorder: Recorder;
  readonly passage: Mutable<Passage> = {};
  isOpen = true;

  constructor(operation: Operation, at: Millis) {
    this.operation = operation;
    this.spec = {
      operation: operation.operation,
      attempt: operation.attempts++,
      class: operation.class,
      inputTokens: 0,
      outputTokens: 0,
      choices: 1,
      stream: false,
      ignoreEos: false,
    };
    this.recorder = new Recorder(this.spec, at);
  }
}

/** HTTP statuses that no client tries again: the request itself is at fault. */
const FINAL_STATUS = /^http-4(?!08|09|25|29)\d\d$/;

/** Outcomes that a passed deadline changes nothing about: a completed one is judged by its E2E. */
const DECIDED: ReadonlySet<Outcome> = new Set(['completed', 'timed-out', 'undecided']);

export class Operations {
  readonly #options: OperationsOptions;
  readonly #retryWindow: Millis;
  readonly #mostWaiting: number;
  readonly #open = new Set<Operation>();
  readonly #named = new Map<string, Operation>();
  readonly #waiting = new Set<Operation>();
  #offered = 0;
  #listenerFailures = 0;

  constructor(options: OperationsOptions) {
    this.#options = options;
    this.#retryWindow = options.retryWindow ?? 10_000;
    this.#mostWaiting = options.mostWaiting ?? 10_000;
  }

  get offered(): number {
    return this.#offered;
  }
  get listenerFailures(): number {
    return this.#listenerFailures;
  }
  /** Operations that are not final. */
  get inFlight(): ReadonlySet<InFlight> {
    return this.#open;
  }

  /** A request came: a further attempt of an operation under way, or a new operation. */
  begin(caller: Caller): Attempt {
    const key = caller.name && `${caller.name.by} ${caller.name.value}`;
    let known = key === undefined ? undefined : this.#named.get(key);
    if (caller.first && known !== undefined) {
      if (known.open.size === 0) this.#final(known);
      known = undefined;
    }
    if (known !== undefined && (caller.name?.by !== 'trace' || known.open.size === 0)) {
      known.waitingSince = undefined;
      this.#waiting.delete(known);
      const again = new OpenAttempt(known, Math.max(known.at, caller.at));
      known.open.add(again);
      return again;
    }
    const contract = this.#options.contractFor(caller.class);
    const operation = new Operation(this.#offered++, caller, contract.deadline);
    this.#open.add(operation);
    // A second call of a trace while the first is under way is another operation, and takes no name.
    if (key !== undefined && known === undefined) this.#named.set(key, operation);
    const attempt = new OpenAttempt(operation, operation.at);
    operation.open.add(attempt);
    this.#tell((listener) => listener.arrived?.(operation));
    return attempt;
  }

  /** The transport saw the attempt end. */
  ended(attempt: Attempt, t: Millis, ending: Ending): void {
    this.#end(attempt as OpenAttempt, t, (recorder) => recorder.ended(t, ending));
  }

  /** The caller left. An answer whose finish had come is whole all the same: some clients leave at the last event. */
  left(attempt: Attempt, t: Millis, detail = ''): void {
    this.#end(attempt as OpenAttempt, t, (recorder) => {
      if (recorder.hasOutput) {
        recorder.ended(t, { kind: 'closed' });
        if (recorder.outcome === 'completed') return;
      }
      recorder.giveUp(t, 'cancelled', 'client-abort', detail);
    });
  }

  /** It can be watched no further, though it goes on. */
  lost(attempt: Attempt, t: Millis, reason: string, detail: string): void {
    this.#end(attempt as OpenAttempt, t, (recorder) => recorder.giveUp(t, 'undecided', reason, detail));
  }

  /** Ends what is past its deadline or its wait for another attempt. To be called a few times a second. */
  sweep(now: Millis): void {
    for (const operation of this.#waiting) {
      if (now - (operation.waitingSince ?? now) < this.#retryWindow) break; // in the order they began to wait
      this.#final(operation);
    }
    for (const operation of this.#open) {
      if (now - operation.at > operation.deadline) this.#expire(operation, now);
    }
  }

  /** At the end of the watch: what is open is undecided; what waits for another attempt has had its last. */
  close(now: Millis): void {
    for (const operation of [...this.#open]) {
      for (const attempt of [...operation.open]) this.lost(attempt, now, 'stopped', 'the watch ended before it did');
      if (operation.outcome === 'open') this.#final(operation);
    }
  }

  /** For a run's cursor. */
  openStates(): OpenState[] {
    return [...this.#open].map((operation) => {
      const [attempt] = operation.open;
      const dispatched = attempt?.recorder.dispatchedAt;
      return {
        operation: operation.operation,
        attempt: attempt?.spec.attempt ?? operation.attempts,
        scheduled: operation.at,
        class: operation.class,
        ...(dispatched !== undefined && { dispatched }),
      };
    });
  }

  #end(attempt: OpenAttempt, t: Millis, how: (recorder: Recorder) => void): void {
    if (!attempt.isOpen) return;
    attempt.isOpen = false;
    const { operation, recorder } = attempt;
    operation.open.delete(attempt);
    how(recorder);
    if (operation.outcome === 'succeeded') recorder.lostHedge = true;
    else if (t - operation.at > operation.deadline && !DECIDED.has(recorder.outcome as Outcome)) {
      recorder.giveUp(t, 'timed-out', 'deadline');
    }
    const record = this.#recordOf(attempt);
    try {
      this.#options.record(record);
    } catch {
      this.#listenerFailures++;
    }
    if (operation.outcome !== 'open') return;
    operation.ended.push(record);
    if (record.outcome === 'completed') {
      operation.outcome = 'succeeded';
      this.#final(operation);
    } else if (operation.open.size === 0) this.#failed(operation, record, t);
  }

  /** No attempt of it is left: another may come, where it has a name. */
  #failed(operation: Operation, record: RequestRecord, t: Millis): void {
    const exhausted =
      operation.name === undefined ||
      this.#retryWindow <= 0 ||
      FINAL_STATUS.test(record.reason) ||
      record.outcome === 'timed-out' ||
      record.outcome === 'undecided';
    if (exhausted) {
      this.#final(operation);
      return;
    }
    operation.waitingSince = t;
    this.#waiting.add(operation);
    if (this.#waiting.size > this.#mostWaiting) {
      const [oldest] = this.#waiting;
      this.#final(oldest as Operation);
    }
  }

  #expire(operation: Operation, now: Millis): void {
    const t = Math.min(now, operation.at + operation.deadline);
    if (operation.open.size === 0) {
      this.#final(operation);
      return;
    }
    for (const attempt of [...operation.open]) {
      this.#end(attempt, now, (recorder) => recorder.giveUp(t, 'timed-out', 'deadline'));
    }
  }

  #final(operation: Operation): void {
    if (operation.outcome === 'open') operation.outcome = 'over';
    this.#waiting.delete(operation);
    this.#open.delete(operation);
    if (operation.name) {
      const key = `${operation.name.by} ${operation.name.value}`;
      if (this.#named.get(key) === operation) this.#named.delete(key);
    }
    const record = foldAttempts(operation.ended);
    const contract = this.#options.contractFor(operation.class);
    const { metrics, verdict } = judgeRecord(record, contract);
    const { trace } = operation;
    this.#tell((listener) =>
      listener.final({
        operation: operation.operation,
        at: operation.at,
        class: operation.class,
        tenant: operation.tenant,
        record,
        attempts: operation.ended,
        metrics,
        verdict,
        contract,
        groupedBy: operation.name?.by ?? 'none',
        ...(trace && { trace }),
      }),
    );
  }

  #recordOf(attempt: OpenAttempt): RequestRecord {
    const { passage } = attempt;
    const record = attempt.recorder.record();
    return Object.keys(passage).length === 0 ? record : { ...record, passage: { ...passage } };
  }

  #tell(what: (listener: OperationListener) => void): void {
    for (const listener of this.#options.listeners) {
      try {
        what(listener);
      } catch {
        this.#listenerFailures++;
      }
    }
  }
}
