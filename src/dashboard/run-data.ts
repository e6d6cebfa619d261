/** What the pages ask of one run: its report, its columns, the chunks of some operations, one operation whole. */
import { readdirSync } from 'node:fs';
import { DuckDBInstance } from '@duckdb/node-api';
import { InputError } from '../base/errors.ts';
import type { Millis } from '../base/units.ts';
import { type Contract, foldAttempts, type RequestRecord, STAMPS, type Window } from '../core/index.ts';
import type { Report } from '../report/report.ts';
import { latentAutocorrelationTime } from '../stats/index.ts';
import { CARRIERS } from '../store/columns.ts';
import { decodeChunk } from '../store/decode.ts';
import { Progress, readFiles } from '../store/parquet.ts';
import { openRun, type RunReader } from '../store/reader.ts';
import { segmentsOf } from '../store/segments.ts';
import { TextReader } from '../store/vectors.ts';
import { asReport, keyOf } from './catalogue.ts';
import {
  type Chunks,
  ChunksBuilder,
  encodePacked,
  IN_COHORT,
  judgePacked,
  type Packed,
  Packer,
  STREAMED,
  type StampColumns,
  StampsBuilder,
} from './packed/index.ts';

/** How a folder becomes figures: the command's own path, handed in, so that there is one. */
export interface Readings {
  reportOf(run: RunReader): Promise<Report>;
  windowOf(run: RunReader): Promise<Window>;
  contractsOf(run: RunReader): Readonly<Record<string, Contract>>;
}

/** Bytes of columns kept, over all runs. */
const KEPT = 400 * 2 ** 20;
/** Operations whose chunks are asked for at once. */
export const MOST_ROWS = 5000;

interface Kept {
  readonly key: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** A report and where it comes from: stored by the run itself, or made now. */
export interface RunReport {
  readonly id: string;
  readonly status: RunReader['status'];
  readonly epoch: Millis;
  readonly report: Report;
  readonly problems: readonly string[];
}

/** One operation, whole: what its page shows. JSON. */
export interface Detail {
  /** Attempts folded; `timeline` as plain lists. */
  readonly record: DetailRecord;
  readonly attempts: readonly DetailRecord[];
  readonly stamps: readonly string[];
}
export type DetailRecord = Omit<RequestRecord, 'timeline'> & {
  readonly timeline: {
    readonly at: readonly number[];
    readonly tokens: readonly number[];
    readonly kind: readonly number[];
    readonly choice: readonly number[];
  };
};

export class RunData {
  readonly #readings: Readings;
  readonly #wallNow: () => Millis;
  /** In order of use. */
  readonly #packed = new Map<string, Kept>();
  readonly #making = new Map<string, Promise<Uint8Array<ArrayBuffer>>>();

  constructor(readings: Readings, wallNow: () => Millis) {
    this.#readings = readings;
    this.#wallNow = wallNow;
  }

