/** The whole way of production: traffic → proxy → emulator, scraped by a real Prometheus that runs the written rules. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { emulate, type Running, run, type Served, scratch, start } from '../e2e/cli.ts';
import { freePort, service, withService } from './service.ts';

const { dir, remove } = scratch();
let engine: Served;
let proxy: Running;
let proxyUrl: string;
let adminUrl: string;
let prometheus: ChildProcess | undefined;
let api: string;

/** What Prometheus answers once `done` accepts it; asked again until then, for half a minute at most. */
async function until<T>(path: string, done: (data: T) => boolean): Promise<T> {
  const deadline = Date.now() + 30_000;
  for (;;) {
    const data = await fetch(`${api}${path}`, { signal: AbortSignal.timeout(5000) })
      .then((r) => r.json() as Promise<{ data: T }>)
      .then((r) => r.data)
      .catch(() => undefined);
    if (data !== undefined && done(data)) return data;
    if (Date.now() > deadline) throw new Error(`${path}: still ${JSON.stringify(data)}`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

interface Vector {
  readonly result: { readonly metric: Record<string, string>; readonly value: [number, string] }[];
}
const ask = (query: string, done: (v: Vector) => boolean): Promise<Vector> =>
  until<Vector>(`/api/v1/query?query=${encodeURIComponent(query)}`, done);
const sum = (v: Vector): number => v.result.reduce((total, r) => total + Number(r.value[1]), 0);

beforeAll(async () => {
  const program = service('prometheus');
  if (program === undefined) return;
  engine = await emulate(['--speed', '10']);
  // A TTFT that nobody meets: every operation is bad, jointly.
  const slo = ['--slo', 'ttft=1us', '--deadline', '20s', '--attainment', '99%'];
  proxy = start([
    'proxy',
    '--upstream',
    engine.url,
    '--listen',
    '127.0.0.1:0',
    '--admin',
    '127.0.0.1:0',
    '--out',
    join(dir, 'runs'),
    ...slo,
  ]);
  proxyUrl = (await proxy.said(/listening on (http:\/\/\S+)/))[1] as string;
  adminUrl = (await proxy.said(/admin (http:\/\/[^\s/]+)/))[1] as string;
  const rules = join(dir, 'watch');
  mkdirSync(rules, { recursive: true });
  expect((await run(['rules', ...slo, '--capacity', '5', '--out', rules])).code).toBe(0);
  writeFileSync(
    join(dir, 'prometheus.yml'),
    [
      'global: {scrape_interval: 1s, evaluation_interval: 1s}',
      `rule_files: ['${join(rules, 'goodput.rules.yaml')}']`,
      'scrape_configs:',
      `  - {job_name: goodput, static_configs: [{targets: ['${new URL(adminUrl).host}']}]}`,
      '',
    ].join('\n'),
  );
  const port = await freePort();
  api = `http://127.0.0.1:${port}`;
  prometheus = spawn(
    program,
    [
      `--config.file=${join(dir, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(dir, 'tsdb')}`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--log.level=error',
    ],
    { stdio: 'ignore' },
  );
});

afterAll(async () => {
  const ended = prometheus && new Promise((resolve) => prometheus?.once('exit', resolve));
  prometheus?.kill('SIGTERM');
  await ended;
  proxy?.child.kill('SIGTERM');
  await proxy?.done;
  await engine?.stop();
  remove();
});

describe('a proxy under load, scraped by Prometheus', () => {
  withService('prometheus', 'counts what the client counted, and the alert on joint attainment fires', async () => {
    // It has looked once before anything happened: a rate needs a beginning.
    await ask('goodput_operations_judged_total', (v) => v.result.length > 0);
    const load = ['--rate', '20', '--requests', '60', '--warmup', '0s', '--output', '8', '--slo', 'ttft=5s', '--json'];
    const bench = await run(['bench', `${proxyUrl}/v1/chat/completions`, ...load, '--out', join(dir, 'client')]);
    // 3: on a busy machine the client may have been the bottleneck; what was counted is counted all the same.
    expect([0, 3], bench.stderr).toContain(bench.code);
    const report = JSON.parse(bench.stdout);

    // Load goes on until the cohort is final, so the proxy has seen the cohort at least.
    const seen = await ask('goodput_operations_judged_total', (v) => sum(v) >= report.cohort.offered);
    expect(seen.result[0]?.metric.class).toBe('default');
    const outcomes = await ask('goodput_operations_total', (v) => sum(v) === sum(seen) || sum(v) >= 60);
    // Those of the cool-down, which the client takes back once its cohort is final, are cancelled; the one that failed is the
    // client's look at what the endpoint is, which asks for nothing.
    for (const { metric, value } of outcomes.result) {
      expect(['late', 'cancelled', 'failed']).toContain(metric.outcome);
      if (metric.outcome === 'failed') expect(Number(value[1])).toBe(1);
    }
    expect(sum(await ask('goodput_operations_good_total', (v) => v.result.length > 0))).toBe(0);

    const bad = await ask('goodput:bad_share:rate1h', (v) => v.result.some((r) => r.value[1] !== 'NaN'));
    expect(sum(bad)).toBeCloseTo(1, 9);
    const { alerts } = await until<{ alerts: { labels: Record<string, string>; state: string }[] }>(
      '/api/v1/alerts',
      (d) => d.alerts.some((a) => a.labels.alertname === 'GoodputBurnFast' && a.state === 'firing'),
    );
    expect(alerts.find((a) => a.labels.alertname === 'GoodputBurnFast')?.labels.severity).toBe('page');
    const required = await ask('goodput:required_replicas', (v) => v.result.length > 0);
    expect(sum(required)).toBeGreaterThanOrEqual(1);
  });

  withService('prometheus', "answers every query of the dashboard, its panels' data among them", async () => {
    const board = JSON.parse(readFileSync(join(dir, 'watch', 'goodput.grafana.json'), 'utf8')) as {
      panels: { id: number; title: string; targets: { refId: string; expr: string }[] }[];
    };
    expect(new Set(board.panels.map((p) => p.id)).size).toBe(board.panels.length);
    for (const { title, targets } of board.panels) {
      expect(new Set(targets.map((t) => t.refId)).size, title).toBe(targets.length);
      for (const { expr } of targets) {
        // As Grafana puts its variables in.
        const query = expr.replaceAll('$__rate_interval', '1m').replaceAll('$class', '.*');
        expect(query, title).not.toContain('$');
        const answer = await fetch(`${api}/api/v1/query?query=${encodeURIComponent(query)}`);
        const { status, error, data } = (await answer.json()) as { status: string; error?: string; data: Vector };
        expect(status, `${title}: ${query}: ${error}`).toBe('success');
        // The load before it has filled all but what never happened: a missed TPOT, a gap.
        if (/^(Attainment|Goodput|Error|Outcomes|Waiting|Replicas)/.test(title))
          expect(data.result.length, `${title}: ${query}`).toBeGreaterThan(0);
      }
    }
  });

  withService('promtool', 'exposes text that promtool finds nothing to say about', async (promtool) => {
    const { spawnSync } = await import('node:child_process');
    const text = await (await fetch(`${adminUrl}/metrics`)).text();
    const checked = spawnSync(promtool, ['check', 'metrics'], { input: text, encoding: 'utf8' });
    expect(checked.stderr + checked.stdout).toBe('');
  });

  withService('prometheus', 'is what goodput live shows', async () => {
    const shown = await run(['live', '--once', adminUrl, engine.url]);
    expect(shown.stdout).toMatch(/By arrival\n +window +offered +good +late/);
    expect(shown.stdout).toMatch(new RegExp(`${engine.url.replaceAll('.', '\\.')} +vLLM`));
  });
});
