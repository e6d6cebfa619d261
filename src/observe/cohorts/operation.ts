/**
 * What whoever watches real traffic (the proxy, the fetch wrapper) hands on: each operation twice, when it arrives and when
 * it is final. Live cohorts, metrics and exported spans are listeners; they know neither sockets nor files.
 */
import type { Millis } from '../../base/units.ts';
import type { Contract } from '../../core/contract.ts';
import type { Verdict } from '../../core/judge.ts';
import type { Metrics } from '../../core/measure.ts';
import type { RequestRecord } from '../../core/record.ts';

/** An operation that has just been offered. Class and tenant are of bounded cardinality (`BoundedLabels`). */
export interface Arrival {
  readonly operation: number;
  /** ms since the epoch of the watching process: the record's `scheduled`. */
  readonly at: Millis;
  readonly class: string;
  /** Empty where no tenant was told. */
  readonly tenant: string;
}

/** By what attempts were recognised as one operation's; `none`: every attempt is an operation of its own. */
export type GroupedBy = 'idempotency-key' | 'header' | 'trace' | 'none';

/** An operation that is final: at success, at its deadline, or when its attempts are exhausted. */
export interface FinalOperation extends Arrival {
  /** Its attempts folded. The stamps are ms since the epoch of the watching process. */
  readonly record: RequestRecord;
  /** The attempts themselves, in order; one, mostly. */
  readonly attempts: readonly RequestRecord[];
  readonly metrics: Metrics;
  readonly verdict: Verdict;
  /** The contract of its class, under which it was judged. */
  readonly contract: Contract;
  readonly groupedBy: GroupedBy;
  /** W3C trace context as the caller sent it, where valid. */
  readonly trace?: TraceContext;
}

export interface TraceContext {
  /** 32 hex digits. */
  readonly traceId: string;
  /** 16 hex digits: the caller's span, the parent of ours. */
  readonly parentId: string;
  readonly sampled: boolean;
}

/**
 * Told within the event loop turn in which it happens. A listener that throws is dropped for that call and counted: it
 * never touches traffic or another listener.
 */
export interface OperationListener {
  arrived?(arrival: Arrival): void;
  final(operation: FinalOperation): void;
}

/** An operation under way, as live figures see it. */
export interface InFlight extends Arrival {
  /** Some output has come: it waits no longer. */
  readonly hasOutput: boolean;
}
