import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { get } from 'node:https';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { judgeRecord, LEDGER, type LedgerClass, type RequestRecord } from '../../src/core/index.ts';
import type { LiveSnapshot } from '../../src/observe/cohorts/index.ts';
import { openRun } from '../../src/store/index.ts';
import { emulate, folderOf, type Running, run, type Served, scratch, start } from './cli.ts';

const { dir, remove } = scratch();
const CRT = new URL('../conformance/fixtures/localhost.crt.pem', import.meta.url).pathname;
const SLO = ['--slo', 'ttft=20s,e2e=30s'];
let server: Served;
const open: Running[] = [];

beforeAll(async () => {
  server = await emulate(['--ttft', '20ms', '--itl', '5ms', '--answer', '8']);
});
afterAll(async () => {
  for (const { child, done } of open) {
    child.kill('SIGKILL');
    await done;
  }
  await server?.stop();
  remove();
});

interface Started {
  readonly running: Running;
  readonly url: string;
  readonly admin: string;
  readonly folder: string;
}

async function proxy(name: string, upstream: string, ...flags: string[]): Promise<Started> {
  const args = ['--upstream', upstream, '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0', '--out', join(dir, name)];
  const running = start(['proxy', ...args, ...SLO, '--json', ...flags]);
  open.push(running);
  const said = JSON.parse((await running.said(/^\{"listening".*$/m))[0]) as Record<string, string>;
  return { running, url: said.listening ?? '', admin: said.admin ?? '', folder: said.folder ?? '' };
}

const live = async (admin: string): Promise<LiveSnapshot> =>
  (await fetch(`${admin}/live`)).json() as Promise<LiveSnapshot>;

function chat(url: string, headers: Record<string, string> = {}, tokens = 8): Promise<Response> {
  return fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({
      model: 'llama-3.1-8b',
      stream: true,
      max_tokens: tokens,
      messages: [{ role: 'user', content: 'a prompt that nobody keeps' }],
    }),
  });
}

