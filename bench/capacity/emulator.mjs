/**
 * The same search on the emulator over HTTP and on the simulated engine behind it: do they agree?
 * `node bench/capacity/emulator.mjs [flags for the search over HTTP]`, after `npm run build`, on a machine that does nothing
 * else. Twenty minutes at most, unless `--budget` says otherwise.
 */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const dist = process.env.GOODPUT_DIST ?? join(import.meta.dirname, '..', '..', 'dist');
const main = join(dist, 'cli', 'main.js');
const MODEL = ['--model', 'llama-3.1-8b', '--gpu', 'h100-sxm'];
// Slots enough that a group of replications is offered in a minute, few enough that this machine can keep up.
const SEQS = ['--max-num-seqs', '16'];
const LOAD = ['--slo', 'ttft=250ms', '--input', 'lognormal:64,0.5', '--output', 'lognormal:64,0.5', '--json'];
const given = process.argv.slice(2);
const out = mkdtempSync(join(tmpdir(), 'goodput-capacity-'));

const simulated = search(['--simulate', '--ideal', ...MODEL, ...SEQS, ...LOAD, '--out', out]);
show('simulated', simulated);

const emulator = spawn(process.execPath, [main, 'emulate', ...MODEL, ...SEQS, '--port', '0'], {
  stdio: ['ignore', 'pipe', 'inherit'],
});
const url = await new Promise((resolve, reject) => {
  let text = '';
  emulator.stdout.on('data', (d) => {
    text += d;
    const m = /listening on (\S+)/.exec(text);
    if (m) resolve(m[1]);
  });
  emulator.once('exit', () => reject(new Error('the emulator did not start')));
});
let live;
try {
  live = search([
    url,
    ...LOAD,
    '--out',
    out,
    '--replications',
    '4',
    '--requests',
    '300',
    ...(given.includes('--budget') ? [] : ['--budget', '20m']),
    ...given,
  ]);
} finally {
  emulator.kill('SIGTERM');
  rmSync(out, { recursive: true, force: true });
}
show('emulator over HTTP', live);
const [a, b] = [simulated.capacity, live.capacity];
if (a.low === null || b.low === null || a.high === null || b.high === null) {
  console.log('not decided: nothing to compare');
  process.exitCode = 3;
} else {
  const middle = (c) => Math.sqrt(c.low * c.high);
  const overlap = a.low <= b.high && b.low <= a.high;
  const apart = Math.abs(middle(b) / middle(a) - 1);
  console.log(`intervals ${overlap ? 'overlap' : 'do NOT overlap'}, midpoints ${(100 * apart).toFixed(1)} % apart`);
  process.exitCode = overlap && apart <= 0.1 ? 0 : 1;
}

function search(flags) {
  const done = spawnSync(process.execPath, [main, 'capacity', ...flags], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 1e8,
  });
  if (!done.stdout) throw new Error(`capacity ended with ${done.status}`);
  return JSON.parse(done.stdout);
}

function show(name, { end, capacity, probes, offered, seconds }) {
  const voids = probes.filter((p) => p.verdict === 'void').length;
  console.log(
    `${name}: ${end}, ${capacity.low?.toFixed(2)} to ${capacity.high?.toFixed(2)} requests/s (${offered} requests, ${seconds.toFixed(0)} s of load, ${voids} void probes)`,
  );
}
