/** Writing a run folder. */
import { hostname } from 'node:os';
import { Worker } from 'node:worker_threads';
import { InputError, messageOf, oneLine } from '../base/errors.ts';
import type { Millis } from '../base/units.ts';
import type { Cancel, Clock } from '../core/clock.ts';
import type { RequestRecord } from '../core/record.ts';
import type { Sink } from '../core/sink.ts';
import { BatchBuilder, buffersOf, weightOf } from './batch.ts';
import { busyCells, stopAndWait } from './busy.ts';
import { cursorToDisk } from './cursor.ts';
import { makeFolder, why } from './folder.ts';
import { writeJson } from './json.ts';
import { type CursorState, HEALTH_SCHEMA, type JsonObject, REPORT_SCHEMA, type RunMeta, START } from './meta.ts';
import type { FromWorker, ToWorker, WorkerStart } from './protocol.ts';
import type { Keep } from './retention.ts';
import { metaToDisk } from './run-json.ts';
import { workerUrl } from './worker-url.ts';

export interface RunOptions {
  /** A wall clock on the run's epoch (its `now()` is ms since `meta.epochWall`): segments are cut by it. */
  readonly clock: Clock;
  /** Milliseconds between segments; what a killed run may lose. */
  readonly every?: Millis;
  /** Bytes of records that may be pending before the sink is `full`. At twice that, records are dropped and counted. */
  readonly pendingBytes?: number;
  /** What of a run that never ends is kept. With it files are rolled as it goes, and not compacted at the end. */
  readonly keep?: Keep;
}

export interface RunCounts {
  /** Rows safely in segments. */
  readonly written: number;
  /** Rows not there yet. */
  readonly pending: number;
  /** Records not kept, because too many were pending. */
  readonly dropped: number;
}

/** A run folder being written: a sink of records (a row an attempt). Must be closed. */
export interface RunWriter extends Sink {
  /** The run folder. */
  readonly folder: string;
  readonly counts: RunCounts;
  /** What is wrong with writing just now (disk full, folder gone), one line; rows wait meanwhile. */
  readonly problem: string | undefined;
  /** Who is asked, at each flush, how far the run has come. */
  track(cursor: () => CursorState): void;
  /** Resolves when every record added so far is in a segment, or writing it failed (see `problem`). */
  flush(): Promise<void>;
  writeHealth(health: JsonObject): void;
  writeReport(report: JsonObject): void;
  /** Writes what is left, compacts the segments, marks the run closed. @throws InputError when rows could not be written. */
  close(): Promise<void>;
}

/** DuckDB's share of memory, in the writing thread. */
const WORKER_MEMORY = '256MB';

/**
 * Makes `dir/<time>-<name>/` with its `run.json` and opens it for records.
 * @throws InputError when the folder cannot be made or written.
 */
export async function createRun(dir: string, name: string, meta: RunMeta, options: RunOptions): Promise<RunWriter> {
  const folder = makeFolder(dir, name, meta.epochWall);
  guarded(folder, () => writeJson(folder, 'run.json', metaToDisk(name, meta)));
  const busy = busyCells();
  const atExit = (): void => stopAndWait(busy);
  process.once('exit', atExit);
  const worker = new Worker(workerUrl(), {
    workerData: {
      folder,
      memory: WORKER_MEMORY,
      busy,
      ...(options.keep && { keep: options.keep }),
    } satisfies WorkerStart,
  });
  worker.once('exit', () => process.removeListener('exit', atExit));
  await new Promise<void>((resolve, reject) => {
    const fail = (problem: string): void =>
      reject(
        new InputError(
          `${oneLine(folder)}: the writer did not start (${problem}); reinstall so that DuckDB fits this machine`,
        ),
      );
    worker.once('error', (error) => fail(messageOf(error)));
    worker.once('message', (message: FromWorker) => {
      worker.removeAllListeners('error');
      if (message.kind === 'broken') fail(message.problem);
      else resolve();
    });
  });
  const writer = new FolderWriter(folder, worker, options);
  guarded(folder, () => writer.begin());
  return writer;
}

class FolderWriter implements RunWriter {
  readonly folder: string;
  readonly #worker: Worker;
  readonly #clock: Clock;
  readonly #every: Millis;
  readonly #soft: number;
  readonly #host = hostname();
  #cursor: () => CursorState = () => START;
  #batch: BatchBuilder | undefined;
  /** Chunks of the last batch. */
  #chunks = 0;
  #added = 0;
  #written = 0;
  #dropped = 0;
  /** Bytes of rows not yet written, nearly. */
  #weight = 0;
  #sinceFlush = 0;
  /** Of the flush under way. */
  #inFlight: { weight: number; done: Promise<void>; settle: () => void } | undefined;
  #problem: string | undefined;
  #timer: Cancel | undefined;
  #closing: Promise<void> | undefined;
  readonly #exited: Promise<void>;
  #isGone = false;
  readonly #waiters: (() => void)[] = [];

  constructor(folder: string, worker: Worker, options: RunOptions) {
    this.folder = folder;
    this.#worker = worker;
    this.#clock = options.clock;
    this.#every = options.every ?? 1000;
    this.#soft = options.pendingBytes ?? 48 * 2 ** 20;
    worker.on('message', (message: FromWorker) => this.#heard(message));
    worker.on('error', (error) => this.#gone(messageOf(error)));
    this.#exited = new Promise((resolve) => {
      worker.on('exit', () => {
        this.#gone('it stopped');
        resolve();
      });
    });
    this.#arm();
  }

