/**
 * What the client costs: CPU per event of the live engine and recorder against a bare undici dispatch loop that only
 * stamps, each in a process of its own, alternating, by the median; and the memory of many long streams.
 *
 *   npm run build && node bench/client/run.mjs [--runs 5] [--streams 200] [--itl 50] [--tokens 200]
 *                    [--server "./mock {port} {ttft} {itl} {tokens}"] [--no-memory] [--prof]
 *
 * Without --server a paced server of our own is used. Ratios are what counts: absolute times vary with the machine.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { parseArgs, promisify } from 'node:util';

const here = (name) => new URL(name, import.meta.url).pathname;
const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '5' },
    streams: { type: 'string', default: '200' },
    itl: { type: 'string', default: '50' },
    ttft: { type: 'string', default: '50' },
    tokens: { type: 'string', default: '200' },
    server: { type: 'string', default: `${process.execPath} ${here('server.mjs')} {port} {ttft} {itl} {tokens}` },
    'no-memory': { type: 'boolean', default: false },
    prof: { type: 'boolean', default: false },
  },
});
const median = (xs) => [...xs].sort((a, b) => a - b)[Math.floor(xs.length / 2)];

async function withServer(tokens, itl, use) {
  const port = await freePort();
  const words = { port, ttft: values.ttft, itl, tokens };
  const [command, ...args] = values.server.replace(/\{(\w+)\}/g, (_, name) => words[name]).split(/\s+/);
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let said = '';
  child.stdout.on('data', (text) => {
    said += text;
  });
  const exited = once(child, 'exit');
  try {
    for (let i = 0; !(await answers(port)); i++) {
      if (i > 100 || child.exitCode !== null) throw new Error(`the server did not start: ${values.server}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return await use(`http://127.0.0.1:${port}/v1/chat/completions`);
  } finally {
    child.kill('SIGTERM');
    await exited;
    console.log(`server: ${said.trim().split('\n').at(-1)}`);
  }
}

async function side(kind, url, streams, tokens, itl, spread = 1000) {
  const flags = values.prof && kind === 'live' ? ['--cpu-prof', '--cpu-prof-dir=cpu-prof'] : [];
  const args = [...flags, here('side.mjs'), kind, url, streams, tokens, values.ttft, itl, spread].map(String);
  const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 1e8 });
  return JSON.parse(stdout);
}

const ratios = [];
const costs = { bare: [], live: [] };
await withServer(values.tokens, values.itl, async (url) => {
  for (let run = 0; run < Number(values.runs); run++) {
    const pair = {};
    for (const kind of run % 2 === 0 ? ['bare', 'live'] : ['live', 'bare']) {
      const result = await side(kind, url, values.streams, values.tokens, values.itl);
      pair[kind] = result;
      costs[kind].push(result.cpu_us_per_event);
      const { p50, p99, max } = result.error_ms;
      console.log(
        `${kind}: ${result.cpu_us_per_event.toFixed(2)} µs of CPU an event, stamp error p50 ${p50.toFixed(2)} p99 ${p99.toFixed(2)} max ${max.toFixed(2)} ms, ${result.received} tokens`,
      );
    }
    ratios.push(pair.live.cpu_us_per_event / pair.bare.cpu_us_per_event);
  }
});
console.log(
  `CPU per event: bare ${median(costs.bare).toFixed(2)} µs, live ${median(costs.live).toFixed(2)} µs; ratio of medians ${(median(costs.live) / median(costs.bare)).toFixed(3)}, median of ratios ${median(ratios).toFixed(3)} (at most 1.3 wanted)`,
);
// In lock-step, as batching emits: all streams start at once, so their tokens are ready together.
await withServer(100, values.itl, async (url) => {
  const errors = { bare: { p50: [], p99: [] }, live: { p50: [], p99: [] } };
  for (let run = 0; run < Number(values.runs); run++) {
    for (const kind of run % 2 === 0 ? ['bare', 'live'] : ['live', 'bare']) {
      const { error_ms } = await side(kind, url, values.streams, 100, values.itl, 0);
      errors[kind].p50.push(error_ms.p50);
      errors[kind].p99.push(error_ms.p99);
    }
  }
  const [b50, b99, l50, l99] = [errors.bare.p50, errors.bare.p99, errors.live.p50, errors.live.p99].map(median);
  console.log(
    `lock-step: stamp error bare p50 ${b50.toFixed(2)} p99 ${b99.toFixed(2)}, live p50 ${l50.toFixed(2)} p99 ${l99.toFixed(2)} ms; ratio p50 ${(l50 / b50).toFixed(2)} p99 ${(l99 / b99).toFixed(2)} (at most 1.5 wanted)`,
  );
});
if (!values['no-memory']) {
  await withServer(1000, 50, async (url) => {
    const { peak_rss_mb, received } = await side('live', url, 1000, 1000, 50);
    console.log(
      `memory: ${peak_rss_mb.toFixed(0)} MB peak RSS at 1,000 streams of 1,000 tokens (${received} received; at most 300 MB wanted)`,
    );
  });
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

async function answers(port) {
  const { connect } = await import('node:net');
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.on('connect', () => resolve(true)).on('error', () => resolve(false));
    socket.on('connect', () => socket.destroy());
  });
}
