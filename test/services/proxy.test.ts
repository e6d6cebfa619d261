/** The proxy beside the proxies it is used with: behind nginx, and in front of HAProxy. Every byte is seen on both sides. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect } from 'vitest';
import {
  chat,
  chunk,
  client,
  DONE,
  FINISH,
  LAST_CHUNK,
  origin,
  requests,
  STREAM_HEAD,
  token,
  watchedProxy,
} from '../../src/observe/proxy/testing.ts';
import { freePort, withService } from './service.ts';

const closers: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** Starts a server in the foreground with a configuration, and waits for its port. */
async function serving(
  program: string,
  args: (file: string, dir: string) => string[],
  config: (dir: string) => string,
) {
  const dir = mkdtempSync(join(tmpdir(), 'goodput-service-'));
  const file = join(dir, 'config');
  writeFileSync(file, config(dir));
  const child = spawn(program, args(file, dir), { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.on('data', (bytes) => {
    said += bytes;
  });
  closers.push(async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL');
      await once(child, 'close');
    }
    rmSync(dir, { recursive: true, force: true });
  });
  const port = Number(/(?:bind|listen) 127\.0\.0\.1:(\d+)/.exec(config(dir))?.[1]);
  for (let left = 200; ; left--) {
    const open = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => {
        socket.destroy();
        resolve(true);
      });
      socket.once('error', () => resolve(false));
    });
    if (open) return `http://127.0.0.1:${port}`;
    if (left === 0 || child.exitCode !== null) throw new Error(`${program} does not listen: ${said}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const nginx = (program: string, upstream: string, port: number): Promise<string> =>
  serving(
    program,
    (file, dir) => ['-p', dir, '-c', file, '-e', join(dir, 'early.log')],
    (dir) => `daemon off; master_process off; worker_processes 1; pid ${dir}/pid; error_log ${dir}/error.log;
events { worker_connections 256; }
http {
  access_log off;
  client_body_temp_path ${dir}/b; proxy_temp_path ${dir}/p; fastcgi_temp_path ${dir}/f; uwsgi_temp_path ${dir}/u; scgi_temp_path ${dir}/s;
  upstream goodput { server ${new URL(upstream).host}; keepalive 8; }
  server {
    listen 127.0.0.1:${port};
    location / { proxy_pass http://goodput; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; }
  }
}
`,
  );

const haproxy = (program: string, upstream: string, port: number): Promise<string> =>
  serving(
    program,
    (file) => ['-db', '-f', file],
    () => `global
  nbthread 1
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
  option http-no-delay
  option abortonclose
  http-reuse always
frontend f
  bind 127.0.0.1:${port}
  default_backend b
backend b
  server s ${new URL(upstream).host}
`,
  );

interface Whole {
  readonly socket: Socket;
  readonly head: string;
}

/** An upstream in three acts, by `x-act`: a stream in steps, one with trailers, one without end. */
async function engine() {
  const asked: Whole[] = [];
  const gone: Socket[] = [];
  let step = (): void => {};
  const server = await origin((socket) => {
    socket.once('close', () => void gone.push(socket));
    requests(socket, (head) => {
      asked.push({ socket, head });
      const act = /x-act: (\S+)/i.exec(head)?.[1];
      if (act === 'trailers') {
        socket.write(`${STREAM_HEAD.replace('\r\n\r\n', '\r\ntrailer: x-sum\r\n\r\n')}`);
        socket.write(`${[token('Hello'), FINISH, DONE].map(chunk).join('')}0\r\nx-sum: 42\r\n\r\n`);
      } else {
        socket.write(STREAM_HEAD + chunk(token('Hello')));
        if (act !== 'endless') step = () => void socket.write([FINISH, DONE].map(chunk).join('') + LAST_CHUNK);
      }
    });
  });
  closers.push(server.close);
  return { url: server.url, asked, gone, step: () => step() };
}

/** The data of a chunked answer. */
function dataOf(text: string): string {
  let rest = text.slice(text.indexOf('\r\n\r\n') + 4);
  let data = '';
  for (;;) {
    const m = /^([0-9a-f]+)[^\r\n]*\r\n/i.exec(rest);
    const size = Number.parseInt(m?.[1] ?? '0', 16);
    if (m === null || size === 0) return data;
    data += rest.slice(m[0].length, m[0].length + size);
    rest = rest.slice(m[0].length + size + 2);
  }
}

/** What must hold wherever the proxy stands: `url` is where callers ask. */
async function holds(
  url: string,
  watched: Awaited<ReturnType<typeof watchedProxy>>,
  behind: Awaited<ReturnType<typeof engine>>,
  trailers: boolean,
): Promise<void> {
  const ask = async (act: string) => {
    const c = await client(url);
    closers.push(() => c.socket.destroy());
    c.send(chat(`x-act: ${act}\r\nx-request-id: ${act}\r\n`));
    return c;
  };
  // Each event comes as it was sent, before the next exists.
  const steps = await ask('steps');
  await steps.said(/Hello/);
  expect(steps.text).not.toMatch(/DONE/);
  behind.step();
  const text = await steps.said(/DONE[\s\S]*0\r\n\r\n$/);
  expect(dataOf(text)).toBe(token('Hello') + FINISH + DONE);
  const first = await watched.final(1);
  expect([first.record.outcome, first.verdict.class, first.record.timeline.length]).toEqual(['completed', 'good', 1]);
  expect(first.record.passage?.requestId).toBe('steps');

  const withTrailers = await ask('trailers');
  const all = await withTrailers.said(/DONE[\s\S]*0\r\n(x-sum: 42\r\n)?\r\n$/i);
  if (trailers) expect(all).toMatch(/0\r\nx-sum: 42\r\n\r\n$/i);
  expect((await watched.final(2)).record.outcome).toBe('completed');

  // A caller that leaves is gone at the engine at once, however many stand between.
  const endless = await ask('endless');
  await endless.said(/Hello/);
  const engineSide = behind.asked.at(-1)?.socket as Socket;
  endless.socket.destroy();
  await new Promise<void>((resolve) => {
    if (engineSide.closed) resolve();
    else engineSide.once('close', () => resolve());
  });
  const third = await watched.final(3);
  expect([third.record.outcome, third.record.reason]).toEqual(['cancelled', 'client-abort']);
  expect(watched.proxy.live().now.in_flight).toBe(0);
}

describe('beside other proxies', () => {
  withService('nginx', 'behind nginx: bytes, aborts and records are the same', async (program) => {
    const behind = await engine();
    const watched = await watchedProxy(behind.url);
    closers.push(() => watched.proxy.close());
    // nginx-light passes no trailers of a proxied answer on.
    await holds(await nginx(program, watched.proxy.url, await freePort()), watched, behind, false);
  });

  withService('haproxy', 'in front of HAProxy: bytes, trailers, aborts and records are the same', async (program) => {
    const behind = await engine();
    const watched = await watchedProxy(await haproxy(program, behind.url, await freePort()));
    closers.push(() => watched.proxy.close());
    await holds(watched.proxy.url, watched, behind, true);
  });

  withService(
    'haproxy',
    'in front of HAProxy without a server: the 503 passes, and is a rejection',
    async (program) => {
      const dead = await origin(() => {});
      await dead.close();
      const watched = await watchedProxy(await haproxy(program, dead.url, await freePort()));
      closers.push(() => watched.proxy.close());
      const c = await client(watched.proxy.url);
      closers.push(() => c.socket.destroy());
      c.send(chat());
      await c.said(/^HTTP\/1\.1 503 /);
      expect((await watched.final(1)).verdict.class).toBe('rejected');
    },
  );
});