/** Looks again until `look` is content; the test's own time limit ends it. */
async function until<T>(look: () => Promise<T> | T, content: (x: T) => boolean): Promise<T> {
  for (;;) {
    const x = await look();
    if (content(x)) return x;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** The verdict on each record of a folder, by an id both sides know. */
async function classesOf(folder: string, idOf: (record: RequestRecord) => string): Promise<Map<string, LedgerClass>> {
  const reader = await openRun(folder);
  const found = new Map<string, LedgerClass>();
  await reader.records(
    (record) => void found.set(idOf(record), judgeRecord(record, reader.meta.contract).verdict.class),
  );
  reader.close();
  return found;
}

const cursorOf = (folder: string): { rows: number; closed: boolean } =>
  JSON.parse(readFileSync(join(folder, 'cursor.json'), 'utf8'));

describe('goodput proxy', () => {
  it('sees what bench sees, says so at /live, and its folder makes a report', async () => {
    const p = await proxy('bench', server.url);
    const load = ['--rate', '20', '--duration', '2s', '--warmup', '0.5s', '--output', '8', '--input', '16'];
    const bench = await run(['bench', p.url, ...SLO, ...load, '--out', join(dir, 'own'), '--json']);
    expect([0, 3]).toContain(bench.code); // 3: the machine was too slow for its own load
    const own = folderOf(bench);
    p.running.child.kill('SIGTERM');
    const end = await p.running.done;
    expect(end.code).toBe(0);
    const told = JSON.parse(end.stdout.trim().split('\n').at(-1) ?? '') as { total: LiveSnapshot['total'] };
    const { total } = told;
    expect(total.pending).toBe(0);
    expect(LEDGER.reduce((sum, c) => sum + total.outcomes[c], 0)).toBe(total.offered);
    // Of what both saw, the same operations are good.
    const bySelf = await classesOf(own, (r) => `${r.operation}-${r.attempt}`);
    const byProxy = await classesOf(p.folder, (r) => r.passage?.requestId?.replace(/^goodput-\w+-/, '') ?? '');
    expect(bySelf.size).toBeGreaterThan(20);
    expect([...bySelf.keys()].filter((id) => !byProxy.has(id))).toEqual([]);
    for (const [id, verdict] of bySelf) {
      // What bench broke off after its cohort may have been whole at the proxy by then.
      if (verdict === 'cancelled' && byProxy.get(id) === 'good') continue;
      expect([id, byProxy.get(id)]).toEqual([id, verdict]);
    }
    const report = await run(['report', p.folder, '--json']);
    const json = JSON.parse(report.stdout) as { cohort: { good: number }; run: { target: string } };
    expect(json.run.target).toBe(server.url);
    expect(json.cohort.good).toBeGreaterThan(0);
    const files = readdirSync(p.folder).filter((f) => f.endsWith('.json'));
    for (const file of files) expect(readFileSync(join(p.folder, file), 'utf8')).not.toMatch(/nobody keeps/);
  });

  it('loses nothing older than a second when it is killed', async () => {
    const p = await proxy('killed', server.url, '--tenant-header', 'x-tenant');
    for (let i = 0; i < 5; i++) await (await chat(p.url, { 'x-tenant': `t${i % 2}`, 'x-request-id': `r-${i}` })).text();
    await until(
      () => cursorOf(p.folder),
      (cursor) => cursor.rows === 5,
    );
    p.running.child.kill('SIGKILL');
    await p.running.done;
    const report = await run(['report', p.folder, '--json']);
    const json = JSON.parse(report.stdout) as { cohort: { offered: number; good: number }; run: { cut?: string } };
    expect([json.cohort.offered, json.cohort.good]).toEqual([5, 5]);
    expect(json.run.cut).toMatch(/cut off/);
  });

  it('refuses early what would wait too long, and tells its port what is going on', async () => {
    const slow = await emulate(['--ttft', '60s', '--itl', '5ms']);
    try {
      const p = await proxy('full', slow.url, '--max-concurrency', '1', '--max-queue-age', '300ms', '--no-records');
      const held = chat(p.url).catch(() => undefined);
      await until(
        () => live(p.admin),
        (l) => l.upstreams[0]?.in_flight === 1,
      );
      const second = await chat(p.url);
      expect(second.status).toBe(429);
      expect(Number(second.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
      expect(await second.text()).toMatch(/at capacity/);
      const now = await live(p.admin);
      expect(now.total.outcomes.rejected).toBe(1);
      expect(now.now.waiting).toBe(1);
      expect(now.now.oldest_waiting_ms).toBeGreaterThan(0);
      const metrics = await (await fetch(`${p.admin}/metrics`)).text();
      expect(metrics).toMatch(/goodput_proxy_refused_total 1/);
      expect(await (await fetch(`${p.admin}/healthz`)).text()).toBe('ok\n');
      expect((await fetch(`${p.admin}/live?windows=x`)).status).toBe(400);
      expect((await fetch(`${p.admin}/healthz`, { method: 'POST' })).status).toBe(405);
      p.running.child.kill('SIGTERM');
      p.running.child.kill('SIGINT'); // twice: at once
      await p.running.done;
      await held;
    } finally {
      await slow.stop();
    }
  });

  it('goes on passing when its folder is gone, and says that records cannot be written', async () => {
    const p = await proxy('gone', server.url);
    rmSync(p.folder, { recursive: true });
    expect((await chat(p.url)).status).toBe(200);
    const now = await until(
      () => live(p.admin),
      (l) => l.records.problem !== null,
    );
    expect(now.records.problem).toMatch(/no such/i);
    expect(now.total.outcomes.good).toBe(1);
    expect((await chat(p.url)).status).toBe(200);
    p.running.child.kill('SIGTERM');
    const { code, stderr } = await p.running.done;
    expect(code).toBe(2);
    expect(stderr).toMatch(/records could not be written/);
  });

  it('speaks TLS to callers where it is given a certificate', async () => {
    const p = await proxy(
      'tls',
      server.url,
      '--tls-cert',
      CRT,
      '--tls-key',
      CRT.replace('.crt.', '.key.'),
      '--no-records',
    );
    expect(p.url).toMatch(/^https:/);
    const { port } = new URL(p.url);
    const status = await new Promise((resolve, reject) => {
      const ca = readFileSync(CRT);
      get({ host: '127.0.0.1', port, path: '/v1/models', ca, servername: 'localhost' }, (res) => {
        res.resume();
        resolve(res.statusCode);
      }).on('error', reject);
    });
    expect(status).toBe(200);
  });

  it.each([
    [['--upstream', 'ftp://x'], /neither http/],
    [['--upstream', 'http://u:p@x'], /leave user and password out/],
    [['--upstream', 'http://a', '--listen', 'nowhere'], /is not HOST:PORT/],
    [['--upstream', 'http://a', '--admin', '0.0.0.0:1'], /other machines could reach it/],
    [['--upstream', 'http://a', '--max-queue-age', '1s'], /--max-concurrency/],
    [['--upstream', 'http://a', '--max-concurrency', 'package.json'], /neither a whole number nor/],
    [['--upstream', 'http://a', '--keep-size', 'much'], /is not a size/],
    [['--upstream', 'http://a', '--class-contract', 'batch'], /CLASS=FILE/],
    [['--upstream', 'http://a', '--tls-cert', CRT], /--tls-cert: give --tls-key with it/],
    [['--upstream', 'http://a', '--tls-cert', CRT, '--tls-key', CRT], /holds no PEM private key/],
  ])('refuses %j', async (args, why) => {
    const { code, stderr } = await run(['proxy', ...SLO, '--out', join(dir, 'none'), ...args]);
    expect(code).toBe(2);
    expect(stderr).toMatch(why);
    expect(stderr).not.toMatch(/ {4}at /);
  });
});
