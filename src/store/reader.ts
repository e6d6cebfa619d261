/** Reading a run folder, also one that is still being written or was cut off. */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { hostname } from 'node:os';
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { InputError, messageOf, oneLine } from '../base/errors.ts';
import type { Millis } from '../base/units.ts';
import { foldAttempts } from '../core/attempts.ts';
import type { RequestRecord } from '../core/record.ts';
import { CARRIERS } from './columns.ts';
import { cursorFromDisk } from './cursor.ts';
import { decodeChunk } from './decode.ts';
import { why } from './folder.ts';
import { readJson } from './json.ts';
import type { JsonObject, StoredCursor, StoredMeta } from './meta.ts';
import { OpenOperations, undecided } from './open-operations.ts';
import { Progress, type Query, readFiles } from './parquet.ts';
import { readMeta } from './run-json.ts';
import { segmentsOf } from './segments.ts';
import { TextReader } from './vectors.ts';

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
  /** Every operation once, its attempts folded; open ones as `undecided`. Memory bounded by the operations retried. */
  operations(each: (record: RequestRecord) => void): Promise<void>;
  /** Frees the database. A reader not closed is freed with the process. */
  close(): void;
}

/** @throws InputError when `folder` is not a run, or one this version cannot read. */
export async function openRun(folder: string, options: ReadOptions = {}): Promise<RunReader> {
  if (!existsSync(folder)) {
    throw new InputError(`${oneLine(folder)}: no such folder; give a run folder that 'goodput bench' made`);
  }
  if (!statSync(folder).isDirectory()) {
    throw new InputError(`${oneLine(folder)}: is a file, not a run folder; give the folder it stands in`);
  }
  const meta = readMeta(folder);
  const reader = new FolderReader(folder, meta, options);
  return reader;
}

/** A cursor is replaced every second; one this old has no writer behind it. */
const STALE: Millis = 15_000;

const SELECT_RECORDS = `SELECT ${CARRIERS.join(', ')}`;
const SELECT_REPEATS = 'SELECT CAST(operation AS DOUBLE) AS operation, CAST(attempt AS DOUBLE) AS attempt';

class FolderReader implements RunReader {
  readonly folder: string;
  readonly meta: StoredMeta;
  readonly status: RunStatus;
  readonly cursor: StoredCursor | undefined;
  readonly health: JsonObject | undefined;
  readonly report: JsonObject | undefined;
  readonly #problems = new Set<string>();
  #instance: DuckDBInstance | undefined;

  constructor(folder: string, meta: StoredMeta, options: ReadOptions) {
    this.folder = folder;
    this.meta = meta;
    const cursor = this.#aside('cursor.json');
    this.cursor = cursor && cursorFromDisk(cursor);
    if (cursor && !this.cursor) this.#problems.add('cursor.json: is not one this version reads; ignored');
    this.health = this.#aside('health.json');
    this.report = this.#aside('report.json');
    this.status = statusOf(this.cursor, meta, options.wallNow);
  }

