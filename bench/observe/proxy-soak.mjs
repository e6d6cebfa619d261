/**
 * A soak of the proxy: open-loop streams through it with 5 % faults of the server and aborts of callers, each caller
 * keeping its own count.
 *
 *   node bench/observe/proxy-soak.mjs [--minutes 2 | --hours 1] [--rate 20] [--dist DIR]
 *
 * Fails (exit 1) unless: the ledger adds up and nothing is pending at the end; every operation has its record in the run
 * folder; good, rejected and cancelled are what the callers counted; file descriptors return; memory does not grow.
 */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

const { values: flags } = parseArgs({
  options: {
    minutes: { type: 'string', default: '2' },
    hours: { type: 'string' },
    rate: { type: 'string', default: '20' },
    dist: { type: 'string', default: 'dist' },
  },
});
const length = (flags.hours !== undefined ? Number(flags.hours) * 3600 : Number(flags.minutes) * 60) * 1000;
const main = resolve(flags.dist, 'cli/main.js');
const dir = mkdtempSync(join(tmpdir(), 'goodput-soak-'));
const children = [];
function start(args, pattern) {
  const child = spawn(process.execPath, [main, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  let out = '';
  child.closed = new Promise((done) => child.once('close', (code) => done({ code, out })));
  return new Promise((done, fail) => {
    child.stdout.on('data', (d) => {
      out += d;
      const m = pattern.exec(out);
      if (m) done({ child, m });
    });
    child.once('close', () => fail(new Error(`ended early: ${out}`)));
  });
}
let seed = 7;
const random = () => {
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
  return seed / 2 ** 32;
};

/** Far from anything the machine itself may add: a stalled stream stalls for 20 s. */
const LIMIT_MS = 10_000;
const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });
const counts = { offered: 0, good: 0, rejected: 0, cancelled: 0, other: 0 };
let open = 0;

function ask(url, abortAfter) {
  counts.offered++;
  open++;
  const began = performance.now();
  let first;
  let text = '';
  let over = false;
  const end = (what) => {
    if (over) return;
    over = true;
    open--;
    counts[what]++;
  };
  const body = JSON.stringify({
    model: 'llama-3.1-8b',
    stream: true,
    max_tokens: 40,
    messages: [{ role: 'user', content: 'hi' }],
  });
  const req = request(
    `${url}/v1/chat/completions`,
    { method: 'POST', agent, headers: { 'content-type': 'application/json', 'content-length': body.length } },
    (res) => {
      if (res.statusCode === 429 || res.statusCode === 503) {
        res.resume();
        res.on('end', () => end('rejected'));
        return;
      }
      res.on('data', (bytes) => {
        const piece = bytes.toString('latin1');
        if (first === undefined && /"content":"[^"]/.test(piece)) first = performance.now() - began;
        text = (text + piece).slice(-4000);
      });
      res.on('end', () =>
        end(
          res.statusCode === 200 && /"finish_reason":"(length|stop)"/.test(text) && first <= LIMIT_MS
            ? 'good'
            : 'other',
        ),
      );
      res.on('error', () => end('other'));
    },
  );
  req.on('error', () => end('other'));
  req.end(body);
  if (abortAfter !== undefined) {
    setTimeout(() => {
      if (over) return;
      // An answer that has its finish is whole, whether or not its caller still waits.
      if (/"finish_reason":"(length|stop)"/.test(text)) return;
      end('cancelled');
      req.destroy();
    }, abortAfter);
  }
}

const failures = [];
const check = (what, ok, detail) => {
  console.log(`${ok ? 'ok  ' : 'FAIL'}  ${what}: ${detail}`);
  if (!ok) failures.push(what);
};
try {
  const emulator = await start(
    [
      'emulate',
      '--port',
      '0',
      '--ttft',
      '50ms',
      '--itl',
      '20ms',
      '--faults',
      'reset=2%,http-503=2%,error-in-stream=1%',
    ],
    /listening on (http:\S+)/,
  );
  const proxy = await start(
    [
      'proxy',
      '--upstream',
      emulator.m[1],
      '--listen',
      '127.0.0.1:0',
      '--admin',
      '127.0.0.1:0',
      '--slo',
      `ttft=${LIMIT_MS}ms,e2e=60s`,
      '--out',
      join(dir, 'runs'),
      '--json',
    ],
    /^(\{"listening".*\})$/m,
  );
  const { listening, admin, folder } = JSON.parse(proxy.m[1]);
  const { pid } = proxy.child;
  const rss = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]);
  const fds = () => readdirSync(`/proc/${pid}/fd`).length;
  const before = fds();
  const memory = [];
  const began = performance.now();
  let next = began;
  while (performance.now() - began < length) {
    ask(listening, random() < 0.05 ? random() * 800 : undefined);
    if (counts.offered % 50 === 0) memory.push(rss());
    next += (-Math.log(1 - random()) * 1000) / Number(flags.rate);
    await new Promise((done) => setTimeout(done, Math.max(0, next - performance.now())));
  }
  while (open > 0) await new Promise((done) => setTimeout(done, 50));
  agent.destroy();
  let live;
  for (let i = 0; i < 200; i++) {
    live = await (await fetch(`${admin}/live?windows=0`)).json();
    if (live.now.in_flight === 0) break;
    await new Promise((done) => setTimeout(done, 100));
  }
  await new Promise((done) => setTimeout(done, 6000)); // idle upstream connections are kept for 4 s
  const after = fds();
  proxy.child.kill('SIGTERM');
  await proxy.child.closed;
  const { outcomes, offered, pending } = live.total;
  const sum = Object.values(outcomes).reduce((a, b) => a + b, 0);
  check(
    'ledger',
    offered === counts.offered && sum + pending === offered && pending === 0,
    `${offered} offered, ${sum} final, ${pending} pending; callers ${counts.offered}`,
  );
  check('attainment', outcomes.good === counts.good, `${outcomes.good} good; callers ${counts.good}`);
  check('rejected', outcomes.rejected === counts.rejected, `${outcomes.rejected}; callers ${counts.rejected}`);
  check('cancelled', outcomes.cancelled === counts.cancelled, `${outcomes.cancelled}; callers ${counts.cancelled}`);
  const report = spawnSync(process.execPath, [main, 'report', folder, '--json'], {
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  const stored = JSON.parse(report.stdout);
  const outside = stored.run.outside_window ?? 0;
  const kept = JSON.parse(readFileSync(join(folder, 'cursor.json'), 'utf8'));
  check(
    'records',
    kept.rows === offered && kept.dropped === 0 && kept.open.length === 0,
    `${kept.rows} rows, ${kept.dropped} dropped, ${kept.open.length} open; report ${stored.cohort.offered} + ${outside}`,
  );
  check('descriptors', after <= before + 8, `${before} before, ${after} after`);
  const quarter = Math.max(1, memory.length >> 2);
  const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];
  const [early, late] = [median(memory.slice(quarter, 2 * quarter)), median(memory.slice(-quarter))];
  check('memory', late < early * 1.1 + 8192, `${early} kB in the second quarter, ${late} kB in the last`);
  console.log(JSON.stringify({ minutes: length / 60_000, counts, outcomes }));
} finally {
  for (const child of children) child.kill('SIGKILL');
  rmSync(dir, { recursive: true, force: true });
}
process.exit(failures.length > 0 ? 1 : 0);
