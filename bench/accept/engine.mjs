/**
 * Against a real engine that sends its own stamps with its usage (`server: {received, scheduled, stamps}`, CLOCK_MONOTONIC
 * ns, as the llama.cpp reference server does): 50 requests at a rate below and at one above what it carries. Client stamps
 * are held against the engine's own; overload must show as queueing in TTFT from `scheduled`, and nothing be omitted.
 *
 *   node bench/accept/engine.mjs URL BELOW ABOVE     # rates in requests/s
 */
import { figures, quantile } from './run.mjs';

const [url, below, above] = process.argv.slice(2);
if (!above) throw new Error('usage: node bench/accept/engine.mjs URL BELOW ABOVE');
const at = (path) => import(new URL(`../../dist/${path}`, import.meta.url));
const { DIALECTS } = await at('wire/index.js');
const { liveEngine, probe } = await at('live/index.js');
const { drive } = await at('drive/index.js');
const { openLoop, REQUEST_DEFAULTS } = await at('workload/index.js');
const { CohortReducer, contractOf, foldAttempts } = await at('core/index.js');
const { hostClock } = await at('cli/host.js');

const { figure, end } = figures();
const host = hostClock();
const { options } = await probe({ url });

/** The engine's stamps, by the client's own request: the last event of a response carries them. */
const own = [];
const chat = DIALECTS['openai.chat'];
DIALECTS['openai.chat'] = {
  ...chat,
  decoder: () => {
    const inner = chat.decoder();
    const key = {};
    own.push(key);
    return {
      ...inner,
      repeatable: false,
      event: (json, event) => {
        if (json.server) Object.assign(key, json.server);
        return inner.event(json, event);
      },
      end: () => inner.end(),
    };
  },
};

for (const [label, rate] of [
  ['below', Number(below)],
  ['above', Number(above)],
]) {
  own.length = 0;
  const engine = liveEngine(options, host.clock);
  const contract = contractOf({ ttft: 2000, tpot: 100 }, { deadline: 120_000 });
  const rows = new Map();
  const sink = {
    add: (r) => rows.set(r.operation, [...(rows.get(r.operation) ?? []), r]),
    full: false,
    drained: async () => {},
    close: async () => {},
  };
  const requests = { ...REQUEST_DEFAULTS, input: { kind: 'fixed', tokens: 16 }, output: { kind: 'fixed', tokens: 60 } };
  const run = drive(
    openLoop(requests, { process: 'poisson', rate }, 11),
    engine,
    host.clock,
    { contract, seed: 11, window: { warmup: 0, requests: 50, rate } },
    sink,
  );
  const result = await run.done;
  await engine.close();
  const cohort = new CohortReducer(contract, result.window);
  const records = [...rows.values()].map(foldAttempts);
  for (const r of records) cohort.add(r);
  const fold = cohort.finish();
  const q = (name, p) => quantile(fold.columns[name], p);

  // Join by order of receipt at the engine: stamps of one response lie between our `sent` and `ended`.
  const errors = [];
  const left = own
    .filter((o) => o.stamps?.length)
    .map((o) => o.stamps.map((ns) => Number(ns) / 1e6 - host.epochMonotonic));
  for (const r of records.filter((x) => x.outcome === 'completed')) {
    const mine = r.timeline.at;
    // The engine's series that fits best is this response's own: both have the same length and shape.
    let best;
    for (const series of left) {
      if (series.length !== mine.length) continue;
      const diff = series.map((t, i) => mine[i] - t);
      const worst = quantile(diff.map(Math.abs), 0.5);
      if (best === undefined || worst < best.worst) best = { worst, diff, series };
    }
    if (!best) continue;
    left.splice(left.indexOf(best.series), 1);
    errors.push(...best.diff);
  }
  const p99 = quantile(errors, 0.99);
  console.log(`\n${label}: ${rate} req/s, offered ${fold.offered}, ${JSON.stringify(fold.ledger)}`);
  console.log(
    `  TTFT from scheduled  p50 ${q('ttft', 0.5).toFixed(1)}  p90 ${q('ttft', 0.9).toFixed(1)}  p99 ${q('ttft', 0.99).toFixed(1)} ms`,
  );
  console.log(
    `  TPOT                 p50 ${q('tpot', 0.5).toFixed(2)}  p99 ${q('tpot', 0.99).toFixed(2)} ms;  E2E p50 ${q('e2e', 0.5).toFixed(0)} ms`,
  );
  console.log(
    `  client − engine stamps over ${errors.length} tokens: p50 ${quantile(errors, 0.5).toFixed(3)}  p99 ${p99.toFixed(3)}  max ${Math.max(...errors).toFixed(3)} ms`,
  );
  figure(`client stamps within 5 ms of the engine's at p99 (${label})`, '≤ 5 ms', `${p99.toFixed(2)} ms`, p99 <= 5);
  figure(
    `nothing omitted (${label})`,
    '50 offered, all final',
    `${fold.offered}, undecided ${fold.ledger.undecided}, unsent ${fold.ledger.unsent}`,
    fold.offered === 50 && fold.ledger.undecided === 0 && fold.ledger.unsent === 0,
  );
  if (label === 'above') {
    const order = records.filter((r) => r.stamps.firstOutput).sort((a, b) => a.operation - b.operation);
    const ttft = (r) => r.stamps.firstOutput - r.stamps.scheduled;
    const early = quantile(order.slice(0, 10).map(ttft), 0.5);
    const late = quantile(order.slice(40, 50).map(ttft), 0.5);
    figure(
      'overload shows as queueing in TTFT from scheduled',
      'grows over the run',
      `${early.toFixed(0)} ms for the first ten, ${late.toFixed(0)} ms for the last ten`,
      late > 2 * early,
    );
  }
}
end();
