import type { RequestRecord } from './record.ts';

/** Where finished records go. A live run never waits for a full sink (it drops and counts); a simulation waits. */
export interface Sink {
  add(record: RequestRecord): void;
  /** More would be dropped, or would grow without bound. */
  readonly full: boolean;
  /** Resolves once there is room again. */
  drained(): Promise<void>;
  close(): Promise<void>;
}

/** A fold that shards can run apart: `merge` gives exactly what one reducer over all would have given. */
export interface Reducer<X, R> {
  add(x: X): void;
  merge(other: this): void;
  finish(): R;
}
