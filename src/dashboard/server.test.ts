import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CONTRACT_DEFAULTS } from '../core/contract.ts';
import { type Dashboard, type DashboardOptions, startDashboard } from './server.ts';

const root = mkdtempSync(join(tmpdir(), 'goodput-dashboard-'));
const pages = join(root, 'pages');
const runs = join(root, 'runs');
const open: Dashboard[] = [];

mkdirSync(pages);
mkdirSync(join(runs, 'broken'), { recursive: true });
writeFileSync(join(pages, 'index.html'), '<!doctype html><script src="./app.js"></script>');
writeFileSync(join(pages, 'app.js'), 'export {};');
writeFileSync(join(root, 'secret.json'), '{"key":"s3cret"}');
writeFileSync(join(runs, 'broken', 'run.json'), '{"schema":');
afterAll(async () => {
  for (const d of open) await d.close();
  rmSync(root, { recursive: true, force: true });
});

const options: DashboardOptions = {
  runs,
  pages,
  host: '127.0.0.1',
  port: 0,
  readings: {
    reportOf: () => Promise.reject(new Error('not asked here')),
    windowOf: () => Promise.reject(new Error('not asked here')),
    contractsOf: () => ({}),
  },
  contractsOf: () => ({}),
  wallNow: Date.now,
  version: '0',
};

async function serve(more: Partial<DashboardOptions> = {}): Promise<Dashboard> {
  const d = await startDashboard({ ...options, ...more });
  open.push(d);
  return d;
}

