/**
 * `goodput report` over 200,000 requests × 100 chunks: seconds and peak memory of the whole process.
 *
 *   node bench/accept/report.mjs [requests] [chunks]
 */
import { spawn } from 'node:child_process';
import { figures, MAIN, scratch } from './run.mjs';

const [requests = 200_000, chunks = 100] = process.argv.slice(2).map(Number);
const at = (path) => import(new URL(`../../dist/${path}`, import.meta.url));
const { createRun } = await at('store/index.js');
const { contractOf, timelineOf } = await at('core/index.js');
const { keyed } = await at('base/index.js');
const { hostClock } = await at('cli/host.js');

const dir = scratch();
const host = hostClock();
const contract = contractOf({ ttft: 500, tpot: 50 });
const run = await createRun(
  dir,
  'large',
  { epochWall: host.epochWall, seed: 1, contract, workload: { rate: 100 }, target: {}, versions: {}, machine: {} },
  { clock: host.clock },
);
run.track(() => ({ offered: requests, open: [], window: { start: 0, end: requests * 10 } }));
const u = keyed(1, 'report-scale');
for (let i = 0; i < requests; i++) {
  const scheduled = i * 10;
  const first = scheduled + 50 + Math.round(u() * 600_000) / 1000;
  const receipts = Array.from({ length: chunks }, (_, k) => Math.round((first + k * 20 + u() * 5) * 1000) / 1000);
  const last = receipts.at(-1);
  run.add({
    operation: i,
    attempt: 0,
    attempts: 1,
    lostHedge: false,
    class: 'default',
    asked: { input: 512, output: chunks, choices: 1, stream: true },
    stamps: {
      scheduled,
      dispatched: scheduled,
      sent: scheduled,
      headers: first,
      firstEvent: first,
      firstOutput: first,
      firstAnswer: first,
      lastOutput: last,
      ended: last,
    },
    timeline: timelineOf(receipts),
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
  });
  if (run.full) await run.drained();
}
await run.close();

const begin = process.hrtime.bigint();
// `-v` of time(1) would do too; the child says its own peak at exit, so that nothing need be installed.
const child = spawn(
  process.execPath,
  [
    '--import',
    `data:text/javascript,process.on('exit',()=>console.error('maxrss',process.resourceUsage().maxRSS))`,
    MAIN,
    'report',
    run.folder,
    '--json',
  ],
  { stdio: ['ignore', 'pipe', 'pipe'] },
);
let out = '';
let err = '';
child.stdout.on('data', (d) => (out += d));
child.stderr.on('data', (d) => (err += d));
await new Promise((resolve) => child.once('close', resolve));
const seconds = Number(process.hrtime.bigint() - begin) / 1e9;
const mb = Number(/maxrss (\d+)/.exec(err)?.[1]) / 1024;
const { figure, end } = figures();
figure(
  'all requests reported',
  `${requests}`,
  `${JSON.parse(out).cohort.offered}`,
  JSON.parse(out).cohort.offered === requests,
);
figure(`report over ${requests} × ${chunks}`, '≤ 5 s', `${seconds.toFixed(2)} s`, seconds <= 5);
figure('peak memory', '≤ 800 MB', `${mb.toFixed(0)} MB`, mb <= 800);
end();
