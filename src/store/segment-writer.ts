/**
 * Batches to Parquet segments, by an in-memory DuckDB of one thread. Runs in the writing thread. Batches are held as they
 * came until the segment that has them is in place, so that a failed write (disk full, folder gone) loses none: the next
 * flush tries again.
 */
import { readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import type { Millis } from '../base/units.ts';
import type { Batch } from './batch.ts';
import { COLUMNS, toStored } from './columns.ts';
import { quote, writeJson } from './json.ts';
import { type Keep, type RowFile, toForget, toRoll } from './retention.ts';
import { RowSource } from './row-source.ts';
import { type Segment, segmentName, segmentsOf } from './segments.ts';

/** Batches a segment: bounds what DuckDB holds at once. 64 × 256 rows. */
const SEGMENT_BATCHES = 64;
/** Rows a row group: bounds what a writer and a reader hold; a multiple of DuckDB's vector of 2,048. */
const ROW_GROUP = 16_384;
/** Level 1 writes a fifth faster than the default and files 2 % larger. */
const PARQUET = `FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1, PARQUET_VERSION V2, ROW_GROUP_SIZE ${ROW_GROUP}`;
/** Bytes from which a segment is left as it is when the run is closed: writing it again would cost as much and gain nothing. */
const LARGE = 2 ** 19;

export interface Written {
  readonly rows: number;
  readonly segments: number;
}

export class SegmentWriter {
  readonly #folder: string;
  readonly #db: DuckDBConnection;
  readonly #instance: DuckDBInstance;
  readonly #source = new RowSource();
  #waiting: Batch[] = [];
  #rows = 0;
  #segments = 0;
  readonly #compacted: Segment[] = [];
  /** Row files in order, where the run keeps only some of them. */
  #files: RowFile[] = [];
  #forgotten = 0;

  private constructor(folder: string, instance: DuckDBInstance, db: DuckDBConnection) {
    this.#folder = folder;
    this.#instance = instance;
    this.#db = db;
    db.registerTableFunction(this.#source.asTableFunction());
  }

  static async open(folder: string, memory: string): Promise<SegmentWriter> {
    const instance = await DuckDBInstance.create(':memory:', { threads: '1', memory_limit: memory });
    return new SegmentWriter(folder, instance, await instance.connect());
  }

  get written(): Written {
    return { rows: this.#rows, segments: this.#segments };
  }

  add(batch: Batch): void {
    this.#waiting.push(batch);
  }

  /** Everything added so far into segments. @throws when one cannot be written; what it would have held is kept. */
  async flush(now: Millis = 0): Promise<void> {
    while (this.#waiting.length > 0) {
      const batches = this.#waiting.slice(0, SEGMENT_BATCHES);
      const name = segmentName(this.#segments + 1);
      this.#source.set(batches);
      await this.#copy(`SELECT ${COLUMNS.map(toStored).join(', ')} FROM ${this.#source.name}()`, name);
      this.#source.set([]);
      this.#segments++;
      const rows = batches.reduce((sum, b) => sum + b.rows, 0);
      this.#rows += rows;
      const { size: bytes } = statSync(join(this.#folder, name));
      this.#files.push({ first: this.#segments, last: this.#segments, rows, bytes, born: now, newest: now });
      this.#waiting = this.#waiting.slice(batches.length);
    }
  }

  writeCursor(cursor: object): void {
    writeJson(this.#folder, 'cursor.json', { ...cursor, segments: this.#segments, rows: this.#rows - this.#forgotten });
  }

  /** Keeps the folder within bounds: small files into larger ones, the oldest away. True when rows went. */
  async roll(keep: Keep, now: Millis): Promise<boolean> {
    const forget = toForget(this.#files, keep, now);
    this.#files = this.#files.slice(forget.length);
    for (const file of forget) {
      rmSync(join(this.#folder, segmentName(file.first, file.last)), { force: true });
      this.#forgotten += file.rows;
    }
    const small = toRoll(this.#files, keep, now);
    const [first] = small;
    const last = small.at(-1);
    if (first === undefined || last === undefined) return forget.length > 0;
    const list = small.map((f) => quote(join(this.#folder, segmentName(f.first, f.last)))).join(', ');
    const name = segmentName(first.first, last.last);
    await this.#copy(`SELECT * FROM read_parquet([${list}])`, name);
    for (const f of small) rmSync(join(this.#folder, segmentName(f.first, f.last)), { force: true });
    this.#files.splice(-small.length, small.length, {
      first: first.first,
      last: last.last,
      rows: small.reduce((sum, f) => sum + f.rows, 0),
      bytes: statSync(join(this.#folder, name)).size,
      born: first.born,
      newest: last.newest,
    });
    return forget.length > 0;
  }

  /**
   * Small segments that follow one another into one file. Until it is in place they stand; afterwards `removeCompacted` may
   * take them away.
   */
  async compact(): Promise<void> {
    let small: Segment[] = [];
    for (const segment of [...segmentsOf(readdirSync(this.#folder)), undefined]) {
      if (segment && statSync(join(this.#folder, segment.file)).size < LARGE) {
        small.push(segment);
        continue;
      }
      await this.#merge(small);
      small = [];
    }
  }

  async #merge(segments: readonly Segment[]): Promise<void> {
    if (segments.length < 2) return;
    const list = segments.map((s) => quote(join(this.#folder, s.file))).join(', ');
    const name = segmentName((segments[0] as Segment).first, (segments.at(-1) as Segment).last);
    await this.#copy(`SELECT * FROM read_parquet([${list}])`, name);
    this.#compacted.push(...segments);
  }

  removeCompacted(): void {
    for (const segment of this.#compacted.splice(0)) rmSync(join(this.#folder, segment.file), { force: true });
  }

  close(): void {
    this.#db.closeSync();
    this.#instance.closeSync();
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
