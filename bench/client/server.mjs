/**
 * A paced OpenAI-style streaming server: `node server.mjs PORT TTFT_MS ITL_MS TOKENS`. A role chunk at once, token k at
 * TTFT + k·ITL after the request was read, then finish, usage and [DONE]. Deadlines are absolute, so lateness does not
 * add up; frames are written uncorked; on SIGTERM it prints its own lateness, so that a run can be believed.
 */
import { createServer } from 'node:http';
import { performance } from 'node:perf_hooks';

const [port, ttft, itl, tokens] = process.argv.slice(2).map(Number);
const HEAD = '{"id":"chatcmpl-0123456789abcdef","object":"chat.completion.chunk","created":1732900000,"model":"mock",';
const frame = (rest) => `data: ${HEAD}${rest}}\n\n`;
const choice = (delta, finish) =>
  frame(`"choices":[{"index":0,"delta":${delta},"logprobs":null,"finish_reason":${finish}}]`);
const ROLE = choice('{"role":"assistant","content":""}', 'null');
const TOKEN = choice('{"content":" token"}', 'null');
const END =
  choice('{}', '"length"') +
  frame(`"choices":[],"usage":{"prompt_tokens":8,"completion_tokens":${tokens}}`) +
  'data: [DONE]\n\n';

let late = 0;
let count = 0;
let worst = 0;
/** Streams by due time: one timer for the earliest, `setImmediate` for the last two milliseconds before it. */
const open = new Set();
let armed = false;

function arm() {
  if (armed || open.size === 0) return;
  armed = true;
  let next = Number.POSITIVE_INFINITY;
  for (const s of open) if (s.due < next) next = s.due;
  const wait = next - performance.now() - 2;
  if (wait >= 1) setTimeout(fire, wait);
  else setImmediate(fire);
}

function fire() {
  armed = false;
  const now = performance.now();
  for (const s of open) {
    if (s.due > now) continue;
    const error = performance.now() - s.due;
    late += error;
    count++;
    if (error > worst) worst = error;
    s.res.write(TOKEN);
    s.sent++;
    s.due = s.start + ttft + s.sent * itl;
    if (s.sent === tokens) {
      open.delete(s);
      s.res.end(END);
    }
  }
  arm();
}

const server = createServer((req, res) => {
  req.resume().on('end', () => {
    const start = performance.now();
    res.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' });
    res.write(ROLE);
    const stream = { res, start, due: start + ttft, sent: 0 };
    open.add(stream);
    res.on('close', () => open.delete(stream));
    arm();
  });
});
server.keepAliveTimeout = 60_000;
server.listen(port, '127.0.0.1', 4096, () => console.log('ready'));
process.on('SIGTERM', () => {
  console.log(JSON.stringify({ late_mean_ms: late / Math.max(1, count), late_max_ms: worst, tokens: count }));
  process.exit(0);
});
