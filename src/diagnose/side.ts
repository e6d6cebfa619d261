/**
 * One side of a comparison, "before" or "after": what a client recorded of its requests, what servers said of the same
 * window, figures somebody told, and what is known to have been changed. Any of the first three may be missing.
 */
import type { Millis, Seconds, Share } from '../base/units.ts';
import type { Evidence } from '../core/evidence.ts';
import type { PauseKind } from './stalls.ts';
import type { Told } from './told.ts';

/** One request, as far as a diagnosis reads it. Durations in ms; absent where not measured. */
export interface RequestRow {
  /** When it should have started, ms since the run's epoch. */
  readonly at: Millis;
  readonly class: string;
  readonly ok: boolean;
  readonly attempts: number;
  /** From `scheduled`. */
  readonly ttft?: Millis;
  /** `dispatched − scheduled`: waiting in the client. */
  readonly client?: Millis;
  /** `dispatched` to `sent`: opening the connection and writing; 0 on a reused one. */
  readonly connect?: Millis;
  /** The server's own times of this request, where it told them. */
  readonly queue?: Millis;
  readonly prefill?: Millis;
  readonly serverTtft?: Millis;
  readonly load?: Millis;
  readonly tpot?: Millis;
  /** Largest gap between chunks. */
  readonly gap?: Millis;
  readonly latency?: Millis;
  /** Middle gap between chunks, where there are four and more. */
  readonly middle?: Millis;
  readonly prompt?: number;
  readonly cached?: number;
  readonly output?: number;
  readonly chunks: number;
  /** Middle gap among chunks that did not come together: a step, however many tokens it brought. */
  readonly step?: Millis;
  /** Steps its later chunks took, by how many usually came together: a silence that ends with several is not one step. */
  readonly steps?: number;
  /** Time its gaps took beyond such a step, in those gaps that were long for it, by what else was silent; 0 where none. */
  readonly paused?: Readonly<Record<PauseKind, Millis>>;
  /** Chunks that came within a millisecond of the one before. */
  readonly bunched: number;
}

/** A silence of several streams at once. Times in ms since the run's epoch. */
export interface JointStall {
  readonly start: Millis;
  readonly end: Millis;
  readonly streams: number;
  /** Streams between their first and last output then. */
  readonly active: number;
  /** A request got its first output as the silence ended: a prefill may have caused it. */
  readonly withFirst: boolean;
  /** Chunks a stream received at once as it ended, on average: held back, not late. */
  readonly released: number;
}

export interface Requests {
  /** Arrival-ordered. */
  readonly rows: readonly RequestRow[];
  readonly stalls: readonly JointStall[];
  /** First to last arrival, s. */
  readonly span: Seconds;
  /** Requests beyond those kept. */
  readonly dropped: number;
}

/** What the client saw of itself. */
export interface ClientState {
  readonly eventLoopP99?: Millis;
  readonly unsent?: number;
  /** Share of offers. */
  readonly cpu?: Share;
}

export interface Side {
  /** How the user named it. */
  readonly name: string;
  readonly requests?: Requests;
  readonly client?: ClientState;
  readonly evidence?: Evidence;
  readonly told?: Told;
  /** What a reader must know of how it was read. */
  readonly notes: readonly string[];
}