interface Got {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

/** A request as it is written: no client tidies the path. */
function ask(
  d: Dashboard,
  path: string,
  headers: Record<string, string> = {},
  method = 'GET',
  body = '',
): Promise<Got> {
  return new Promise((resolve, reject) => {
    const req = request(
      { host: d.host, port: d.port, path, method, headers: { host: `127.0.0.1:${d.port}`, ...headers } },
      (res) => {
        let text = '';
        res.on('data', (c) => (text += c));
        res.on('end', () => resolve({ status: res.statusCode as number, headers: res.headers, body: text }));
      },
    );
    req.on('error', reject);
    req.end(body);
  });
}

describe('the dashboard', () => {
  let d: Dashboard;
  beforeAll(async () => {
    d = await serve();
  });

  it('serves its pages with a policy that runs no inline script', async () => {
    const got = await ask(d, '/');
    expect(got.status).toBe(200);
    const policy = String(got.headers['content-security-policy']);
    expect(policy).toMatch(/default-src 'none'; script-src 'self'/);
    expect(policy).not.toMatch(/unsafe/);
    expect(got.headers['x-content-type-options']).toBe('nosniff');
    expect((await ask(d, '/app.js')).headers['content-type']).toMatch(/javascript/);
  });

  it.each([
    '/../secret.json',
    '/..%2fsecret.json',
    '/%2e%2e/secret.json',
    '/....//secret.json',
    '//etc/passwd',
    '/app.js/../../secret.json',
  ])('gives nothing outside its pages for %s', async (path) => {
    const got = await ask(d, path);
    expect(got.body).not.toContain('s3cret');
    expect([404, 200]).toContain(got.status);
    if (got.status === 200) expect(got.body).toBe(readFileSync(join(pages, 'index.html'), 'utf8'));
  });

  it.each([
    ...['../secret', '..%2F..%2Fetc', '%2e%2e%2f%2e%2e', '..%5c..', '/etc', '%2Fetc%2Fpasswd', '.', '', 'broken/..'],
    ...[
      'broken%00',
      'broken/',
      './broken',
      'broken%2F..%2Fbroken',
      '__proto__',
      'constructor',
      '..%c0%af',
      '%252e%252e',
    ],
  ])('knows no run named %s, at any endpoint', async (id) => {
    for (const at of ['report', 'columns', 'capacity', 'diagnosis', 'setting', 'request']) {
      expect((await ask(d, `/api/${at}?run=${id}&operation=0`)).status).toBe(404);
    }
    const json = { 'content-type': 'application/json' };
    expect((await ask(d, `/api/chunks?run=${id}`, json, 'POST', '[0]')).status).toBe(404);
  });

  it('follows no link out of its folder, neither of a run nor of a file in one', async () => {
    const at = mkdtempSync(join(root, 'links-'));
    mkdirSync(join(root, 'outside'), { recursive: true });
    writeFileSync(join(root, 'outside', 'run.json'), '{"key":"s3cret"}');
    symlinkSync(join(root, 'outside'), join(at, 'away'));
    mkdirSync(join(at, 'linked'));
    symlinkSync(join(root, 'secret.json'), join(at, 'linked', 'run.json'));
    mkdirSync(join(at, 'told'));
    writeFileSync(join(at, 'told', 'search.json'), '{}');
    symlinkSync(join(root, 'secret.json'), join(at, 'told', 'diagnosis.json'));
    symlinkSync(join(root, 'secret.json'), join(at, 'plan.json'));
    const l = await serve({ runs: at });
    const { runs: rows } = JSON.parse((await ask(l, '/api/runs')).body) as { runs: { id: string; problem: string }[] };
    expect(rows.map((r) => r.id)).toEqual(['linked', 'told']);
    expect(rows[0]?.problem).toMatch(/run\.json is a symbolic link/);
    for (const id of ['away', 'linked', 'told']) {
      for (const api of ['report', 'columns', 'capacity', 'diagnosis', 'setting', 'request']) {
        const got = await ask(l, `/api/${api}?run=${id}&operation=0`);
        expect(got.status).toBe(404);
        expect(got.body).not.toContain('s3cret');
      }
    }
    expect((await ask(l, '/api/plans')).body).toBe('[]');
  });

  it('tells hostile texts as one line without marks that turn it, and cuts a megabyte', async () => {
    const at = mkdtempSync(join(root, 'hostile-'));
    const name = 'x\u202e<script>alert(1)</script>\u001b[31m\u0007';
    const folder = join(at, '<script>alert(3)<\u2215script>');
    mkdirSync(folder);
    writeFileSync(
      join(folder, 'search.json'),
      JSON.stringify({ target: { url: name, engine: { model: name } }, contract: { limits: { ttft: 'x' } } }),
    );
    writeFileSync(join(folder, 'diagnosis.json'), JSON.stringify({ verdict: name, summary: 'a'.repeat(1_100_000) }));
    const h = await serve({ runs: at });
    const listed = (await ask(h, '/api/runs')).body;
    const run = encodeURIComponent((JSON.parse(listed) as { runs: { id: string }[] }).runs[0]?.id as string);
    const diagnosis = await ask(h, `/api/diagnosis?run=${run}`);
    const setting = await ask(h, `/api/setting?run=${run}`);
    expect(setting.status).toBe(200);
    expect(diagnosis.body.length).toBeLessThan(10_000);
    for (const { body, headers } of [{ body: listed, headers: {} }, diagnosis, setting]) {
      expect(body).not.toMatch(/\\u202e|\u202e|\\u001b|\u001b|\\u0007/);
      if ('content-type' in headers) expect(headers['content-type']).toMatch(/^application\/json/);
    }
  });

  it('lists plans that lie beside the runs, and nothing else', async () => {
    const at = mkdtempSync(join(root, 'plans-'));
    writeFileSync(join(at, 'p.json'), JSON.stringify({ schema: 'goodput.plan/1', rows: [] }));
    writeFileSync(join(at, 'other.json'), '{"schema":"x"}');
    writeFileSync(join(at, 'broken.json'), '{');
    const p = await serve({ runs: at });
    expect(JSON.parse((await ask(p, '/api/plans')).body)).toEqual([
      { name: 'p.json', plan: { schema: 'goodput.plan/1', rows: [] } },
    ]);
  });

  it('reads a profile, and says in a line what is wrong with another', async () => {
    const json = { 'content-type': 'application/json' };
    const bad = await ask(d, '/api/profile', json, 'POST', JSON.stringify({ text: 'schema: other' }));
    expect(bad.status).toBe(422);
    expect(JSON.parse(bad.body).error).toMatch(/goodput\.profile\/1/);
    expect((await ask(d, '/api/profile', json, 'POST', '{}')).status).toBe(400);
    expect((await ask(d, '/api/profile', json, 'POST', 'null')).status).toBe(400);
  });

  it('refuses a host that is not its own, and another origin', async () => {
    expect((await ask(d, '/', { host: `evil.example:${d.port}` })).status).toBe(403);
    expect((await ask(d, '/api/runs', { host: 'rebound.example' })).status).toBe(403);
    expect((await ask(d, '/api/runs', { origin: 'http://evil.example' })).status).toBe(403);
    for (const host of ['127.0.0.1.evil.example', 'localhost.evil.example', '127.0.0.1@evil.example', '0x7f000001']) {
      expect((await ask(d, '/api/runs', { host })).status, host).toBeGreaterThanOrEqual(400);
    }
    for (const origin of ['null', 'https://127.0.0.1', `http://localhost:${d.port}`]) {
      expect((await ask(d, '/api/runs', { origin })).status, origin).toBe(403);
    }
    expect((await ask(d, '/api/runs', { host: `localhost:${d.port}` })).status).toBe(200);
    expect((await ask(d, '/api/runs', { origin: `http://127.0.0.1:${d.port}` })).status).toBe(200);
  });

  it('lists a run that cannot be read, with the reason', async () => {
    const { runs: rows } = JSON.parse((await ask(d, '/api/runs')).body);
    expect(rows).toMatchObject([{ id: 'broken', status: 'corrupt', problem: expect.stringMatching(/not valid JSON/) }]);
    const got = await ask(d, '/api/report?run=broken');
    expect(got.status).toBe(422);
    expect(got.body).not.toMatch(/\bat .*\.js:\d/);
  });

  it('keeps tags and contracts, of the right shape only', async () => {
    const contract = { ...CONTRACT_DEFAULTS, name: 'tight', limits: { ttft: 100 } };
    const saved = {
      schema: 'goodput.dashboard/1',
      tags: { broken: ['night\u001b[31m', ' night'] },
      contracts: [contract],
    };
    const json = { 'content-type': 'application/json' };
    const put = await ask(d, '/api/saved', json, 'PUT', JSON.stringify(saved));
    expect(put.status).toBe(200);
    expect(JSON.parse((await ask(d, '/api/saved')).body)).toMatchObject({
      tags: { broken: ['night·[31m', 'night'] },
      contracts: [{ name: 'tight' }],
    });
    for (const bad of [
      '{}',
      '[]',
      '{"schema":"goodput.dashboard/1","tags":{"a":1}}',
      JSON.stringify({ ...saved, contracts: [{ ...contract, limits: { nope: 1 } }] }),
    ]) {
      expect((await ask(d, '/api/saved', json, 'PUT', bad)).status).toBe(422);
    }
    expect((await ask(d, '/api/saved', json, 'PUT', 'x')).status).toBe(400);
    expect((await ask(d, '/api/saved', { 'content-type': 'text/plain' }, 'PUT', '{}')).status).toBe(415);
    expect((await ask(d, '/api/saved', json, 'PUT', `"${'x'.repeat(1_100_000)}"`)).status).toBe(413);
    expect((await ask(d, '/api/saved', {}, 'DELETE')).status).toBe(404);
  });

  it('asks for its token where it has one, takes it from the address once, then from the cookie', async () => {
    const guarded = await serve({ token: 'abc123' });
    expect((await ask(guarded, '/')).status).toBe(401);
    expect((await ask(guarded, '/api/runs')).status).toBe(401);
    expect((await ask(guarded, '/api/runs?token=abc124')).status).toBe(401);
    const first = await ask(guarded, '/?token=abc123');
    expect(first.status).toBe(303);
    expect(first.headers.location).toBe('/');
    const cookie = String(first.headers['set-cookie']);
    expect(cookie).toMatch(/HttpOnly; SameSite=Strict/);
    expect((await ask(guarded, '/api/runs', { cookie: cookie.split(';')[0] as string })).status).toBe(200);
    expect((await ask(guarded, '/api/runs', { authorization: 'Bearer abc123' })).status).toBe(200);
    expect((await ask(guarded, '/api/runs', { cookie: 'goodput_token=abc' })).status).toBe(401);
  });

  it('says so in a line when the port is taken, or the pages are not built', async () => {
    await expect(startDashboard({ ...options, port: d.port })).rejects.toThrow(/cannot listen on .*EADDRINUSE.*--port/);
    await expect(startDashboard({ ...options, pages: join(root, 'none') })).rejects.toThrow(/not built.*npm run build/);
  });
});
