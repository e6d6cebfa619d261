/**
 * Calibration held against fresh traffic: `node bench/plan/calibrate.mjs URL [calibrate flags …]`. Runs `calibrate --collect`
 * on the endpoint, finds the capacity in a closed loop, then runs open loops at half and at 80 % of it and simulates the very
 * same arrivals with the profile. Prints mean TTFT, TPOT and E2E, measured and simulated, from the schedule and from sending: a
 * profile knows nothing of what a busy client adds before. GOODPUT_DIST and GOODPUT_CLI name another
 * build; INPUT and OUTPUT the traffic's lengths (words, where the server
 * has no /tokenize); DURATION each open loop's, CLOSED the closed one's; PROFILE skips the collection.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { fileURLToPath, pathToFileURL } from 'node:url';

const [url, ...flags] = process.argv.slice(2);
const {
  GOODPUT_DIST,
  GOODPUT_CLI,
  PROFILE,
  INPUT = 'uniform:64-384',
  OUTPUT = 'uniform:16-64',
  DURATION = '25s',
  CLOSED = '12s',
} = process.env;
const root = GOODPUT_DIST ? pathToFileURL(`${GOODPUT_DIST}/`) : new URL('../../dist/', import.meta.url);
const room = (path) => import(new URL(path, root).href);
const { openRun } = await room('store/index.js');
const { parseProfile, ProfileStepModel, replay } = await room('plan/index.js');
const { limitsOf, recordOf, simulate, systemOf } = await room('sim/index.js');
const { measure } = await room('core/measure.js');

const cli = GOODPUT_CLI ?? fileURLToPath(new URL('cli/main.js', root));
const run = (...args) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [cli, ...args], { encoding: 'utf8', maxBuffer: 1e8 });
  const folder = /Run folder: (\S+)/.exec(stderr + stdout)?.[1];
  if (!folder && status !== 0) throw new Error(`${args[0]} ended ${status}: ${stderr.slice(-500)}`);
  return { folder, stdout };
};
const out = process.env.OUT ?? 'runs';

let file = PROFILE;
if (!file) {
  file = `${out}/profile.yaml`;
  console.log(run('calibrate', '--collect', url, '--out', out, '-o', file, ...flags).stdout);
}
const profile = parseProfile(readFileSync(file, 'utf8'), file);
const seen = profile.range.sequences[1];
// Where no limit was found, the engine's usual one stands: the largest batch seen is no limit.
const maxSeqs = profile.limits.max_seqs ?? 256;
const crowd = 2 * (profile.limits.max_seqs ?? seen);
const { max_batched_tokens: budget, kv_tokens: kvTokens, scheduler = 'continuous' } = profile.limits;

const cluster = () => {
  const step = new ProfileStepModel(profile);
  const limits = limitsOf({
    kvBlocks: kvTokens ? Math.ceil(kvTokens / 16) : 1_000_000,
    maxSeqs,
    maxBatchedTokens: Math.max(maxSeqs, budget),
    prefixCaching: false,
  });
  return { step, cluster: systemOf({ step, limits, scheduler, frontend: step.frontendMs }) };
};

const load = (...more) => {
  const lengths = ['--input', INPUT, '--output', OUTPUT, '--slo', 'e2e=300s', '--deadline', '300s', '--out', out];
  return run('bench', url, ...lengths, '--no-cool-down', ...more).folder;
};
const completed = async (folder) => {
  const reader = await openRun(folder, { wallNow: Date.now() });
  const records = [];
  await reader.records((r) => {
    if (r.outcome === 'completed') records.push(r);
  });
  reader.close();
  return records;
};

// Capacity: what a closed loop with always somebody waiting completes a second, between its first and its last quarter.
const closed = await completed(
  load('--concurrency', String(crowd), '--duration', CLOSED, '--warmup', '2s', '--seed', '7'),
);
const ends = closed.map((r) => r.stamps.ended).sort((a, b) => a - b);
const [from, to] = [Math.floor(ends.length / 4), Math.floor((3 * ends.length) / 4)];
const capacity = (1000 * (to - from)) / (ends[to] - ends[from]);
const mean = (of) => closed.reduce((sum, r) => sum + of(r), 0) / closed.length;
console.log(
  `capacity in a closed loop of ${crowd}: ${capacity.toFixed(2)} requests/s (mean prompt ${mean((r) => r.usage?.input ?? r.asked.input).toFixed(0)}, output ${mean((r) => r.usage?.output ?? r.asked.output).toFixed(0)} tokens); load average ${loadavg()
    .map((x) => x.toFixed(1))
    .join(' ')}`,
);

const means = (records, clock) => {
  const sum = { ttft: [0, 0], tpot: [0, 0], e2e: [0, 0] };
  for (const r of records) {
    const from = r.stamps[clock] ?? r.stamps.scheduled;
    const { tpot } = measure(r);
    const { firstOutput, ended } = r.stamps;
    const m = { tpot, ttft: firstOutput && firstOutput - from, e2e: ended && ended - from };
    for (const k of Object.keys(sum)) {
      if (m[k] === undefined) continue;
      sum[k][0] += m[k];
      sum[k][1]++;
    }
  }
  return Object.fromEntries(Object.entries(sum).map(([k, [s, n]]) => [k, s / n]));
};

for (const share of [0.5, 0.8]) {
  const rate = (share * capacity).toFixed(3);
  const records = await completed(
    load('--rate', rate, '--duration', DURATION, '--warmup', '2s', '--seed', String(Math.round(1000 * share))),
  );
  const cells = [];
  const beyond = new Set();
  for (const clock of ['scheduled', 'sent']) {
    const simulated = [];
    const { step, cluster: c } = cluster();
    simulate(replay(records, clock), c, (done) => void simulated.push(recordOf(done)));
    for (const what of step.beyond()) beyond.add(what);
    const [a, b] = [means(records, clock), means(simulated, clock)];
    const figures = Object.keys(a).map(
      (k) => `${k} ${a[k].toFixed(1)} → ${b[k].toFixed(1)} ms (${(100 * (b[k] / a[k] - 1)).toFixed(1)} %)`,
    );
    cells.push(`from ${clock} ${figures.join(', ')}`);
  }
  const lag =
    records.reduce((sum, r) => sum + ((r.stamps.sent ?? r.stamps.scheduled) - r.stamps.scheduled), 0) / records.length;
  console.log(
    `${share} of capacity, ${rate}/s, ${records.length} requests: ${cells.join('; ')}; client ${lag.toFixed(1)} ms before sending; load ${loadavg()[0].toFixed(1)}${beyond.size ? `; beyond: ${[...beyond].join(', ')}` : ''}`,
  );
}
