/** Reading a run folder, also one that is still being written or was cut off. */
import type { Millis } from '../base/units.ts';
import type { RequestRecord } from '../core/record.ts';
import type { JsonObject, StoredCursor, StoredMeta } from './meta.ts';

/** `running`: being written. `cut`: its writer is gone and never closed it. */
export type RunStatus = 'complete' | 'cut' | 'running';

export interface ReadOptions {
  /** Wall time, ms since 1970 UTC: tells a fresh cursor from a stale one when the writer is on another machine. */
  readonly wallNow?: Millis;
}

export interface RunReader {
  readonly folder: string;
  readonly meta: StoredMeta;
  readonly status: RunStatus;
  /** Absent when the run was cut before its first flush. */
  readonly cursor: StoredCursor | undefined;
  readonly health: JsonObject | undefined;
  readonly report: JsonObject | undefined;
  /** Files that could not be read, one line each. Grows while rows are read. */
  readonly problems: readonly string[];
  /** Every row, an attempt each, in the order they ended; then operations still open, as `undecided`. Bounded memory. */
  records(each: (record: RequestRecord) => void): Promise<void>;
  /** Every operation once, its attempts folded; open ones as `undecided`. Bounded memory. */
  operations(each: (record: RequestRecord) => void): Promise<void>;
  close(): void;
}

/** @throws InputError when `folder` is not a run, or one this version cannot read. */
export declare function openRun(folder: string, options?: ReadOptions): Promise<RunReader>;
