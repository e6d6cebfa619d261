/** Writing a run folder. */
import type { Clock } from '../core/clock.ts';
import type { Sink } from '../core/sink.ts';
import type { CursorState, JsonObject, RunMeta } from './meta.ts';

export interface RunOptions {
  /** A wall clock on the run's epoch (its `now()` is ms since `meta.epochWall`): segments are cut by it. */
  readonly clock: Clock;
  /** Milliseconds between segments; what a killed run may lose. */
  readonly every?: number;
}

/** A run folder being written: a sink of records (a row an attempt). */
export interface RunWriter extends Sink {
  /** The run folder. */
  readonly folder: string;
  /** Rows safely in segments, rows not there yet, and records dropped because too many were pending. */
  readonly counts: { readonly written: number; readonly pending: number; readonly dropped: number };
  /** What is wrong with writing just now (disk full, folder gone), one line; rows wait meanwhile. */
  readonly problem: string | undefined;
  /** Who is asked, at each flush, how far the run has come. */
  track(cursor: () => CursorState): void;
  /** Resolves when every record added so far is in a segment, or the attempt failed (see `problem`). */
  flush(): Promise<void>;
  writeHealth(health: JsonObject): void;
  writeReport(report: JsonObject): void;
  /** Writes what is left, compacts the segments, marks the run closed. @throws InputError when rows could not be written. */
  close(): Promise<void>;
}

/**
 * Makes `dir/<time>-<name>/` with its `run.json` and opens it for records.
 * @throws InputError when the folder cannot be made or written.
 */
export declare function createRun(dir: string, name: string, meta: RunMeta, options: RunOptions): Promise<RunWriter>;
