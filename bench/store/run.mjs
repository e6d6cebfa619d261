/**
 * What a run folder costs: writes a run of R requests × C chunks, then reads it back and judges every operation, each in a
 * process of its own. Prints seconds, microseconds a row, blocking of the measuring thread, and peak memory.
 *
 *   npm run build && node bench/store/run.mjs [--rows 200000] [--chunks 100] [--dir DIR] [--keep]
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { contractOf, judgeRecord, wallClock } from '../../dist/core/index.js';
import { createRun, openRun } from '../../dist/store/index.js';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rows: { type: 'string', default: '200000' },
    chunks: { type: 'string', default: '100' },
    dir: { type: 'string' },
    keep: { type: 'boolean', default: false },
  },
});
const rows = Number(values.rows);
const chunks = Number(values.chunks);
const contract = contractOf({ ttft: 500, tpot: 50, gap: 200, e2e: 30_000 });

const half = positionals[0];
if (half === 'write') await write();
else if (half === 'read') await read(positionals[1]);
else await both();

async function both() {
  const dir = values.dir ?? mkdtempSync(join(tmpdir(), 'goodput-bench-'));
  const again = (...args) => {
    const here = fileURLToPath(import.meta.url);
    const all = [here, ...args, '--rows', values.rows, '--chunks', values.chunks, '--dir', dir];
    const child = spawnSync(process.execPath, all, { stdio: ['ignore', 'pipe', 'inherit'], encoding: 'utf8' });
    if (child.status !== 0) throw new Error(`${args[0]} failed`);
    return JSON.parse(child.stdout);
  };
  const written = again('write');
  const report = again('read', written.folder);
  console.log(JSON.stringify({ rows, chunks, written, read: report }, undefined, 2));
  if (!values.keep) rmSync(written.folder, { recursive: true });
  if (!values.keep && values.dir === undefined) rmSync(dir, { recursive: true });
}

async function write() {
  const clock = wallClock({ now: () => performance.now(), setTimeout, clearTimeout, setImmediate, clearImmediate });
  const meta = {
    epochWall: performance.timeOrigin,
    seed: 1,
    contract,
    workload: {},
    target: {},
    versions: {},
    machine: {},
  };
  const run = await createRun(values.dir, 'cost', meta, { clock });
  const make = recordMaker();
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const began = performance.now();
  let adding = 0;
  for (let operation = 0; operation < rows; ) {
    const some = Array.from({ length: Math.min(200, rows - operation) }, () => make(operation++));
    const from = performance.now();
    for (const record of some) run.add(record);
    adding += performance.now() - from;
    if (run.full) await run.drained();
    else await new Promise((resolve) => setImmediate(resolve));
  }
  const added = performance.now();
  await run.flush();
  const flushed = performance.now();
  const { user, system } = process.cpuUsage();
  const cpu = user + system; // of all threads, making the records included
  delay.disable();
  await run.close();
  const closed = performance.now();
  const { dropped } = run.counts;
  const files = readdirSync(run.folder).filter((f) => f.endsWith('.parquet'));
  const bytes = files.reduce((sum, file) => sum + statSync(join(run.folder, file)).size, 0);
  print({
    folder: run.folder,
    add_us_per_row: round((adding * 1000) / rows),
    write_us_per_row: round(((flushed - began) * 1000) / rows),
    all_added_s: round((added - began) / 1000),
    write_cpu_us_per_row: round(cpu / rows),
    compaction_s: round((closed - flushed) / 1000),
    event_loop_ms: {
      p50: round(delay.percentile(50) / 1e6),
      p99: round(delay.percentile(99) / 1e6),
      max: round(delay.max / 1e6),
    },
    dropped,
    files: files.length,
    mb: round(bytes / 1e6),
    ...memory(),
  });
}

async function read(folder) {
  const began = performance.now();
  const run = await openRun(folder);
  let operations = 0;
  let receipts = 0;
  await run.operations((record) => {
    operations++;
    receipts += record.timeline.length;
  });
  const built = performance.now();
  const { user, system } = process.cpuUsage();
  const cpu = user + system; // of all threads, start of the process included
  let good = 0;
  await run.operations((record) => {
    if (judgeRecord(record, contract).verdict.class === 'good') good++;
  });
  const judged = performance.now();
  run.close();
  print({
    status: run.status,
    operations,
    receipts,
    good,
    read_s: round((built - began) / 1000),
    read_cpu_s: round(cpu / 1e6),
    read_and_judge_s: round((judged - built) / 1000),
    ...memory(),
  });
}

function memory() {
  return { peak_rss_mb: round(process.resourceUsage().maxRSS / 1024) };
}
function round(x) {
  return Number(x.toPrecision(4));
}
function print(result) {
  console.log(JSON.stringify(result));
}

/** Requests with gaps of 10–30 ms that differ, as a server's do; a fixed generator, so that runs are alike. */
function recordMaker() {
  let state = 1;
  const random = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
  const grid = (t) => Math.round(t * 1000) / 1000;
  return (operation) => {
    const scheduled = grid(operation * 5 + random());
    const at = new Float64Array(chunks);
    let t = scheduled + 100 + 300 * random();
    for (let i = 0; i < chunks; i++) {
      at[i] = grid(t);
      t += 10 + 20 * random();
    }
    const dispatched = grid(scheduled + 0.1);
    return {
      operation,
      attempt: 0,
      attempts: 1,
      lostHedge: false,
      class: 'default',
      asked: { input: 512, output: chunks, choices: 1, stream: true },
      stamps: {
        scheduled,
        dispatched,
        connected: dispatched,
        sent: grid(dispatched + 0.2),
        headers: grid(at[0] - 1),
        firstEvent: at[0],
        firstOutput: at[0],
        firstAnswer: at[0],
        lastOutput: at[chunks - 1],
        ended: grid(at[chunks - 1] + 0.5),
      },
      connection: { reused: true, http: '1.1' },
      status: 200,
      timeline: {
        length: chunks,
        at,
        tokens: new Int32Array(chunks).fill(1),
        kind: new Uint8Array(chunks),
        choice: new Uint16Array(chunks),
      },
      streamed: true,
      usage: { input: 512, output: chunks },
      unseenEndTokens: 0,
      outcome: 'completed',
      reason: '',
      detail: '',
      phase: 'done',
      finish: 'length',
      finishReason: 'length',
      impliedEnd: false,
      events: chunks + 2,
      coalesced: 0,
      unclassified: 0,
      model: 'meta-llama/Llama-3.1-8B-Instruct',
    };
  };
}
