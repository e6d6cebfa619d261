/**
 * The seam between load and engine. A live server, a simulator, a proxy's upstream and the null engine all stand behind
 * `Engine`; nothing downstream can tell which.
 */
import type { Millis } from '../base/units.ts';
import type { Cancel } from './clock.ts';
import type { RequestSpec } from './request.ts';
import type { StreamEvent } from './stream.ts';

export interface Engine {
  readonly name: string;
  /**
   * Starts one attempt. Rules, held by `engineConformance`: no observer call inside `submit`; `t` never decreases within
   * an attempt; exactly one `ended`, last; none after cancel.
   */
  submit(spec: RequestSpec, to: Observer): Cancel;
  close(): Promise<void>;
}

/** Told what happens to one attempt. Every `t` was read once, when the bytes were received, and is handed along. */
export interface Observer {
  /** Handed to the HTTP client, or into the simulated engine's door. */
  dispatched(t: Millis): void;
  connected(t: Millis, how: Connection): void;
  /** The whole request is written. */
  sent(t: Millis): void;
  headers(t: Millis, status: number): void;
  /** `coalesced`: these bytes arrived in the same read as an earlier event's, so `t` is that read's. */
  event(t: Millis, event: StreamEvent, coalesced: boolean): void;
  ended(t: Millis, ending: Ending): void;
}

export interface Connection {
  /** The socket had served an earlier request. */
  readonly reused: boolean;
  /** `1.0`, `1.1`, `2`; absent where there is no HTTP. */
  readonly http?: string;
}

/** How the transport saw the attempt end; the recorder makes an outcome of it, knowing the events before it. */
export type Ending =
  /** The response ended cleanly. Whether it was complete, its events say. */
  | { readonly kind: 'closed' }
  /** An HTTP status that is not 2xx, with what the body said. */
  | { readonly kind: 'http-error'; readonly status: number; readonly detail: string }
  /** The engine refused the request without an HTTP status (a full simulated queue). */
  | { readonly kind: 'refused'; readonly detail: string }
  /** No response, or no whole one. `stale`: a reused socket was reset before any byte of the response. */
  | { readonly kind: 'failed'; readonly reason: TransportFailure; readonly detail: string; readonly stale?: boolean };

/** `client-limit`: our own machine could not (open files, local ports); the operation was never sent. */
export type TransportFailure =
  | 'client-limit'
  | 'dns'
  | 'connect'
  | 'tls'
  | 'reset'
  | 'protocol'
  | 'not-a-stream'
  | 'too-large'
  | 'engine';
