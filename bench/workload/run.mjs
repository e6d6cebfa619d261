// How long traces take to load, and how fast offers are drawn. Build first, then:
//   node bench/workload/run.mjs FILE…        each trace in a process of its own: time, memory, requests
//   node bench/workload/run.mjs --offers     offers a second of plain loads and mixes, no text
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const self = fileURLToPath(import.meta.url);
const dist = new URL('../../dist/', import.meta.url);
const args = process.argv.slice(2);

if (args[0] === '--one') {
  const { readReplay } = await import(new URL('cli/workload-file.js', dist));
  const before = performance.now();
  const trace = await readReplay(args[1], {}, 1);
  const ms = performance.now() - before;
  const span = trace.at[trace.length - 1] / 1e6;
  console.log(
    JSON.stringify({
      file: args[1].split('/').pop(),
      requests: trace.length,
      span_s: span,
      load_ms: Math.round(ms),
      peak_rss_mb: Math.round(process.resourceUsage().maxRSS / 1024),
      within: ms <= 1000 && process.resourceUsage().maxRSS / 1024 <= 200,
    }),
  );
} else if (args[0] === '--offers') {
  const { openLoop, openMix, REQUEST_DEFAULTS } = await import(new URL('workload/index.js', dist));
  const none = { ...REQUEST_DEFAULTS, prompt: 'none' };
  const spread = (kind) => ({ ...none, input: { kind, mean: 512, cv: 1 }, output: { kind, mean: 128, cv: 1 } });
  const one = { ...REQUEST_DEFAULTS, share: 1 };
  const arrivals = { process: 'poisson', rate: 10 };
  const loads = {
    'fixed lengths': () => openLoop(none, arrivals, 1),
    'lognormal lengths': () => openLoop(spread('lognormal'), arrivals, 1),
    'gamma lengths': () => openLoop(spread('gamma'), arrivals, 1),
    'two classes': () =>
      openMix(
        {
          classes: [
            { ...one, name: 'a' },
            { ...one, name: 'b' },
          ],
          prompt: 'none',
        },
        arrivals,
        1,
      ),
    'prefix of 256 tokens': () =>
      openMix(
        {
          classes: [{ ...one, name: 'a', prefix: { name: 'p', levels: [{ tokens: 256, branches: 8, skew: 1 }] } }],
          prompt: 'none',
        },
        arrivals,
        1,
      ),
  };
  for (const [name, make] of Object.entries(loads)) {
    let best = 0;
    for (let round = 0; round < 3; round++) {
      const workload = make();
      const n = 300_000;
      const before = performance.now();
      for (let i = 0; i < n; i++) workload.next();
      best = Math.max(best, n / (performance.now() - before));
    }
    console.log(`${name.padEnd(24)}${(best / 1000).toFixed(2)} M offers/s`);
  }
} else if (args.length === 0) {
  console.log('usage: node bench/workload/run.mjs FILE… | --offers');
  process.exitCode = 2;
} else {
  for (const file of args) {
    const { stdout, stderr, status } = spawnSync(process.execPath, [self, '--one', file], { encoding: 'utf8' });
    process.stdout.write(status === 0 ? stdout : stderr);
    if (status !== 0 || !JSON.parse(stdout).within) process.exitCode = 1;
  }
}
