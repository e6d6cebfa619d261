/**
 * Calibration held against fresh traffic: `node bench/plan/calibrate.mjs URL [calibrate flags …]`. Runs `calibrate --collect`
 * on the endpoint, then open loops at half and at 80 % of the capacity the profile implies, and simulates the very same
 * arrivals with the profile. Prints mean TTFT, TPOT and E2E, measured and simulated. GOODPUT_DIST and GOODPUT_CLI name another
 * build; INPUT and OUTPUT the traffic's lengths; DURATION each loop's; PROFILE skips the collection.
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
} = process.env;
const root = GOODPUT_DIST ? pathToFileURL(`${GOODPUT_DIST}/`) : new URL('../../dist/', import.meta.url);
const load = (path) => import(new URL(path, root).href);
const { openRun } = await load('store/index.js');
const { parseProfile, ProfileStepModel, replay } = await load('plan/index.js');
const { ContinuousReplica, FrontendCluster, limitsOf, recordOf, simulate } = await load('sim/index.js');
const { measure } = await load('core/measure.js');
const { closedLoop, parseLength, REQUEST_DEFAULTS } = await load('workload/index.js');

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
const maxSeqs = profile.limits.max_seqs ?? profile.range.sequences[1];

const cluster = () => {
  const step = new ProfileStepModel(profile);
  const limits = limitsOf({
    kvBlocks: 1_000_000,
    maxSeqs,
    maxBatchedTokens: Math.max(maxSeqs, profile.limits.max_batched_tokens),
    prefixCaching: false,
  });
  return { step, cluster: new FrontendCluster(new ContinuousReplica(step, limits), step.frontendMs) };
};

// Capacity: what a closed loop with always somebody waiting completes a second.
const requests = {
  ...REQUEST_DEFAULTS,
  input: parseLength(INPUT, 'INPUT'),
  output: parseLength(OUTPUT, 'OUTPUT'),
  prompt: 'none',
};
let ended = 0;
let last = 0;
simulate(closedLoop(requests, 2 * maxSeqs, 1), cluster().cluster, (done) => {
  last = done.ended;
  return ++ended >= 2000;
});
const capacity = (1000 * ended) / last;
console.log(
  `capacity by the profile: ${capacity.toFixed(2)} requests/s; load average ${loadavg()
    .map((x) => x.toFixed(1))
    .join(' ')}`,
);

const means = (records) => {
  const sum = { ttft: [0, 0], tpot: [0, 0], e2e: [0, 0] };
  for (const r of records) {
    const m = measure(r);
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
  const { folder } = run(
    'bench',
    url,
    '--rate',
    rate,
    '--duration',
    DURATION,
    '--warmup',
    '2s',
    '--input',
    INPUT,
    '--output',
    OUTPUT,
    '--slo',
    'e2e=120s',
    '--deadline',
    '120s',
    '--seed',
    String(Math.round(1000 * share)),
    '--out',
    out,
    '--no-cool-down',
  );
  const reader = await openRun(folder, { wallNow: Date.now() });
  const records = [];
  await reader.records((r) => {
    if (r.outcome === 'completed') records.push(r);
  });
  reader.close();
  const simulated = [];
  const { step, cluster: c } = cluster();
  simulate(replay(records), c, (done) => void simulated.push(recordOf(done)));
  const [a, b] = [means(records), means(simulated)];
  const cells = Object.keys(a).map(
    (k) => `${k} ${a[k].toFixed(1)} → ${b[k].toFixed(1)} ms (${(100 * (b[k] / a[k] - 1)).toFixed(1)} %)`,
  );
  console.log(
    `${share} of capacity, ${rate}/s, ${records.length} requests: ${cells.join('; ')}; load ${loadavg()[0].toFixed(1)}${step.beyond().length ? `; beyond: ${step.beyond().join(', ')}` : ''}`,
  );
}