  get problems(): readonly string[] {
    return [...this.#problems];
  }

  async records(each: (record: RequestRecord) => void): Promise<void> {
    const open = new OpenOperations(this.cursor?.open ?? []);
    await this.#eachRow((record) => {
      open.see(record);
      each(record);
    });
    for (const operation of open.left()) each(undecided(operation, this.#why));
  }

  async operations(each: (record: RequestRecord) => void): Promise<void> {
    const open = new OpenOperations(this.cursor?.open ?? []);
    const rowsOf = await this.#repeated();
    const kept = new Map<number, RequestRecord[]>();
    await this.#eachRow((record) => {
      open.see(record);
      const rows = rowsOf.get(record.operation);
      if (rows === undefined && !open.has(record.operation)) {
        each(record);
        return;
      }
      const attempts = kept.get(record.operation) ?? [];
      attempts.push(detached(record));
      if (attempts.length < (rows ?? 1) || open.has(record.operation)) kept.set(record.operation, attempts);
      else {
        kept.delete(record.operation);
        each(foldAttempts(attempts));
      }
    });
    for (const operation of open.left()) {
      const attempts = kept.get(operation.operation) ?? [];
      kept.delete(operation.operation);
      each(foldAttempts([...attempts, undecided(operation, this.#why)]));
    }
    for (const attempts of kept.values()) each(foldAttempts(attempts)); // others of theirs stood in a broken file
  }

  close(): void {
    this.#instance?.closeSync();
    this.#instance = undefined;
  }

  get #why(): 'cut' | 'running' {
    return this.status === 'running' ? 'running' : 'cut';
  }

  /** A JSON file beside the rows: when damaged the rows are still worth reading. */
  #aside(file: string): JsonObject | undefined {
    try {
      return readJson(this.folder, file);
    } catch (error) {
      this.#problems.add(messageOf(error));
      return undefined;
    }
  }

  async #eachRow(each: (record: RequestRecord) => void): Promise<void> {
    const texts = new TextReader();
    await this.#read(SELECT_RECORDS, '', (chunk, from, to) => decodeChunk(chunk, from, to, texts, each));
  }

  /** How many rows each operation has that has more than one, or one that is no outcome by itself. */
  async #repeated(): Promise<Map<number, number>> {
    const rowsOf = new Map<number, number>();
    const firstSeen = new Set<number>();
    await this.#read(SELECT_REPEATS, 'attempt > 0 OR lost_hedge', (chunk, from, to) => {
      const operations = chunk.getColumnVector(0);
      const attempts = chunk.getColumnVector(1);
      for (let row = from; row < to; row++) {
        const operation = operations.getItem(row) as number;
        rowsOf.set(operation, (rowsOf.get(operation) ?? 0) + 1);
        if (attempts.getItem(row) === 0) firstSeen.add(operation);
      }
    });
    // The first attempt is not among these rows unless it was a hedge that lost.
    for (const [operation, rows] of rowsOf) if (!firstSeen.has(operation)) rowsOf.set(operation, rows + 1);
    return rowsOf;
  }

  async #read(select: string, where: string, each: Query['each']): Promise<void> {
    this.#instance ??= await DuckDBInstance.create(':memory:', { threads: '2', memory_limit: '400MB' });
    const db: DuckDBConnection = await this.#instance.connect();
    const broken = (problem: string): void => {
      this.#problems.add(problem);
    };
    // A run being written is read up to its cursor: beyond it the quick requests are there and the slow ones are not.
    const isRunning = this.status === 'running';
    const progress = new Progress(isRunning && where === '' ? (this.cursor?.rows ?? 0) : undefined);
    try {
      for (let tries = 0; tries < 3; tries++) {
        progress.again(progress.passed);
        const files = this.#files();
        if (await readFiles(db, this.folder, files, { select, where, each, broken }, progress)) return;
      }
    } finally {
      db.closeSync();
    }
  }

  #files(): string[] {
    try {
      return segmentsOf(readdirSync(this.folder)).map((segment) => segment.file);
    } catch (error) {
      throw new InputError(`${oneLine(this.folder)}: cannot be read (${why(error)}); check its permissions`, {
        cause: error,
      });
    }
  }
}

/** A record that holds no more than its own: the receipts of a chunk's rows share one buffer. */
function detached(record: RequestRecord): RequestRecord {
  return { ...record, timeline: { ...record.timeline, at: record.timeline.at.slice() } };
}

function statusOf(cursor: StoredCursor | undefined, meta: StoredMeta, wallNow: Millis | undefined): RunStatus {
  if (!cursor) return 'cut';
  if (cursor.closed) return 'complete';
  const age = wallNow === undefined ? undefined : wallNow - (meta.epochWall + cursor.time);
  if (age !== undefined && age > STALE) return 'cut';
  if (cursor.host === hostname()) return isAlive(cursor.pid) ? 'running' : 'cut';
  return age === undefined ? 'cut' : 'running';
}

/** Signal 0 tells whether a process is there without touching it. */
function isAlive(pid: number): boolean {
  if (pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
