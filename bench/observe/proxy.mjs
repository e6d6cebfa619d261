/**
 * What the proxy costs, against HAProxy and nginx on the same path in the same run.
 *
 *   node bench/observe/proxy.mjs [--tools DIR] [--dist DIR] [--streams 200] [--seconds 10] [--rounds 3] [--memory 1000]
 *                                [--together 1]
 *
 * Needs the paced server `mock` (gcc -O2 -o mock mock.c) in --tools or GOODPUT_TOOLS, haproxy and nginx. Prints, as medians
 * over the rounds: time to first token added to the direct path, CPU time per event, and memory a stream. Ratios within
 * one run are what counts; absolute times depend on the machine and on what else it does. Streams are independent of each
 * other; with --together N so many start, tick, end and ask again as one, which is the worst that a client can do.
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

const { values: flags } = parseArgs({
  options: {
    tools: { type: 'string', default: process.env.GOODPUT_TOOLS ?? '' },
    dist: { type: 'string', default: 'dist' },
    streams: { type: 'string', default: '200' },
    seconds: { type: 'string', default: '10' },
    rounds: { type: 'string', default: '3' },
    memory: { type: 'string', default: '1000' },
    together: { type: 'string', default: '1' },
    only: { type: 'string', default: 'haproxy,nginx,goodput' },
  },
});
const mockPath = join(flags.tools, 'mock');
if (!existsSync(mockPath)) {
  console.error('build mock.c first (gcc -O2 -o mock mock.c) and name its folder: --tools DIR or GOODPUT_TOOLS');
  process.exit(2);
}
const main = resolve(flags.dist, 'cli/main.js');
const dir = mkdtempSync(join(tmpdir(), 'goodput-proxy-bench-'));
const children = new Set();
const run = (command, args, options = {}) => {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options });
  children.add(child);
  child.once('close', () => children.delete(child));
  return child;
};
const stop = (child) =>
  new Promise((done) => {
    if (child.exitCode !== null || child.signalCode !== null) return done();
    child.once('close', done);
    child.kill('SIGTERM');
    setTimeout(() => child.kill('SIGKILL'), 5000).unref();
  });
const base = 20_000 + (process.pid % 20_000);
const ports = { mock: base, haproxy: base + 1, nginx: base + 2, goodput: base + 3, admin: base + 4 };

const listening = async (port) => {
  const { connect } = await import('node:net');
  for (let i = 0; i < 600; i++) {
    const ok = await new Promise((done) => {
      const socket = connect(port, '127.0.0.1', () => {
        socket.destroy();
        done(true);
      });
      socket.on('error', () => done(false));
    });
    if (ok) return;
    await new Promise((r) => setTimeout(r, 100));
  }
  throw new Error(`nothing listens on ${port}`);
};

function start(name) {
  if (name === 'haproxy') {
    const file = join(dir, 'haproxy.cfg');
    writeFileSync(
      file,
      `global\n  nbthread 1\n  maxconn 4000\ndefaults\n  mode http\n  timeout connect 5s\n  timeout client 300s\n  timeout server 300s\n  option http-no-delay\n  http-reuse always\nfrontend f\n  bind 127.0.0.1:${ports.haproxy}\n  default_backend b\nbackend b\n  server s 127.0.0.1:${ports.mock}\n`,
    );
    return run('haproxy', ['-db', '-f', file]);
  }
  if (name === 'nginx') {
    const file = join(dir, 'nginx.conf');
    writeFileSync(
      file,
      `daemon off;\nmaster_process off;\nworker_processes 1;\npid ${dir}/nginx.pid;\nerror_log ${dir}/error.log;\nevents { worker_connections 8192; }\nhttp {\n  access_log off;\n  client_body_temp_path ${dir}/body; proxy_temp_path ${dir}/proxy; fastcgi_temp_path ${dir}/f; uwsgi_temp_path ${dir}/u; scgi_temp_path ${dir}/s;\n  upstream m { server 127.0.0.1:${ports.mock}; keepalive 2000; }\n  server {\n    listen 127.0.0.1:${ports.nginx};\n    keepalive_requests 100000;\n    location / { proxy_pass http://m; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; proxy_read_timeout 300s; }\n  }\n}\n`,
    );
    return run('nginx', ['-c', file]);
  }
  return run(process.execPath, [
    main,
    'proxy',
    '--upstream',
    `http://127.0.0.1:${ports.mock}`,
    '--listen',
    `127.0.0.1:${ports.goodput}`,
    '--admin',
    `127.0.0.1:${ports.admin}`,
    '--slo',
    'ttft=2s,tpot=200ms',
    '--out',
    join(dir, 'runs'),
  ]);
}

const stat = (pid) => {
  const f = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return (Number(f[11]) + Number(f[12])) * 10_000; // ticks of 10 ms, in µs
};
const rss = (pid) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]);
const load = (port, streams, seconds) =>
  new Promise((done) => {
    let out = '';
    const child = run(
      process.execPath,
      [join(import.meta.dirname, 'proxy-client.mjs'), port, streams, seconds, 1000, flags.together].map(String),
    );
    child.stdout.on('data', (d) => {
      out += d;
    });
    child.once('close', () => done(JSON.parse(out)));
  });
const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];

async function measure() {
  const mock = run(mockPath, [ports.mock, 50, 50, 60].map(String));
  await listening(ports.mock);
  const names = flags.only.split(',');
  const servers = Object.fromEntries(names.map((name) => [name, start(name)]));
  for (const name of names) await listening(ports[name]);
  const rounds = [];
  for (const name of names) await load(ports[name], flags.streams, 4); // warm
  for (let i = 0; i < Number(flags.rounds); i++) {
    const direct = await load(ports.mock, flags.streams, flags.seconds);
    const round = { direct };
    for (const name of names) {
      const before = stat(servers[name].pid);
      const r = await load(ports[name], flags.streams, flags.seconds);
      round[name] = { ...r, cpu: (stat(servers[name].pid) - before) / r.events };
    }
    rounds.push(round);
    console.error(
      `round ${i + 1}: ${['direct', ...names].map((n) => `${n} p50 ${round[n].ttft_p50.toFixed(2)} p99 ${round[n].ttft_p99.toFixed(2)} ms${round[n].cpu ? ` ${round[n].cpu.toFixed(1)} µs/event` : ''}`).join('; ')}`,
    );
  }
  const result = { streams: Number(flags.streams), together: Number(flags.together), rounds: rounds.length };
  for (const name of names) {
    result[name] = {
      added_ttft_p50_ms: round3(median(rounds.map((r) => r[name].ttft_p50 - r.direct.ttft_p50))),
      added_ttft_p99_ms: round3(median(rounds.map((r) => r[name].ttft_p99 - r.direct.ttft_p99))),
      cpu_us_per_event: round3(median(rounds.map((r) => r[name].cpu))),
      ...(names.includes('haproxy') && {
        cpu_of_haproxy: round3(median(rounds.map((r) => r[name].cpu / r.haproxy.cpu))),
      }),
      broken: rounds.reduce((sum, r) => sum + r[name].broken, 0),
    };
  }
  const most = Number(flags.memory);
  if (most > 0 && names.includes('goodput')) {
    const { pid } = servers.goodput;
    const idle = rss(pid);
    let peak = 0;
    const timer = setInterval(() => {
      peak = Math.max(peak, rss(pid));
    }, 200);
    await load(ports.goodput, most, 12);
    clearInterval(timer);
    result.memory = { streams: most, idle_kb: idle, peak_kb: peak, kb_per_stream: round3((peak - idle) / most) };
  }
  console.log(JSON.stringify(result, null, 2));
  for (const server of Object.values(servers)) await stop(server);
  await stop(mock);
}
const round3 = (x) => Math.round(x * 1000) / 1000;

try {
  for (const program of flags.only.split(',').filter((n) => n !== 'goodput')) {
    if (spawnSync('sh', ['-c', `command -v ${program}`]).status !== 0) throw new Error(`${program} is not installed`);
  }
  await measure();
} finally {
  for (const child of children) child.kill('SIGKILL');
  rmSync(dir, { recursive: true, force: true });
}
