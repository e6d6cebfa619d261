/**
 * A flag the measuring and the writing thread share, so that a process that exits (Ctrl-C, a thrown error) first lets the
 * writing thread finish what it is at: a thread stopped inside DuckDB aborts the whole process.
 */

/** Two cells: is the writing thread at work; should it start nothing more. */
export type BusyCells = Int32Array<SharedArrayBuffer>;

const BUSY = 0;
const STOP = 1;
/** The longest an exit is held up, ms: a compaction on a slow disk. */
const PATIENCE = 10_000;

/** Busy from the start: the writing thread begins by opening its database. */
export function busyCells(): BusyCells {
  const cells = new Int32Array(new SharedArrayBuffer(8));
  cells[BUSY] = 1;
  return cells;
}

/** In the writing thread: takes up work, unless it should start nothing more. */
export function takeUp(cells: BusyCells): boolean {
  Atomics.store(cells, BUSY, 1);
  if (Atomics.load(cells, STOP) === 0) return true;
  layDown(cells);
  return false;
}

export function layDown(cells: BusyCells): void {
  Atomics.store(cells, BUSY, 0);
  Atomics.notify(cells, BUSY);
}

/** In the measuring thread, which blocks: from now on nothing is begun, and what was is done. */
export function stopAndWait(cells: BusyCells): void {
  Atomics.store(cells, STOP, 1);
  if (Atomics.load(cells, BUSY) === 1) Atomics.wait(cells, BUSY, 1, PATIENCE);
}
