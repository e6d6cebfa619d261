/** What the measuring thread and the writing thread say to each other. */
import type { Millis } from '../base/units.ts';
import type { Batch } from './batch.ts';
import type { BusyCells } from './busy.ts';
import type { Keep } from './retention.ts';

export interface WorkerStart {
  readonly folder: string;
  /** DuckDB's memory limit, as it spells it: `256MB`. */
  readonly memory: string;
  readonly busy: BusyCells;
  /** Bounds on what the folder keeps, of a run that never ends. */
  readonly keep?: Keep;
}

/** `cursor` is `cursor.json` but for what only the writer knows: segments and rows. */
export type ToWorker =
  | { readonly kind: 'rows'; readonly batch: Batch }
  | { readonly kind: 'flush'; readonly cursor: object; readonly now: Millis }
  | { readonly kind: 'close'; readonly cursor: object };

/** `rows`: all that are safely in segments. `problem`: what keeps the rest from it, a line. */
export type FromWorker =
  | { readonly kind: 'ready' }
  | { readonly kind: 'broken'; readonly problem: string }
  | { readonly kind: 'flushed'; readonly rows: number; readonly problem: string | undefined }
  | { readonly kind: 'closed'; readonly rows: number; readonly problem: string | undefined };
