/** What a simulated serving system is, whatever its scheduler: one replica, several behind a router, or split pools. */
import type { Millis, Share } from '../base/units.ts';
import type { RequestSpec } from '../core/request.ts';
import type { TokenLog } from './token-log.ts';

/**
 * Virtual time moves by `advance` alone. Offers and cancels come at or after the last advance, in order. At one instant
 * the order is: `advance(t)`, then offers at t; what starts at t is planned when `nextAt` or a later `advance` asks.
 */
export interface Cluster {
  /** Takes a request in at `t`. @returns its handle, or one of the refusals below. */
  offer(spec: RequestSpec, t: Millis): number;
  /**
   * Takes a request out at `t` (after `advance(t)`). A running one leaves the batch when the step in progress ends; what
   * it had by `t` is handed back. Undefined when it is already over.
   */
  cancel(handle: number, t: Millis): Finished | undefined;
  /** When `advance` has something to do next, +∞ when idle. Runs of pure decode are one thing to do. */
  nextAt(): Millis;
  /** Whether the request could ever be served: its length is allowed and its KV fits. */
  fits(spec: RequestSpec): boolean;
  /** When the step in progress ends: what a caller that wants each token in time advances to. */
  nextStepAt(): Millis;
  /** Moves time to `to`; requests that completed by then are appended to `out` in the order they did. */
  advance(to: Millis, out: Finished[]): void;
  /** Every decoding request with the tokens it has by now. */
  forEachDecoding(visit: (handle: number, generated: number) => void): void;
  gauges(): Gauges;
}

/** A cluster that also takes requests whose prompt was computed elsewhere: the decode side of split pools. */
export interface DecodeCluster extends Cluster {
  /**
   * As `offer`, for a request whose KV is here and which has its first token. Its tokens from the second on come from
   * here; `Finished.generated` counts all of them, `tokenTimes` gives those from here.
   */
  offerReady(spec: RequestSpec, t: Millis): number;
}

/** Refusals of `offer`: the queue is full; or the request can never fit (KV pool, or the longest sequence allowed). */
export const QUEUE_FULL = -1;
export const TOO_LONG = -2;

/** State now and counts since the start, as an engine's metrics endpoint tells them. */
export interface Gauges {
  readonly running: number;
  readonly waiting: number;
  /** KV blocks pinned by requests, of how many. */
  readonly kvUsed: number;
  readonly kvBlocks: number;
  readonly kvUsage: Share;
  readonly preemptions: number;
  /** Prompt tokens put through the model (of completed prefills; a recomputation counts only the first time). */
  readonly promptTokens: number;
  readonly generationTokens: number;
  readonly steps: number;
  /** Prompt tokens looked up in, and found in, the prefix cache. */
  readonly prefixQueries: number;
  readonly prefixHits: number;
}

export const NO_GAUGES: Gauges = {
  running: 0,
  waiting: 0,
  kvUsed: 0,
  kvBlocks: 0,
  kvUsage: 0,
  preemptions: 0,
  promptTokens: 0,
  generationTokens: 0,
  steps: 0,
  prefixQueries: 0,
  prefixHits: 0,
};

/** A stretch of steps, both ends included, in each of which the request got one token. */
export interface Stint {
  readonly log: TokenLog;
  readonly segment: number;
  readonly from: number;
  readonly to: number;
}

/** A request that is over, as the cluster saw it. Times are unrounded virtual milliseconds; NaN where it never got there. */
export class Finished {
  handle: number;
  readonly spec: RequestSpec;
  readonly cancelled: boolean;
  arrived: Millis;
  /** First scheduled: queueing ends. */
  scheduled: Millis = Number.NaN;
  firstToken: Millis = Number.NaN;
  lastToken: Millis = Number.NaN;
  ended: Millis;
  generated = 0;
  preemptions = 0;
  /** Prompt tokens found in the prefix cache when first scheduled. */
  cached = 0;
  /** The stint of its last tokens, and, after preemption or a hand-off, those before it. */
  last: Stint | undefined = undefined;
  earlier: readonly Stint[] | undefined = undefined;
  /** Tokens that came from elsewhere, before all stints. */
  lead: readonly Millis[] | undefined = undefined;

  constructor(handle: number, spec: RequestSpec, cancelled: boolean, arrived: Millis, ended: Millis) {
    this.handle = handle;
    this.spec = spec;
    this.cancelled = cancelled;
    this.arrived = arrived;
    this.ended = ended;
  }

  /**
   * When each token came, into `into` (grown when too short). Valid until the cluster's next `advance`: expand what is
   * needed at once, or copy.
   */
  tokenTimes(into = new Float64Array(this.generated)): Float64Array {
    const times = into.length >= this.generated ? into : new Float64Array(this.generated);
    let at = 0;
    for (const t of this.lead ?? []) times[at++] = t;
    for (const s of this.earlier ?? []) {
      s.log.expand(s.segment, s.from, s.to, times, at);
      at += s.to - s.from + 1;
    }
    const s = this.last;
    if (s) s.log.expand(s.segment, s.from, s.to, times, at);
    return times;
  }
}