  get counts(): RunCounts {
    return { written: this.#written, pending: this.#added - this.#written, dropped: this.#dropped };
  }
  get problem(): string | undefined {
    return this.#problem;
  }
  get full(): boolean {
    return this.#weight >= this.#soft;
  }

  track(cursor: () => CursorState): void {
    this.#cursor = cursor;
  }

  /** The first cursor, so that a reader knows from the start that the run is being written. */
  begin(): void {
    writeJson(this.folder, 'cursor.json', { ...this.#snapshot(), segments: 0, rows: 0 });
  }

  add(record: RequestRecord): void {
    if (this.#closing) throw new Error('internal: a record was added to a closed run');
    if (this.#isGone || this.#weight >= 2 * this.#soft) {
      this.#dropped++;
      return;
    }
    const weight = weightOf(record);
    this.#weight += weight;
    this.#sinceFlush += weight;
    this.#added++;
    this.#batch ??= new BatchBuilder(this.#chunks);
    this.#batch.add(record);
    if (this.#batch.isFull) this.#send();
    if (this.#sinceFlush >= this.#soft / 4) this.#startFlush();
  }

  async drained(): Promise<void> {
    if (!this.full || this.#isGone) return;
    this.#startFlush();
    await new Promise<void>((resolve) => this.#waiters.push(resolve));
  }

  async flush(): Promise<void> {
    if (this.#inFlight) await this.#inFlight.done; // it may have been begun before the last record came
    this.#startFlush();
    await this.#inFlight?.done;
  }

  writeHealth(health: JsonObject): void {
    writeHealth(this.folder, health);
  }
  writeReport(report: JsonObject): void {
    writeReport(this.folder, report);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#timer?.();
    if (this.#inFlight) await this.#inFlight.done;
    this.#send();
    if (!this.#isGone) {
      const done = this.#await();
      this.#post({ kind: 'close', cursor: this.#snapshot() });
      await done;
    }
    await this.#exited; // not `terminate`: stopping a thread inside DuckDB aborts the process
    const { pending } = this.counts;
    if (this.#problem !== undefined) {
      const lost = pending > 0 ? `${pending} of ${this.#added} records could not be written` : 'the run was not closed';
      throw new InputError(
        `${oneLine(this.folder)}: ${lost} (${this.#problem}); what was written before is kept, make room and measure again`,
      );
    }
  }

  /** The timer re-arms only once the last flush is done: a slow disk gets fewer, larger segments. */
  #arm(): void {
    this.#timer = this.#clock.at(this.#clock.now() + this.#every, () => {
      this.#startFlush();
      const next = this.#inFlight?.done ?? Promise.resolve();
      next.then(() => {
        if (!this.#closing && !this.#isGone) this.#arm();
      });
    });
  }

  #startFlush(): void {
    if (this.#inFlight || this.#isGone || this.#closing) return;
    this.#send();
    this.#await();
    this.#post({ kind: 'flush', cursor: this.#snapshot(), now: this.#clock.now() });
  }

  /** Notes that all sent so far will be answered for. */
  #await(): Promise<void> {
    let settle = (): void => {};
    const done = new Promise<void>((resolve) => {
      settle = resolve;
    });
    this.#inFlight = { weight: this.#weight, done, settle };
    this.#sinceFlush = 0;
    return done;
  }

  #send(): void {
    if (!this.#batch) return;
    const batch = this.#batch.finish();
    this.#chunks = this.#batch.chunks;
    this.#batch = undefined;
    this.#post({ kind: 'rows', batch }, buffersOf(batch));
  }

  #snapshot(): object {
    return cursorToDisk(this.#cursor(), {
      time: this.#clock.now(),
      dropped: this.#dropped,
      pid: process.pid,
      host: this.#host,
    });
  }

  #post(message: ToWorker, transfer: ArrayBuffer[] = []): void {
    this.#worker.postMessage(message, transfer);
  }

  #heard(message: FromWorker): void {
    if (message.kind !== 'flushed' && message.kind !== 'closed') return;
    const flight = this.#inFlight;
    this.#inFlight = undefined;
    this.#written = message.rows;
    this.#problem = message.problem;
    if (flight && message.problem === undefined) this.#weight -= flight.weight;
    if (message.kind === 'closed') this.#isGone = true;
    this.#settle(flight);
  }

  /** The writing thread is no more: what it held is lost, and is said to be. */
  #gone(problem: string): void {
    if (this.#isGone) return;
    this.#isGone = true;
    this.#problem = `the writing thread failed: ${problem}`;
    const flight = this.#inFlight;
    this.#inFlight = undefined;
    this.#settle(flight);
  }

  #settle(flight: { settle: () => void } | undefined): void {
    flight?.settle();
    if (!this.full || this.#isGone) for (const resolve of this.#waiters.splice(0)) resolve();
    else if (this.#waiters.length > 0 && this.#problem === undefined) this.#startFlush();
  }
}

/** Puts `health.json` (the client's own health: send lag, event loop, CPU, …) into a run folder. */
export function writeHealth(folder: string, health: JsonObject): void {
  guarded(folder, () => writeJson(folder, 'health.json', { schema: HEALTH_SCHEMA, ...health }));
}

/** Puts `report.json` into a run folder. */
export function writeReport(folder: string, report: JsonObject): void {
  guarded(folder, () => writeJson(folder, 'report.json', { schema: REPORT_SCHEMA, ...report }));
}

function guarded(folder: string, work: () => void): void {
  try {
    work();
  } catch (error) {
    throw new InputError(
      `${oneLine(folder)}: cannot be written (${why(error)}); make room or choose another with --out DIR`,
      {
        cause: error,
      },
    );
  }
}
