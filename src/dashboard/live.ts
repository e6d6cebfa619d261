/**
 * What is running now, second by second: of a run being written its cursor and new segments, of a search what its
 * `search.json` says, of a proxy its `/live`. Bounded whatever the length: the last `KEPT` seconds and running totals.
 */
import { readdirSync } from 'node:fs';
import { DuckDBInstance } from '@duckdb/node-api';
import { messageOf } from '../base/errors.ts';
import type { Millis } from '../base/units.ts';
import { type Contract, contractFor } from '../core/contract.ts';
import { judgeRecord, LEDGER, type LedgerClass } from '../core/judge.ts';
import type { RequestRecord } from '../core/record.ts';
import { quantile } from '../stats/quantile.ts';
import { CARRIERS } from '../store/columns.ts';
import { decodeChunk } from '../store/decode.ts';
import { Progress, readFiles } from '../store/parquet.ts';
import { openRun } from '../store/reader.ts';
import { segmentsOf } from '../store/segments.ts';
import { TextReader } from '../store/vectors.ts';

/** One second of a run. Figures over the operations that ended in it; null where none did. */
export interface Tick {
  /** Of the cursor, ms since the run's epoch. */
  readonly t: Millis;
  readonly offered: number;
  readonly open: number;
  readonly ended: number;
  readonly good: number;
  readonly bad: number;
  readonly tokens: number;
  readonly ttft_p50: Millis | null;
  readonly ttft_p99: Millis | null;
  readonly tpot_p50: Millis | null;
  readonly tpot_p99: Millis | null;
}

export interface LiveRun {
  readonly id: string;
  readonly status: 'running' | 'complete' | 'cut';
  readonly name: string;
  readonly epoch: Millis;
  readonly contract: Contract;
  /** Where the cohort's window lies, once known. */
  readonly window: readonly [start: Millis, end: Millis] | null;
  /** Of the operations that ended so far, warm-up and cool-down included. */
  readonly ledger: Readonly<Record<LedgerClass, number>>;
  readonly ticks: readonly Tick[];
}

/** Seconds kept: ten minutes. */
export const KEPT = 600;

/** Follows one run folder. `step` reads what is new; calls must not overlap. */
export class Tail {
  readonly #id: string;
  readonly #folder: string;
  readonly #contractsOf: (workload: Readonly<Record<string, unknown>>) => Readonly<Record<string, Contract>>;
  readonly #ledger = Object.fromEntries(LEDGER.map((c) => [c, 0])) as Record<LedgerClass, number>;
  readonly #ticks: Tick[] = [];
  readonly #texts = new TextReader();
  /** The last segment read, and the rows of each: a number a second. */
  #read = 0;
  readonly #rowsOf: number[] = [];
  #time: Millis = -1;
  #instance: DuckDBInstance | undefined;

  constructor(
    id: string,
    folder: string,
    contractsOf: (workload: Readonly<Record<string, unknown>>) => Readonly<Record<string, Contract>>,
  ) {
    this.#id = id;
    this.#folder = folder;
    this.#contractsOf = contractsOf;
  }

  async step(wallNow: Millis): Promise<LiveRun> {
    const run = await openRun(this.#folder, { wallNow });
    run.close();
    const { meta, cursor, status } = run;
    const of = contractFor(meta.contract, this.#contractsOf(meta.workload));
    if (cursor && cursor.time !== this.#time) {
      this.#time = cursor.time;
      const open = new Set(cursor.open.map((o) => o.operation));
      // Of an operation that was tried again the last row counts, and none while an attempt is under way.
      const ended = new Map<number, RequestRecord>();
      for (const record of await this.#rows(cursor.segments)) {
        if (!record.lostHedge && !open.has(record.operation)) ended.set(record.operation, record);
      }
      const ttft: number[] = [];
      const tpot: number[] = [];
      let good = 0;
      let bad = 0;
      let tokens = 0;
      for (const record of ended.values()) {
        const { metrics, verdict } = judgeRecord(record, of(record.class));
        this.#ledger[verdict.class]++;
        if (verdict.class === 'good') good++;
        else bad++;
        tokens += metrics.n ?? 0;
        if (metrics.ttft !== undefined) ttft.push(metrics.ttft);
        if (metrics.tpot !== undefined) tpot.push(metrics.tpot);
      }
      ttft.sort((a, b) => a - b);
      tpot.sort((a, b) => a - b);
      this.#ticks.push({
        t: cursor.time,
        offered: cursor.offered,
        open: cursor.open.length,
        ended: ended.size,
        good,
        bad,
        tokens,
        ttft_p50: quantile(ttft, 0.5) ?? null,
        ttft_p99: quantile(ttft, 0.99) ?? null,
        tpot_p50: quantile(tpot, 0.5) ?? null,
        tpot_p99: quantile(tpot, 0.99) ?? null,
      });
      if (this.#ticks.length > KEPT) this.#ticks.splice(0, this.#ticks.length - KEPT);
    }
    const window = cursor?.window;
    return {
      id: this.#id,
      status,
      name: meta.name,
      epoch: meta.epochWall,
      contract: meta.contract,
      window: window ? [window.start, window.end] : null,
      ledger: { ...this.#ledger },
      ticks: this.#ticks,
    };
  }

  close(): void {
    this.#instance?.closeSync();
    this.#instance = undefined;
  }

  /** Rows of the segments up to `upTo` that were not read yet. */
  async #rows(upTo: number): Promise<readonly RequestRecord[]> {
    const segments = segmentsOf(readdirSync(this.#folder)).filter((s) => s.last > this.#read && s.last <= upTo);
    if (segments.length === 0) return [];
    this.#instance ??= await DuckDBInstance.create(':memory:', { threads: '1', memory_limit: '200MB' });
    const db = await this.#instance.connect();
    const rows: RequestRecord[] = [];
    const take = (r: RequestRecord): void => {
      if (rows.length < MOST_ROWS_A_TICK) rows.push(r);
    };
    try {
      for (const { file, first, last } of segments) {
        // Small segments are compacted into one file, in their order: of it the rows read before are passed over.
        const progress = new Progress();
        let before = 0;
        for (let k = first; k <= this.#read; k++) before += this.#rowsOf[k] ?? 0;
        progress.again(before);
        let count = 0;
        const there = await readFiles(
          db,
          this.#folder,
          [file],
          {
            select: `SELECT ${CARRIERS.join(', ')}`,
            each: (chunk, from, to) => {
              count += to - from;
              decodeChunk(chunk, from, to, this.#texts, take);
            },
            broken: () => {},
          },
          progress,
        );
        if (!there) break; // compacted meanwhile: the next step finds it so
        this.#rowsOf[last] = count;
        this.#read = last;
      }
    } finally {
      db.closeSync();
    }
    return rows;
  }
}

/** A page opened on a run of hours reads what there is so far in one go: bounded all the same. */
const MOST_ROWS_A_TICK = 500_000;

/** A proxy's own snapshot, or why there is none. */
export async function snapshotOf(url: string, signal: AbortSignal): Promise<unknown> {
  try {
    const response = await fetch(url, { signal, redirect: 'error' });
    if (!response.ok) throw new Error(`HTTP ${response.status}`);
    const text = await response.text();
    if (text.length > 4_000_000) throw new Error('the answer is too long for a snapshot');
    return { url, snapshot: JSON.parse(text) };
  } catch (error) {
    return { url, problem: messageOf(error) };
  }
}
