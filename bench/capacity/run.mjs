/**
 * How good are the capacities the search reports? `node bench/capacity/run.mjs [searches] [options]`, after `npm run build`.
 *
 *   searches        a regime, default 20 (the short form); 1000 is the long form
 *   --regime NAME   tpot, queue or preempt; default all
 *   --seed S        seed of the first search, default 1,000,000; searches take consecutive ones
 *   --workers N     default 2
 *   --minutes M     start no further search after so long
 *   --truth N       first work out the truths anew from N requests a rate and keep them (1000000)
 *   --json FILE     a line a search; those it already holds are counted and not made again, so that the long form can be run
 *                   in pieces
 */
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { REGIMES } from './regimes.mjs';
import { truthOf } from './truth.mjs';

const TRUTHS = new URL('./truth.json', import.meta.url);
const TARGET = { coverage: 0.93, width: 1.12, undecided: 0.1, cost: 0.5 };

const args = process.argv.slice(2);
const option = (name, otherwise) => {
  const at = args.indexOf(`--${name}`);
  return at < 0 ? otherwise : args.splice(at, 2)[1];
};
const only = option('regime');
const seed = Number(option('seed', 1_000_000));
const workers = Number(option('workers', 2));
const minutes = Number(option('minutes', Infinity));
const truth = option('truth');
const file = option('json');
const count = Number(args[0] ?? 20);
const names = only ? [only] : Object.keys(REGIMES);

const truths = existsSync(TRUTHS) ? JSON.parse(readFileSync(TRUTHS, 'utf8')) : {};
for (const name of names) {
  if (truth === undefined && truths[name]) continue;
  const t = truthOf(name, Number(truth ?? 1_000_000));
  truths[name] = t;
  writeFileSync(TRUTHS, `${JSON.stringify(truths, null, 1)}\n`);
}

let failed = false;
for (const name of names) {
  const t = truths[name];
  const started = Date.now();
  const results = await searches(name, kept(name));
  const decided = results.filter((r) => r.low !== null && r.high !== null);
  const covered = decided.filter((r) => r.low <= t.capacity && t.capacity <= r.high);
  // An interval that is missing an end covers when what it says is true: it is judged by the share undecided.
  const share = (a, b) => (b === 0 ? Number.NaN : a / b);
  const coverage = share(covered.length, decided.length);
  const width = median(decided.map((r) => r.high / r.low));
  const undecided = share(results.length - decided.length, results.length);
  const cost = median(results.map((r) => r.cost));
  const cost2 = median(results.map((r) => r.costOctave));
  const ok =
    coverage >= TARGET.coverage && width <= TARGET.width && undecided <= TARGET.undecided && cost <= TARGET.cost;
  failed ||= !ok;
  const regime = REGIMES[name];
  const low = decided.filter((r) => r.low > t.capacity).length;
  console.log(
    `${regime.name} (${regime.about})\n  truth ${t.capacity.toFixed(3)}/s ± ${(100 * t.error).toFixed(2)} %, from ${t.points.map((p) => p.requests).join(' + ')} requests\n` +
      `  ${results.length} searches, of seeds ${seed} to ${seed + count - 1}, ${((Date.now() - started) / 1000).toFixed(0)} s now: coverage ${covered.length} of ${decided.length}, ${percent(coverage)} (${low} too high, ${decided.length - covered.length - low} too low), ` +
      `median high/low ${width.toFixed(3)} (p90 ${quantile(
        decided.map((r) => r.high / r.low),
        0.9,
      ).toFixed(3)}), undecided ${percent(undecided)},\n` +
      `  median cost ${percent(cost)} of the grid over a factor of four, ${percent(cost2)} of one over a factor of two; median ${Math.round(median(results.map((r) => r.offered)))} requests in ${median(results.map((r) => r.runs))} runs` +
      `${ok ? '' : '   <-- below what it must reach'}`,
  );
}
process.exitCode = failed ? 1 : 0;

/** What the file already holds of these seeds. */
function kept(name) {
  if (!file || !existsSync(file)) return [];
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line.endsWith('}'))
    .map((line) => JSON.parse(line))
    .filter((r) => r.regime === name && r.seed >= seed && r.seed < seed + count);
}

function searches(name, results) {
  return new Promise((resolve, reject) => {
    const done = new Set(results.map((r) => r.seed));
    const wanted = Array.from({ length: count }, (_, i) => seed + i).filter((s) => !done.has(s));
    let running = 0;
    if (wanted.length === 0) resolve(results);
    const until = Date.now() + (minutes * 60_000) / names.length;
    for (let w = 0; w < Math.min(workers, wanted.length); w++) {
      const worker = new Worker(new URL('./worker.mjs', import.meta.url), { workerData: { name } });
      running++;
      const give = () => {
        if (wanted.length > 0 && Date.now() < until) worker.postMessage(wanted.shift());
        else {
          worker.postMessage(null);
          if (--running === 0) resolve(results);
        }
      };
      worker.on('message', (result) => {
        if (result !== 'ready') {
          results.push(result);
          if (file) appendFileSync(file, `${JSON.stringify({ regime: name, ...result })}\n`);
        }
        give();
      });
      worker.on('error', reject);
    }
  });
}

function quantile(values, p) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted.length === 0 ? Number.NaN : sorted[Math.min(sorted.length - 1, Math.floor(p * sorted.length))];
}
function median(values) {
  return quantile(values, 0.5);
}
function percent(x) {
  return `${(100 * x).toFixed(1)} %`;
}