  async report(id: string, folder: string): Promise<RunReport> {
    const run = await openRun(folder, { wallNow: this.#wallNow() });
    try {
      const stored = run.status === 'complete' ? asReport(run.report) : undefined;
      const report = stored ?? (await this.#readings.reportOf(run));
      return { id, status: run.status, epoch: run.meta.epochWall, report, problems: run.problems };
    } finally {
      run.close();
    }
  }

  /** The columns in their binary form. Made once, and again when the folder has changed. */
  async packed(folder: string): Promise<Uint8Array<ArrayBuffer>> {
    const key = keyOf(folder);
    const had = this.#packed.get(folder);
    if (had?.key === key) {
      this.#packed.delete(folder);
      this.#packed.set(folder, had);
      return had.bytes;
    }
    let making = this.#making.get(folder);
    if (!making) {
      making = packedOf(folder, this.#readings, this.#wallNow()).then(encodePacked);
      this.#making.set(folder, making);
      void making.catch(() => {}).then(() => this.#making.delete(folder));
    }
    const bytes = await making;
    this.#packed.set(folder, { key, bytes });
    let total = 0;
    for (const { bytes: b } of this.#packed.values()) total += b.byteLength;
    for (const [old, { bytes: b }] of this.#packed) {
      if (total <= KEPT || old === folder) break;
      total -= b.byteLength;
      this.#packed.delete(old);
    }
    return bytes;
  }

  async detail(folder: string, operation: number): Promise<Detail | undefined> {
    const attempts: RequestRecord[] = [];
    await eachRecord(folder, [operation], (record) => attempts.push(record));
    if (attempts.length === 0) return undefined;
    return { record: plain(foldAttempts(attempts)), attempts: attempts.map(plain), stamps: STAMPS };
  }
}

function plain(record: RequestRecord): DetailRecord {
  const { at, tokens, kind, choice } = record.timeline;
  return {
    ...record,
    timeline: { at: [...at], tokens: [...tokens], kind: [...kind], choice: [...choice] },
  };
}

/** One pass over the records. @param other judge all classes under another contract than the run's own. */
export async function packedOf(folder: string, readings: Readings, wallNow: Millis, other?: Contract): Promise<Packed> {
  const run = await openRun(folder, { wallNow });
  try {
    const window = await readings.windowOf(run);
    const finite = Number.isFinite(window.start) && Number.isFinite(window.end);
    const contracts = other ? {} : readings.contractsOf(run);
    const packer = new Packer(finite ? window : undefined, other ?? run.meta.contract, contracts);
    await run.operations((record) => void packer.add(record));
    return packer.finish((packed) => latentTimeOf(packed));
  } finally {
    run.close();
  }
}

/** Of the series behind the outcomes, as `core/cohort` takes it: TTFT, +∞ where it never came. */
function latentTimeOf(packed: Packed): number | undefined {
  const { contract, contracts, rows } = packed;
  if (contract.boundary !== 'scheduled') return undefined;
  const { excluded } = judgePacked(packed, contract, contracts);
  const latent = new Float64Array(rows);
  let n = 0;
  for (let i = 0; i < rows; i++) {
    if ((packed.flags[i]! & IN_COHORT) === 0 || excluded[i] === 1) continue;
    latent[n++] = latentOf(packed, i);
  }
  return latentAutocorrelationTime(latent.subarray(0, n));
}

export function latentOf(p: Packed, i: number): number {
  const ttft = p.ttft[i]!;
  if (!Number.isNaN(ttft)) return ttft;
  const e2e = p.e2e[i]!;
  return (p.flags[i]! & STREAMED) !== 0 || Number.isNaN(e2e) ? Number.POSITIVE_INFINITY : e2e;
}

/** The chunks of some operations, attempts folded. Those that have none are left out. */
export async function chunksOf(folder: string, operations: readonly number[]): Promise<Chunks> {
  const builder = new ChunksBuilder();
  await eachOperation(folder, operations, ({ operation, stamps, timeline }) => {
    if (timeline.length > 0) builder.add(operation, stamps.scheduled, timeline.at);
  });
  return builder.finish();
}

/** The chunks and stamps of the first operations by arrival: a page holds so many rows of a timeline. */
export async function firstTimelines(
  folder: string,
  packed: Packed,
  rows: number,
): Promise<{ readonly chunks: Chunks; readonly stamps: StampColumns }> {
  const chunks = new ChunksBuilder();
  const stamps = new StampsBuilder();
  for (let from = 0; from < Math.min(rows, packed.rows); from += MOST_ROWS) {
    const operations = [...packed.operation.subarray(from, Math.min(from + MOST_ROWS, rows))];
    await eachOperation(folder, operations, (record) => {
      stamps.add(record.operation, record.stamps);
      if (record.timeline.length > 0) chunks.add(record.operation, record.stamps.scheduled, record.timeline.at);
    });
  }
  return { chunks: chunks.finish(), stamps: stamps.finish() };
}

/** Some operations, attempts folded. */
async function eachOperation(
  folder: string,
  operations: readonly number[],
  each: (record: RequestRecord) => void,
): Promise<void> {
  const attempts = new Map<number, RequestRecord[]>();
  await eachRecord(folder, operations, (record) => {
    const had = attempts.get(record.operation);
    if (had) had.push(record);
    else attempts.set(record.operation, [record]);
  });
  for (const list of attempts.values()) each(foldAttempts(list));
}

/** Every row of some operations, read by their numbers: row groups without them are passed over. */
async function eachRecord(
  folder: string,
  operations: readonly number[],
  each: (record: RequestRecord) => void,
): Promise<void> {
  if (operations.length === 0) return;
  if (operations.length > MOST_ROWS || !operations.every((n) => Number.isSafeInteger(n) && n >= 0)) {
    throw new InputError(`ask for 1 to ${MOST_ROWS} operations by number`);
  }
  const sorted = [...operations].sort((a, b) => a - b);
  const [first, last] = [sorted[0] as number, sorted.at(-1) as number];
  const dense = last - first + 1 === sorted.length;
  const where = `operation BETWEEN ${first} AND ${last}${dense ? '' : ` AND operation IN (${sorted.join(', ')})`}`;
  const instance = await DuckDBInstance.create(':memory:', { threads: '2', memory_limit: '400MB' });
  const db = await instance.connect();
  try {
    const texts = new TextReader();
    for (let tries = 0; tries < 3; tries++) {
      const got: RequestRecord[] = [];
      const files = segmentsOf(readdirSync(folder)).map((s) => s.file);
      const whole = await readFiles(
        db,
        folder,
        files,
        {
          select: `SELECT ${CARRIERS.join(', ')}`,
          where,
          // A chunk's timelines share one buffer: kept ones are copied out of it.
          each: (chunk, from, to) =>
            decodeChunk(chunk, from, to, texts, (r) =>
              got.push({ ...r, timeline: { ...r.timeline, at: r.timeline.at.slice() } }),
            ),
          broken: () => {},
        },
        new Progress(),
      );
      if (!whole && tries < 2) continue; // compacted meanwhile: look again
      for (const record of got) each(record);
      return;
    }
  } finally {
    db.closeSync();
    instance.closeSync();
  }
}
