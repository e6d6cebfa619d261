/** Streams the rows of a run's Parquet files; one that is broken is named and passed over, the rest still read. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { DuckDBConnection, DuckDBDataChunk, DuckDBResult } from '@duckdb/node-api';
import { NO_ROW } from './columns.ts';
import { why } from './folder.ts';
import { quote } from './json.ts';

/** What to read, and where trouble goes. */
export interface Query {
  /** `SELECT …` without `FROM`. */
  readonly select: string;
  readonly where?: string;
  /** Takes the rows of a chunk from `from` (inclusive) to `to`. */
  readonly each: (chunk: DuckDBDataChunk, from: number, to: number) => void;
  readonly broken: (problem: string) => void;
}

/** Files a query: few enough to stay below any limit on open files. */
const GROUP = 200;

/** How far a reading has come, in rows of the whole run. */
export class Progress {
  #passed = 0;
  #skip = 0;
  readonly #most: number;

  /** @param most rows after which reading stops: a run being written is read up to its cursor. */
  constructor(most = Number.POSITIVE_INFINITY) {
    this.#most = most;
  }
  get isDone(): boolean {
    return this.#passed >= this.#most;
  }
  get passed(): number {
    return this.#passed;
  }
  /** The next `rows` rows come once more. */
  again(rows: number): void {
    this.#skip = rows;
  }
  /** Of a chunk of `rows`, which are new and wanted. */
  take(rows: number): readonly [from: number, to: number] {
    const from = Math.min(this.#skip, rows);
    this.#skip -= from;
    const to = Math.min(rows, from + this.#most - this.#passed);
    this.#passed += to - from;
    return [from, to];
  }
}

/**
 * Reads `files` in order. @returns false when one has vanished, as segments do when their run is compacted: list the
 * folder again and go on from `progress`.
 */
export async function readFiles(
  db: DuckDBConnection,
  folder: string,
  files: readonly string[],
  query: Query,
  progress: Progress,
): Promise<boolean> {
  for (let i = 0; i < files.length && !progress.isDone; i += GROUP) {
    const group = files.slice(i, i + GROUP);
    const before = progress.passed;
    if ((await stream(db, folder, group, query, progress)) === undefined) continue;
    // Order is kept, so what came is a prefix: read on from there a row group at a time, and see which one it is.
    progress.again(progress.passed - before);
    for (const file of group) {
      const groups = await rowGroups(db, folder, file);
      if (typeof groups === 'string') {
        if (!existsSync(join(folder, file))) return false;
        query.broken(`${file}: cannot be read (${groups}); left out`);
        continue;
      }
      for (const { first, rows } of groups) {
        const problem = await stream(db, folder, [file], query, progress, { first, rows });
        if (problem === undefined) continue;
        if (!existsSync(join(folder, file))) return false;
        progress.again(0); // nothing beyond the damage had come before
        query.broken(
          `${file}: damaged within rows ${first}–${first + rows - 1} (${problem}); those after it are left out`,
        );
      }
    }
  }
  return true;
}

interface RowGroup {
  readonly first: number;
  readonly rows: number;
}

/** A file's row groups, or why they cannot be told. */
async function rowGroups(db: DuckDBConnection, folder: string, file: string): Promise<readonly RowGroup[] | string> {
  try {
    const path = quote(join(folder, file));
    const result = await db.runAndReadAll(
      `SELECT DISTINCT row_group_id::DOUBLE AS id, row_group_num_rows::DOUBLE AS n FROM parquet_metadata(${path}) ORDER BY id`,
    );
    let first = 0;
    return result.getRows().map(([, n]) => {
      const rows = n as number;
      first += rows;
      return { first: first - rows, rows };
    });
  } catch (error) {
    return why(error);
  }
}

/** @returns what went wrong, or undefined. */
async function stream(
  db: DuckDBConnection,
  folder: string,
  files: readonly string[],
  query: Query,
  progress: Progress,
  only?: RowGroup,
): Promise<string | undefined> {
  const list = files.map((file) => quote(join(folder, file))).join(', ');
  const wheres = [
    ...(query.where ? [`(${query.where})`] : []),
    ...(only ? [`file_row_number BETWEEN ${only.first} AND ${only.first + only.rows - 1}`] : []),
  ];
  const options = only ? 'file_row_number = true' : 'union_by_name = true';
  const where = wheres.length === 0 ? '' : ` WHERE ${wheres.join(' AND ')}`;
  const from = `read_parquet([${list}], ${options})`;
  let result: DuckDBResult;
  let next: Promise<DuckDBDataChunk | null>;
  try {
    result = await db.stream(`${query.select} FROM ${from}${where}`).catch((error: Error) => {
      if (!/^Binder Error/.test(error.message)) throw error;
      // Written before some column was added: NULL in every row.
      return db.stream(`${query.select} FROM (SELECT * FROM ${from} UNION ALL BY NAME ${NO_ROW})${where}`);
    });
    next = result.fetchChunk();
  } catch (error) {
    return why(error);
  }
  for (;;) {
    let chunk: DuckDBDataChunk | null;
    try {
      chunk = await next;
    } catch (error) {
      return why(error);
    }
    if (!chunk || chunk.rowCount === 0) return undefined;
    next = result.fetchChunk(); // DuckDB reads on while this chunk is made into records
    next.catch(() => {}); // seen at the next turn, unless `each` throws first
    const [from, to] = progress.take(chunk.rowCount);
    if (to > from) query.each(chunk, from, to);
    if (progress.isDone) return undefined;
  }
}
