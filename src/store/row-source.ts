/**
 * Batches as a table DuckDB reads from: rows go from the columns they came in straight into the vectors of the query that
 * writes them, without a table in between (which cost more than the writing).
 */
import {
  DOUBLE,
  type DuckDBDataChunk,
  DuckDBListValue,
  DuckDBTableFunction,
  type DuckDBType,
  type DuckDBValue,
  type DuckDBVector,
  INTEGER,
  LIST,
  USMALLINT,
  UTINYINT,
  VARCHAR,
} from '@duckdb/node-api';
import { BATCH_ROWS, type Batch, type ListBatch } from './batch.ts';
import { COLUMNS, type Column, carrierType, LISTS, NUMBERS, TEXTS } from './columns.ts';

const TYPE_OF: Readonly<Record<string, DuckDBType>> = {
  DOUBLE,
  VARCHAR,
  'DOUBLE[]': LIST(DOUBLE),
  'INTEGER[]': LIST(INTEGER),
  'UTINYINT[]': LIST(UTINYINT),
  'USMALLINT[]': LIST(USMALLINT),
};

/** Rows a call may give: DuckDB's vector. */
const MOST_ROWS = 2048;

const EMPTY = new DuckDBListValue([]);

export class RowSource {
  readonly name = 'waiting';
  #batches: readonly Batch[] = [];
  #next = 0;

  /** What queries from here on read. A query that is run again reads it again. */
  set(batches: readonly Batch[]): void {
    this.#batches = batches;
  }

  asTableFunction(): DuckDBTableFunction {
    return DuckDBTableFunction.create({
      name: this.name,
      bindFunction: (info) => {
        for (const c of COLUMNS as readonly Column[])
          info.addResultColumn(c.name, TYPE_OF[carrierType(c)] as DuckDBType);
      },
      initFunction: (info) => {
        info.setMaxThreads(1); // rows stay in order
        this.#next = 0;
      },
      mainFunction: (_, chunk) => this.#fill(chunk),
    });
  }

  /** The next whole batches that fit one chunk; none left: no rows, which ends the scan. */
  #fill(chunk: DuckDBDataChunk): void {
    const first = this.#next;
    let rows = 0;
    while (this.#next < this.#batches.length && rows + this.#batches[this.#next]!.rows <= MOST_ROWS) {
      rows += this.#batches[this.#next++]!.rows;
    }
    chunk.rowCount = rows;
    if (rows === 0) return;
    const batches = this.#batches.slice(first, this.#next);
    let index = 0;
    for (let c = 0; c < NUMBERS.length; c++) putNumbers(chunk.getColumnVector(index++), batches, c);
    for (let c = 0; c < TEXTS.length; c++) putTexts(chunk.getColumnVector(index++), batches, c);
    for (let c = 0; c < LISTS.length; c++) putLists(chunk.getColumnVector(index++), batches, c);
  }
}

function putNumbers(vector: DuckDBVector, batches: readonly Batch[], column: number): void {
  // Private to the binding, and read by name; where it is not what we expect, values go one by one by its public call.
  const items: unknown = Reflect.get(vector, 'items');
  let row = 0;
  for (const { numbers, rows } of batches) {
    const values = numbers.subarray(column * BATCH_ROWS, column * BATCH_ROWS + rows);
    if (items instanceof Float64Array) items.set(values, row);
    else for (let i = 0; i < rows; i++) vector.setItem(row + i, values[i] as DuckDBValue);
    row += rows;
  }
  vector.flush();
}

function putTexts(vector: DuckDBVector, batches: readonly Batch[], column: number): void {
  let row = 0;
  for (const { texts, rows } of batches) {
    const values = texts[column]!;
    for (let i = 0; i < rows; i++) vector.setItem(row++, values[i] ?? null);
  }
  vector.flush();
}

function putLists(vector: DuckDBVector, batches: readonly Batch[], column: number): void {
  let row = 0;
  for (const { lists, rows } of batches) {
    const { values, ends } = lists[column] as ListBatch;
    let from = 0;
    for (let i = 0; i < rows; i++) {
      const to = ends[i]!;
      // A typed array does for the items: only its length and elements are read.
      const list = to === from ? EMPTY : new DuckDBListValue(values.subarray(from, to) as unknown as DuckDBValue[]);
      vector.setItem(row++, list);
      from = to;
    }
  }
  vector.flush();
}
