/**
 * A real process, killed without warning: from the built program, since the writing thread is. It says on its standard
 * output what it had added when each flush was done, so that what must have survived is known without a clock.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RequestRecord } from '../core/record.ts';
import { openRun } from './index.ts';

let dir = '';
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'goodput-killed-'));
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

/**
 * Operations end 50 ms after they were offered, one is offered every 2 ms: about 25 are open at any time. A line goes out
 * whenever a new cursor is in place.
 */
const PROGRAM = `
import { readdirSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import { contractOf, Recorder, wallClock } from '${new URL('../../dist/core/index.js', import.meta.url)}';
import { createRun } from '${new URL('../../dist/store/index.js', import.meta.url)}';
const clock = wallClock({ now: () => performance.now(), setTimeout, clearTimeout, setImmediate, clearImmediate });
const meta = { epochWall: performance.timeOrigin, seed: 1, contract: contractOf({ ttft: 500 }), workload: {}, target: {}, versions: {}, machine: {} };
const run = await createRun(process.argv[2], 'killed', meta, { clock });
const open = new Map();
let offered = 0;
let ended = 0;
run.track(() => ({ offered, open: [...open.values()] }));
setInterval(() => {
  const operation = offered++;
  const scheduled = clock.now();
  const spec = { operation, attempt: 0, class: 'default', inputTokens: 8, outputTokens: 2, choices: 1, stream: true, ignoreEos: false };
  const recorder = new Recorder(spec, scheduled);
  open.set(operation, { operation, attempt: 0, scheduled, class: 'default' });
  recorder.dispatched(scheduled);
  setTimeout(() => {
    const t = clock.now();
    recorder.event(t, { outputs: [{ choice: 0, kind: 'text', tokens: 1 }], finishes: [{ choice: 0, reason: 'stop' }] }, false);
    recorder.ended(t, { kind: 'closed' });
    open.delete(operation);
    run.add(recorder.record());
    ended++;
  }, 50);
}, 2);
let written = 0;
setInterval(() => {
  if (run.counts.written === written) return;
  written = run.counts.written;
  console.log(JSON.stringify({ folder: run.folder, written, ended, offered }));
}, 10);
`;

interface Said {
  readonly folder: string;
  readonly written: number;
  readonly ended: number;
  readonly offered: number;
}

/** Runs the program until it has spoken `times` times, kills it, and gives back the last it said. */
async function killAfter(times: number): Promise<Said> {
  const program = join(dir, 'program.mjs');
  writeFileSync(program, PROGRAM);
  const child: ChildProcess = spawn(process.execPath, [program, dir], { stdio: ['ignore', 'pipe', 'inherit'] });
  const closed = new Promise((resolve) => child.once('close', resolve));
  let said: Said | undefined;
  let n = 0;
  for await (const line of createInterface({ input: child.stdout! })) {
    said = JSON.parse(line) as Said;
    if (++n === times) child.kill('SIGKILL');
  }
  await closed;
  if (!said || n < times) throw new Error('the program ended by itself');
  return said;
}

describe('a killed run', () => {
  it('keeps all that was written, knows what was open, and adds up', async () => {
    const said = await killAfter(2);
    const cursor = JSON.parse(readFileSync(join(said.folder, 'cursor.json'), 'utf8'));
    const run = await openRun(said.folder);
    expect(run.status).toBe('cut');
    const operations: RequestRecord[] = [];
    await run.operations((r) => operations.push(r));
    const done = operations.filter((r) => r.outcome === 'completed');
    const undecided = operations.filter((r) => r.outcome === 'undecided');
    expect(run.problems).toEqual([]);
    expect(done.length).toBeGreaterThanOrEqual(said.written);
    expect(said.written).toBeGreaterThan(0);
    expect(undecided.length).toBeGreaterThan(0);
    expect(undecided.every((r) => r.reason === 'cut' && r.phase === 'unsent')).toBe(true);
    // Nothing offered before the cursor was written is missing, nothing is there twice.
    const indexes = operations.map((r) => r.operation).sort((a, b) => a - b);
    expect(new Set(indexes).size).toBe(indexes.length);
    expect(indexes.slice(0, cursor.offered)).toEqual(Array.from({ length: cursor.offered }, (_, i) => i));
    // What the program had ended when it last spoke, less at most what ended since the flush before.
    expect(done.length + undecided.length).toBeGreaterThanOrEqual(cursor.offered);
    expect(readdirSync(said.folder).filter((f) => f === 'run.json')).toEqual(['run.json']);
  });
});

/** Exits by itself while a large flush is under way in the writing thread. */
const EXITING = `
${PROGRAM.slice(0, PROGRAM.indexOf('const open ='))}
for (let operation = 0; operation < 20000; operation++) {
  const spec = { operation, attempt: 0, class: 'default', inputTokens: 8, outputTokens: 2, choices: 1, stream: true, ignoreEos: false };
  const recorder = new Recorder(spec, operation);
  recorder.ended(operation + 1, { kind: 'refused', detail: 'full' });
  run.add(recorder.record());
}
run.flush();
console.log(run.folder);
const look = () => (readdirSync(run.folder).some((f) => f.startsWith('requests-')) ? process.exit(7) : setImmediate(look));
look();
`;

describe('a process that exits while a segment is being written', () => {
  it('ends as it meant to, with the segment whole', async () => {
    const program = join(dir, 'exiting.mjs');
    writeFileSync(program, EXITING);
    const child = spawn(process.execPath, [program, dir], { stdio: ['ignore', 'pipe', 'inherit'] });
    const ended = new Promise((resolve) => child.once('close', (code, signal) => resolve(signal ?? code)));
    let folder = '';
    for await (const line of createInterface({ input: child.stdout! })) folder = line;
    expect(await ended).toBe(7);
    expect(readdirSync(folder).filter((f) => f.endsWith('.tmp'))).toEqual([]);
    const run = await openRun(folder);
    let rows = 0;
    await run.records(() => rows++);
    expect(rows).toBeGreaterThan(0);
  });
});
