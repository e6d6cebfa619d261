/**
 * What a run folder says beside its rows: `run.json`, written once at the start, and `cursor.json`, replaced with each
 * segment. In memory times are milliseconds since the run's epoch; in the files, integer microseconds.
 */
import type { Millis } from '../base/units.ts';
import type { Window } from '../core/cohort.ts';
import type { Contract } from '../core/contract.ts';
import type { Asked } from '../core/record.ts';

/** The layout of a run folder. A reader refuses a later number than its own; columns and keys may be added within one. */
export const RUN_SCHEMA = 'goodput.run/1';
export const CURSOR_SCHEMA = 'goodput.cursor/1';
export const HEALTH_SCHEMA = 'goodput.health/1';
export const REPORT_SCHEMA = 'goodput.report/1';

/** Anything JSON can hold. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** What was asked, resolved: enough to ask it again. The caller redacts keys and passwords. */
export interface RunMeta {
  /** Wall time of the run's monotonic epoch, ms since 1970 UTC. Kept once, to label the run. */
  readonly epochWall: Millis;
  readonly seed: number;
  readonly contract: Contract;
  /** Arrivals, lengths, prompts, warm-up, limits: as resolved, defaults filled in. */
  readonly workload: JsonObject;
  /** What was measured: address (redacted), dialect, model, engine. */
  readonly target: JsonObject;
  /** Program → version: `goodput`, `node`, … */
  readonly versions: Readonly<Record<string, string>>;
  /** Cores, memory, system. */
  readonly machine: JsonObject;
  /** The command line, where there was one. */
  readonly command?: readonly string[];
}

/** `RunMeta` as read back. */
export interface StoredMeta extends RunMeta {
  readonly schema: string;
  readonly name: string;
}

/** An operation that was offered and has no final row yet. */
export interface OpenOperation {
  readonly operation: number;
  /** The attempt under way. */
  readonly attempt: number;
  readonly scheduled: Millis;
  readonly class: string;
  readonly dispatched?: Millis;
  readonly session?: number;
  readonly turn?: number;
  readonly asked?: Asked;
}

/** How far a run has come, asked of whoever drives it at each flush. It must agree with the records added so far. */
export interface CursorState {
  /** Operations offered so far. */
  readonly offered: number;
  readonly open: readonly OpenOperation[];
  /** The cohort's window, as soon as it is known. */
  readonly window?: Window;
}

/** `cursor.json` as read back. */
export interface StoredCursor extends CursorState {
  /** When it was written, ms since the run's epoch. */
  readonly time: Millis;
  /** Segments written when it was. */
  readonly segments: number;
  readonly rows: number;
  /** Records that were not kept, because more were pending than the writer may hold. */
  readonly dropped: number;
  /** The run was closed: nothing will be added. */
  readonly closed: boolean;
  readonly pid: number;
  readonly host: string;
}

export const START: CursorState = { offered: 0, open: [] };
