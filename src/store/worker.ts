/** The writing thread: takes batches, writes segments, then the cursor that goes with them. One thing at a time. */
import { setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { layDown, takeUp } from './busy.ts';
import { why } from './folder.ts';
import type { FromWorker, ToWorker, WorkerStart } from './protocol.ts';
import { SegmentWriter } from './segment-writer.ts';

const port = parentPort;
if (!port) throw new Error('internal: store/worker.js must be started as a worker thread');
// Writing can wait, stamping cannot. On Linux 0 is the calling thread alone; elsewhere it would be the whole process.
if (process.platform === 'linux') setPriority(0, 19);
const { folder, memory, busy, keep } = workerData as WorkerStart;
const tell = (message: FromWorker): void => port.postMessage(message);

let writer: SegmentWriter | undefined;
let turn: Promise<void> = (async () => {
  writer = await SegmentWriter.open(folder, memory);
  tell({ kind: 'ready' });
})()
  .catch((error) => tell({ kind: 'broken', problem: why(error) }))
  .finally(() => layDown(busy));

port.on('message', (message: ToWorker) => {
  turn = turn.then(async () => {
    if (!takeUp(busy)) return;
    await handle(message);
    layDown(busy);
  });
});

async function handle(message: ToWorker): Promise<void> {
  if (!writer) return;
  switch (message.kind) {
    case 'rows':
      writer.add(message.batch);
      return;
    case 'flush': {
      const problem = await failing(async (w) => {
        await w.flush(message.now);
        w.writeCursor(message.cursor);
      });
      if (keep && problem === undefined) {
        // Where this fails the files stay as they are, and the cursor is still true of them.
        await failing(async (w) => {
          if (await w.roll(keep, message.now)) w.writeCursor(message.cursor);
        });
      }
      tell({ kind: 'flushed', rows: writer.written.rows, problem });
      return;
    }
    case 'close': {
      let problem = await failing((w) => w.flush());
      if (problem === undefined) {
        // Compaction is a convenience: when there is no room for it the segments stay as they are.
        const compacted = keep ? undefined : await failing((w) => w.compact());
        problem = await failing((w) => w.writeCursor({ ...message.cursor, closed: true }));
        if (compacted === undefined && problem === undefined) await failing((w) => w.removeCompacted());
      }
      writer.close();
      tell({ kind: 'closed', rows: writer.written.rows, problem });
      port?.close();
    }
  }
}

/** What went wrong, in a line, or nothing. */
async function failing(work: (writer: SegmentWriter) => Promise<void> | void): Promise<string | undefined> {
  try {
    await work(writer as SegmentWriter);
    return undefined;
  } catch (error) {
    return why(error);
  }
}
