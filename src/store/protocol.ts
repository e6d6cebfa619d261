/** What the measuring thread and the writing thread say to each other. */
import type { Batch } from './batch.ts';
import type { BusyCells } from './busy.ts';

export interface WorkerStart {
  readonly folder: string;
  /** DuckDB's memory limit, as it spells it: `256MB`. */
  readonly memory: string;
  readonly busy: BusyCells;
}

/** `cursor` is `cursor.json` but for what only the writer knows: segments and rows. */
export type ToWorker =
  | { readonly kind: 'rows'; readonly batch: Batch }
  | { readonly kind: 'flush'; readonly cursor: object }
  | { readonly kind: 'close'; readonly cursor: object };

/** `rows`: all that are safely in segments. `problem`: what keeps the rest from it, a line. */
export type FromWorker =
  | { readonly kind: 'ready' }
  | { readonly kind: 'broken'; readonly problem: string }
  | { readonly kind: 'flushed'; readonly rows: number; readonly problem: string | undefined }
  | { readonly kind: 'closed'; readonly rows: number; readonly problem: string | undefined };
