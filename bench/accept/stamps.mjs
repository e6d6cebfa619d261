/**
 * The client's stamps against the emulator's own, on one machine and one monotonic clock: 200 streams × 20 tokens/s,
 * staggered, then in lock-step as batching emits them, and the send lag at 200 req/s. The error of a token is the client's
 * receipt less the emulator's hand-over to the socket.
 *
 *   node bench/accept/stamps.mjs [staggered|lockstep|lag]
 */
import { join } from 'node:path';
import { emulator, figures, folderOf, goodput, quantile, readRun, readStamps, scratch } from './run.mjs';

const which = process.argv[2];
const out = scratch();
const { figure, end } = figures();
const ms = (x) => `${x.toFixed(3)} ms`;

async function errorsOf(name, emulatorArgs, benchArgs) {
  const stamps = join(out, `${name}.ndjson`);
  const server = await emulator([...emulatorArgs, '--stamps', stamps]);
  const run = await goodput(['bench', server.url, '--out', out, '--name', name, '--json', ...benchArgs]);
  await server.stop();
  const { records, epoch, prefix } = await readRun(folderOf(run));
  const byId = new Map(readStamps(stamps).map((s) => [s.id, s]));
  const errors = [];
  let matched = 0;
  for (const r of records) {
    const s = byId.get(`${prefix}${r.operation}-${r.attempt}`);
    if (!s || r.outcome !== 'completed') continue;
    matched++;
    const shown = s.stamps_ms.filter((_, i) => s.shown?.[i] !== false);
    for (let i = 0; i < Math.min(shown.length, r.timeline.length); i++)
      errors.push(r.timeline.at[i] + epoch - shown[i]);
  }
  return { errors, matched, report: JSON.parse(run.stdout), records };
}

// 200 streams open at once at 20 tokens/s: 10 s answers of 200 tokens, 20 a second.
const STREAMS = [
  '--slo',
  'ttft=5s,tpot=500ms',
  '--rate',
  '20',
  '--arrivals',
  'constant',
  '--output',
  '200',
  '--input',
  '16',
  '--duration',
  '15s',
  '--warmup',
  '12s',
  '--deadline',
  '60s',
];

if (!which || which === 'staggered') {
  const { errors, matched, report } = await errorsOf(
    'staggered',
    ['--ttft', '50ms', '--itl', '50ms', '--stagger', '0.25ms'],
    STREAMS,
  );
  const [p50, p99] = [quantile(errors, 0.5), quantile(errors, 0.99)];
  console.log(
    `staggered: ${matched} streams, ${errors.length} tokens, ${report.client.verdict}, coalesced ${report.client.coalesced}`,
  );
  figure('stamp error p50, 200 × 20/s staggered', '≤ 0.5 ms', ms(p50), p50 <= 0.5);
  figure('stamp error p99, 200 × 20/s staggered', '≤ 3 ms', ms(p99), p99 <= 3);
}
if (!which || which === 'lag') {
  const { report, records } = await errorsOf(
    'lag',
    ['--ttft', '50ms', '--itl', '50ms'],
    [
      '--slo',
      'ttft=5s,tpot=500ms',
      '--rate',
      '200',
      '--output',
      '20',
      '--input',
      '16',
      '--duration',
      '10s',
      '--warmup',
      '3s',
      '--deadline',
      '60s',
    ],
  );
  const lags = records
    .filter((r) => r.stamps.dispatched !== undefined)
    .map((r) => r.stamps.dispatched - r.stamps.scheduled);
  const [p50, p99] = [quantile(lags, 0.5), quantile(lags, 0.99)];
  console.log(`lag: ${lags.length} requests at ${report.offered_rps} req/s`);
  figure('send lag p50 at 200 req/s, ~200 in flight', '≤ 0.3 ms', ms(p50), p50 <= 0.3);
  figure('send lag p99 at 200 req/s, ~200 in flight', '≤ 3 ms', ms(p99), p99 <= 3);
}
end();
