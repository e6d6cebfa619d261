/**
 * Batches to Parquet segments, by an in-memory DuckDB of one thread. Runs in the writing thread. Batches are held as they
 * came until the segment that has them is in place, so that a failed write (disk full, folder gone) loses none: the next
 * flush tries again.
 */
import { existsSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import {
  DOUBLE,
  type DuckDBConnection,
  DuckDBDataChunk,
  DuckDBInstance,
  DuckDBListValue,
  type DuckDBType,
  type DuckDBValue,
  INTEGER,
  LIST,
  USMALLINT,
  UTINYINT,
  VARCHAR,
} from '@duckdb/node-api';
import { BATCH_ROWS, type Batch } from './batch.ts';
import { COLUMNS, type Column, carrierType, LISTS, NUMBERS, TEXTS, toStored } from './columns.ts';
import { quote, writeJson } from './json.ts';
import { segmentName, segmentsOf } from './segments.ts';

/** Batches a segment: bounds what DuckDB holds at once. 64 × 256 rows. */
const SEGMENT_BATCHES = 64;
/** Rows a row group: bounds what a writer and a reader hold; a multiple of DuckDB's vector of 2,048. */
const ROW_GROUP = 16_384;
const PARQUET = `FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION V2, ROW_GROUP_SIZE ${ROW_GROUP}`;

const TYPE_OF: Readonly<Record<string, DuckDBType>> = {
  DOUBLE,
  VARCHAR,
  'DOUBLE[]': LIST(DOUBLE),
  'INTEGER[]': LIST(INTEGER),
  'UTINYINT[]': LIST(UTINYINT),
  'USMALLINT[]': LIST(USMALLINT),
};
const TYPES = COLUMNS.map((column: Column) => TYPE_OF[carrierType(column)] as DuckDBType);

export interface Written {
  readonly rows: number;
  readonly segments: number;
}

export class SegmentWriter {
  readonly #folder: string;
  readonly #db: DuckDBConnection;
  readonly #instance: DuckDBInstance;
  #waiting: Batch[] = [];
  #rows = 0;
  #segments = 0;

  private constructor(folder: string, instance: DuckDBInstance, db: DuckDBConnection) {
    this.#folder = folder;
    this.#instance = instance;
    this.#db = db;
  }

  static async open(folder: string, memory: string): Promise<SegmentWriter> {
    const instance = await DuckDBInstance.create(':memory:', { threads: '1', memory_limit: memory });
    const db = await instance.connect();
    const columns = COLUMNS.map((c) => `${c.name} ${carrierType(c)}`).join(', ');
    await db.run(`CREATE TABLE waiting (${columns})`);
    return new SegmentWriter(folder, instance, db);
  }

  get written(): Written {
    return { rows: this.#rows, segments: this.#segments };
  }

  add(batch: Batch): void {
    this.#waiting.push(batch);
  }

  /** Everything added so far into segments. @throws when one cannot be written; what it would have held is kept. */
  async flush(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batches = this.#waiting.slice(0, SEGMENT_BATCHES);
      const name = segmentName(this.#segments + 1);
      await this.#append(batches);
      const select = `SELECT ${COLUMNS.map(toStored).join(', ')} FROM waiting`;
      await this.#copy(select, name);
      this.#segments++;
      this.#rows += batches.reduce((sum, b) => sum + b.rows, 0);
      this.#waiting = this.#waiting.slice(batches.length);
    }
  }

  writeCursor(cursor: object): void {
    writeJson(this.#folder, 'cursor.json', { ...cursor, segments: this.#segments, rows: this.#rows });
  }

  /** All segments into one file. Until it is in place they stand; afterwards `removeCompacted` may take them away. */
  async compact(): Promise<void> {
    if (this.#segments < 2) return;
    const files = this.#files();
    const list = files.map((f) => quote(join(this.#folder, f))).join(', ');
    await this.#copy(`SELECT * FROM read_parquet([${list}])`, segmentName(1, this.#segments));
  }

  removeCompacted(): void {
    const name = segmentName(1, this.#segments);
    if (this.#segments < 2 || !existsSync(join(this.#folder, name))) return;
    for (let i = 1; i <= this.#segments; i++) rmSync(join(this.#folder, segmentName(i)), { force: true });
  }

  close(): void {
    this.#db.closeSync();
    this.#instance.closeSync();
  }

  #files(): string[] {
    return segmentsOf(readdirSync(this.#folder)).map((s) => s.file);
  }

  async #append(batches: readonly Batch[]): Promise<void> {
    await this.#db.run('TRUNCATE waiting');
    const appender = await this.#db.createAppender('waiting');
    for (const batch of batches) appender.appendDataChunk(chunkOf(batch));
    appender.closeSync();
  }

  async #copy(select: string, name: string): Promise<void> {
    const path = join(this.#folder, name);
    try {
      await this.#db.run(`COPY (${select}) TO ${quote(`${path}.tmp`)} (${PARQUET})`);
      renameSync(`${path}.tmp`, path);
    } catch (error) {
      rmSync(`${path}.tmp`, { force: true });
      throw error;
    }
  }
}

function chunkOf(batch: Batch): DuckDBDataChunk {
  const { rows } = batch;
  const chunk = DuckDBDataChunk.create(TYPES, rows);
  let index = 0;
  for (let c = 0; c < NUMBERS.length; c++) {
    const vector = chunk.getColumnVector(index++);
    for (let row = 0; row < rows; row++) vector.setItem(row, batch.numbers[c * BATCH_ROWS + row] as DuckDBValue);
    vector.flush();
  }
  for (let c = 0; c < TEXTS.length; c++) {
    const vector = chunk.getColumnVector(index++);
    const texts = batch.texts[c]!;
    for (let row = 0; row < rows; row++) vector.setItem(row, texts[row] ?? null);
    vector.flush();
  }
  for (let c = 0; c < LISTS.length; c++) {
    const vector = chunk.getColumnVector(index++);
    const { values, ends } = batch.lists[c]!;
    let from = 0;
    for (let row = 0; row < rows; row++) {
      const to = ends[row]!;
      // A typed array does for the items: only its length and elements are read.
      vector.setItem(row, new DuckDBListValue(values.subarray(from, to) as unknown as DuckDBValue[]));
      from = to;
    }
    vector.flush();
  }
  return chunk;
}
