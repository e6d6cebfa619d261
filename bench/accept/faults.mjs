/**
 * Each fault of the emulator, 5 % each, mixed, under 50 req/s: every operation lands in the outcome its fault names, and
 * the cohort adds up.
 *
 *   node bench/accept/faults.mjs [seconds]
 */
import { join } from 'node:path';
import { emulator, figures, folderOf, goodput, readRun, readStamps, scratch } from './run.mjs';

/** Fault → the outcome a client must record. */
const EXPECT = {
  'early-eof': 'truncated',
  reset: 'failed',
  'error-in-stream': 'failed',
  malformed: 'failed',
  abort: 'failed',
  'http-429': 'rejected',
  'http-503': 'rejected',
  'http-500': 'failed',
  'queue-full-in-stream': 'rejected',
  empty: 'completed',
  'one-token': 'completed',
  'multi-token': 'completed',
  'no-usage': 'completed',
  'no-done': 'completed',
  stall: 'completed',
  buffer: 'completed',
  'slow-headers': 'completed',
  'role-first': 'completed',
};

const seconds = Number(process.argv[2] ?? 20);
const out = scratch();
const stamps = join(out, 'stamps.ndjson');
const server = await emulator([
  '--ttft',
  '30ms',
  '--itl',
  '10ms',
  '--stamps',
  stamps,
  ...Object.keys(EXPECT).flatMap((kind) => [
    '--fault',
    `${kind}=5%${kind === 'stall' ? ':500ms' : kind === 'slow-headers' ? ':300ms' : ''}`,
  ]),
]);
const run = await goodput([
  'bench',
  server.url,
  '--rate',
  '50',
  '--duration',
  `${seconds}s`,
  '--output',
  '20',
  '--input',
  '16',
  '--slo',
  'ttft=1s,tpot=200ms',
  '--out',
  out,
  '--json',
]);
await server.stop();
const { records, prefix } = await readRun(folderOf(run));
const byId = new Map(readStamps(stamps).map((s) => [s.id, s]));

const { figure, end } = figures();
const table = new Map();
let wrong = 0;
let joined = 0;
for (const r of records) {
  const s = byId.get(`${prefix}${r.operation}-${r.attempt}`);
  if (!s || r.reason === 'run-ended') continue;
  joined++;
  const deciding = s.faults.find((f) => EXPECT[f] !== 'completed');
  const want = deciding ? EXPECT[deciding] : 'completed';
  const key = `${(deciding ?? (s.faults.join('+') || 'none')).padEnd(22)} → ${r.outcome}${r.reason ? ` (${r.reason})` : ''}`;
  const right = r.outcome === want;
  if (!right) wrong++;
  if (deciding || !right)
    table.set(`${right ? '    ' : 'BAD '}${key}`, (table.get(`${right ? '    ' : 'BAD '}${key}`) ?? 0) + 1);
}
for (const [key, count] of [...table].sort()) console.log(`${String(count).padStart(5)} ${key}`);
const report = JSON.parse(run.stdout);
const { offered, window_s: _w, excluded: _e, ...classes } = report.cohort;
const sum = Object.values(classes).reduce((a, b) => a + b, 0);
figure(
  "operations joined to the emulator's own account",
  'all',
  `${joined} of ${records.length}`,
  joined > 0.95 * records.length,
);
figure('operations in the wrong outcome', '0', `${wrong} of ${records.length}`, wrong === 0);
figure('the cohort adds up', `${offered}`, `${sum}`, sum === offered && offered > 30 * seconds);
end();
