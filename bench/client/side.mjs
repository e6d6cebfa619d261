/**
 * One side of the comparison, in a process of its own: `node side.mjs bare|live URL STREAMS TOKENS TTFT_MS ITL_MS SPREAD_MS`.
 * Prints one line of JSON: CPU per output token once warmed up, stamp errors against the server's schedule, memory.
 */
import { performance } from 'node:perf_hooks';

const [kind, url, ...numbers] = process.argv.slice(2);
const [streams, tokens, ttft, itl, spread = 1000] = numbers.map(Number);
const BODY = { model: 'mock', messages: [{ role: 'user', content: 'hello' }], max_tokens: tokens, stream: true };

/** @type {{ warm(): Promise<unknown>; tokens(): number; start(done: (sent: number, at: ArrayLike<number>) => void): void; close(): Promise<void> }} */
const side = kind === 'bare' ? await bareSide() : await liveSide();

await side.warm();
await new Promise((resolve) => setTimeout(resolve, 300));
const errors = new Float64Array(streams * tokens);
let received = 0;
let left = streams;
const began = performance.now();
/** Stamps, too, are of code that is compiled: the first second of each stream is left out. */
const SETTLED = Math.min(tokens - 1, Math.ceil(1000 / itl));
/** Measured once the code is compiled: from here on. */
const WARM_UP_MS = 2500;
let cpu = process.cpuUsage();
let before = 0;
const eventsSeen = () => side.tokens();
setTimeout(() => {
  before = eventsSeen();
  cpu = process.cpuUsage();
}, WARM_UP_MS);
let peak = 0;
const memory = setInterval(() => {
  peak = Math.max(peak, process.memoryUsage.rss());
}, 250);
await new Promise((resolve) => {
  const one = () =>
    side.start((sent, at) => {
      for (let k = SETTLED; k < at.length && k < tokens; k++) errors[received++] = at[k] - (sent + ttft + k * itl);
      if (--left === 0) resolve();
    });
  // Spread over a second, tokens of different streams do not fall together; over nothing, they come in lock-step.
  for (let i = 0; i < streams; i++) setTimeout(one, (i * spread) / streams);
});
const spent = process.cpuUsage(cpu);
const measured = eventsSeen() - before;
clearInterval(memory);
const sorted = errors.subarray(0, received).sort();
const quantile = (p) => sorted[Math.min(received - 1, Math.floor(p * received))];
console.log(
  JSON.stringify({
    kind,
    received,
    seconds: (performance.now() - began) / 1000,
    cpu_us_per_event: (spent.user + spent.system) / measured,
    measured,
    error_ms: { p50: quantile(0.5), p99: quantile(0.99), max: sorted[received - 1] },
    peak_rss_mb: peak / 1e6,
  }),
);
await side.close();

/** The least that can be done over undici: dispatch, and a stamp for each callback. */
async function bareSide() {
  let seen = 0;
  const { Pool } = await import('undici');
  const target = new URL(url);
  const pool = new Pool(target.origin, { connections: null, pipelining: 1, headersTimeout: 0, bodyTimeout: 0 });
  const body = Buffer.from(JSON.stringify(BODY));
  const headers = { 'content-type': 'application/json', accept: 'text/event-stream' };
  return {
    warm: async () => {},
    tokens: () => seen,
    start(done) {
      let sent = 0;
      const at = new Float64Array(tokens + 8);
      let n = 0;
      pool.dispatch(
        { method: 'POST', path: target.pathname, headers, body },
        {
          onRequestStart() {
            sent = performance.now();
          },
          onResponseStart() {},
          onResponseData() {
            at[n++] = performance.now();
            if (n > 1 && n <= tokens + 1) seen++;
          },
          onResponseEnd() {
            done(sent, at.subarray(1, 1 + tokens)); // after the role chunk
          },
          onResponseError(_, error) {
            throw error;
          },
        },
      );
    },
    close: () => pool.close(),
  };
}

/** The engine and the recorder, as a benchmark uses them. */
async function liveSide() {
  const { liveEngine } = await import('../../dist/live/index.js');
  const { Recorder, wallClock } = await import('../../dist/core/index.js');
  const clock = wallClock({ now: () => performance.now(), setTimeout, clearTimeout, setImmediate, clearImmediate });
  const engine = liveEngine({ url, model: 'mock' }, clock);
  let operation = 0;
  const kept = [];
  return {
    warm: () => engine.warm(streams),
    tokens: () => engine.evidence().outputEvents,
    start(done) {
      const spec = {
        operation: operation++,
        attempt: 0,
        class: 'default',
        inputTokens: 8,
        outputTokens: tokens,
        choices: 1,
        stream: true,
        ignoreEos: false,
        prompt: 'hello',
      };
      const recorder = new Recorder(spec, clock.now());
      const ended = recorder.ended.bind(recorder);
      recorder.ended = (t, ending) => {
        ended(t, ending);
        const record = recorder.record();
        if (record.outcome !== 'completed') throw new Error(`${record.outcome}: ${record.reason} ${record.detail}`);
        kept.push(record);
        done(record.stamps.sent, record.timeline.at);
      };
      engine.submit(spec, recorder);
    },
    close: () => engine.close(),
  };
}
