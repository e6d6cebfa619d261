// A whole trace on the wire. Build first, then:
//   node bench/workload/replay.mjs FILE [URL] [flags for goodput bench]     e.g. --time-scale 0.05, or --slice 0-300 for CI
// Replays FILE by the built command and holds the run folder against the file: is every arrival planned to the microsecond,
// and how late was it sent? Without a URL it starts a server of its own (listener.mjs) that remembers what prompts began with,
// and holds that against the file too: equal hash_ids must be equal text, and different ones different text. Ends with 1 when
// an arrival is missing or moved, when more than 1 % were sent later than the send-lag limit (2 ms, or 5 % of the TTFT limit),
// or when prefixes are not shared as the file says.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { load } from '../capacity/dist.mjs';

const [file, ...rest] = process.argv.slice(2);
if (!file) {
  console.log('usage: node bench/workload/replay.mjs FILE [URL] [flags for goodput bench]');
  process.exit(2);
}
const given = rest[0] && !rest[0].startsWith('-') ? rest[0] : undefined;
const flags = given ? rest.slice(1) : rest;
const dist = process.env.GOODPUT_DIST ?? join(import.meta.dirname, '..', '..', 'dist');
const { readReplay } = await load('cli/workload-file.js');
const { openRun } = await load('store/index.js');
const flag = (name) => {
  const at = flags.indexOf(name);
  return at < 0 ? undefined : flags[at + 1];
};
const scale = (name) => (flag(name) === undefined ? undefined : Number(flag(name)));
const trace = await readReplay(
  file,
  {
    ...(scale('--time-scale') && { timeScale: scale('--time-scale') }),
    ...(scale('--rate-scale') && { rateScale: scale('--rate-scale') }),
    ...(flag('--slice') && { slice: flag('--slice') }),
  },
  Number(flag('--seed') ?? 1),
);
const span = trace.at[trace.length - 1] / 1e6;
console.log(
  `${trace.name}: ${trace.length} requests in ${span.toFixed(1)} s, ${(trace.length / span).toFixed(1)}/s on average`,
);

/** Whole blocks the file names, and those the server saw: equal ids, and they alone, are equal text. */
async function prefixes() {
  const seen = await (await fetch(`${url}/seen`)).json();
  const { blocks } = trace;
  if (!blocks) {
    console.log(`received: ${seen.prompts} prompts of ${seen.words} words`);
    return true;
  }
  let named = 0;
  const different = new Set();
  for (let i = 0; i < trace.length; i++) {
    const from = blocks.offsets[i];
    const whole = Math.min(blocks.offsets[i + 1] - from, Math.floor(trace.input[i] / blocks.tokens));
    named += whole;
    for (let b = from; b < from + whole; b++) different.add(blocks.ids[b]);
  }
  console.log(
    `prefixes: the file names ${named} whole blocks, ${different.size} of them different; received ${seen.blocks}, ${seen.different} different`,
  );
  return seen.blocks === named && seen.different === different.size;
}

/** Runs a program to its end. */
async function run(program, args, ms) {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], timeout: ms });
  const text = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr']) child[name].setEncoding('utf8').on('data', (piece) => (text[name] += piece));
  const [status] = await once(child, 'close');
  return { ...text, status };
}

const listener = given
  ? undefined
  : spawn(process.execPath, [join(import.meta.dirname, 'listener.mjs')], { stdio: ['pipe', 'pipe', 'inherit'] });
const url = given ?? `http://127.0.0.1:${String((await once(listener.stdout, 'data'))[0]).trim()}`;
const out = mkdtempSync(join(tmpdir(), 'goodput-replay-'));
try {
  const done = await run(
    process.execPath,
    [
      join(dist, 'cli', 'main.js'),
      'bench',
      url,
      '--replay',
      file,
      '--slo',
      'ttft=1s',
      '--out',
      out,
      '--json',
      ...flags,
    ],
    2000 * span + 300_000,
  );
  const folder = /Run folder: (\S+)/.exec(done.stderr)?.[1];
  if (!folder) throw new Error(done.stderr.slice(-600) || `bench ended with ${done.status}`);
  const report = JSON.parse(done.stdout);
  const reader = await openRun(folder, { wallNow: Date.now() });
  const scheduled = new Float64Array(trace.length).fill(Number.NaN);
  const lags = [];
  const outcomes = {};
  await reader.operations((r) => {
    scheduled[r.operation] = r.stamps.scheduled;
    outcomes[r.outcome] = (outcomes[r.outcome] ?? 0) + 1;
    if (r.stamps.dispatched !== undefined) lags.push(r.stamps.dispatched - r.stamps.scheduled);
  });
  reader.close();
  // The first arrival of the file is at 0: what it was planned for is the run's origin.
  const origin = Math.round(1000 * scheduled[0]) - trace.at[0];
  let missing = 0;
  let moved = 0;
  let most = 0;
  for (let i = 0; i < trace.length; i++) {
    if (Number.isNaN(scheduled[i])) {
      missing++;
      continue;
    }
    const off = Math.abs(Math.round(1000 * scheduled[i]) - origin - trace.at[i]);
    most = Math.max(most, off);
    if (off > 0) moved++;
  }
  lags.sort((a, b) => a - b);
  const at = (p) => lags[Math.min(lags.length - 1, Math.floor(p * lags.length))];
  const limit = 50; // 5 % of the TTFT limit of 1 s
  const late = lags.filter((l) => l > limit).length;
  const ms = (x) => `${x.toFixed(3)} ms`;
  console.log(`planned: ${missing} missing, ${moved} moved, at most by ${most} µs`);
  console.log(
    `sent: lag p50 ${ms(at(0.5))}, p99 ${ms(at(0.99))}, most ${ms(at(1))}; ${late} of ${lags.length} later than ${limit} ms, ${lags.filter((l) => l > 2).length} later than 2 ms`,
  );
  console.log(
    `ended: ${Object.entries(outcomes)
      .map(([name, n]) => `${n} ${name}`)
      .join(', ')}; the client is ${report.client.verdict}`,
  );
  const shared = listener ? await prefixes() : true;
  process.exitCode = missing > 0 || moved > 0 || at(0.99) > limit || !shared ? 1 : 0;
} finally {
  listener?.kill();
  rmSync(out, { recursive: true, force: true });
}
