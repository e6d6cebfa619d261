/**
 * A closed loop of paced streams over plain sockets: `node proxy-client.mjs PORT STREAMS SECONDS [STAGGER_MS] [TOGETHER]`.
 * Stamps the first token of each answer and counts events; prints one JSON line. Streams start spread over STAGGER_MS, so
 * that they do not tick together: by the golden ratio, since even steps would fall on the same phase of the token interval
 * again and again. With TOGETHER, so many start, tick, end and ask again at the same time.
 */
import { connect } from 'node:net';

const [port, streams, seconds, stagger = 1000, together = 1] = process.argv.slice(2).map(Number);
const body = '{"model":"mock","stream":true,"messages":[{"role":"user","content":"hi"}]}';
const request = Buffer.from(
  `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
);
const TOKEN = Buffer.from('"content":" ');
const LAST = Buffer.from('0\r\n\r\n');
const ttfts = [];
let events = 0;
let requests = 0;
let broken = 0;
let open = 0;
let stopping = false;
const began = performance.now();

function stream(first) {
  const socket = connect({ host: '127.0.0.1', port, noDelay: true });
  let start = 0;
  let waiting = true;
  const ask = () => {
    start = performance.now();
    waiting = true;
    requests++;
    socket.write(request);
  };
  open++;
  socket.on('connect', ask);
  socket.on('data', (bytes) => {
    const t = performance.now();
    let at = bytes.indexOf(TOKEN);
    if (at >= 0 && waiting) {
      waiting = false;
      if (!first) ttfts.push(t - start);
      first = false; // the first answer of a stream pays for its connections
    }
    for (; at >= 0; at = bytes.indexOf(TOKEN, at + TOKEN.length)) events++;
    if (bytes.subarray(-LAST.length).equals(LAST)) {
      if (stopping) socket.destroy();
      else ask();
    }
  });
  socket.on('error', () => {});
  socket.on('close', () => {
    if (!stopping) broken++;
    if (--open === 0) report();
  });
}

function report() {
  ttfts.sort((a, b) => a - b);
  const q = (p) => ttfts[Math.floor(p * (ttfts.length - 1))];
  const { user, system } = process.cpuUsage();
  console.log(
    JSON.stringify({
      streams,
      requests,
      events,
      broken,
      ttft_p50: q(0.5),
      ttft_p99: q(0.99),
      cpu_us_per_event: (user + system) / events,
      seconds: (performance.now() - began) / 1000,
    }),
  );
  process.exit(0);
}

const GOLDEN = (Math.sqrt(5) - 1) / 2;
for (let i = 0; i < streams; i++) {
  setTimeout(() => stream(true), ((Math.floor(i / together) * GOLDEN) % 1) * stagger);
}
setTimeout(() => {
  stopping = true;
}, seconds * 1000);
setTimeout(report, (seconds + 30) * 1000).unref();
