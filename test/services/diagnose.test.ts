/** A diagnosis read from a real Prometheus that scraped an emulator: raw samples of two ranges, one across a restart. */
import { type ChildProcess, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, vi } from 'vitest';
import { emulate, run, type Served, scratch } from '../e2e/cli.ts';
import { freePort, service, withService } from './service.ts';

vi.setConfig({ testTimeout: 180_000 });
const { dir, remove } = scratch();
let engine: Served;
let prometheus: ChildProcess | undefined;
let url: string;

/** Waits until Prometheus has scraped after `t`, Unix seconds. */
async function scrapedAfter(t: number): Promise<void> {
  const deadline = Date.now() + 60_000;
  for (;;) {
    const answer = await fetch(`${url}/api/v1/query?query=timestamp(process_start_time_seconds)`, {
      signal: AbortSignal.timeout(5000),
    })
      .then((r) => r.json() as Promise<{ data: { result: { value: [number, string] }[] } }>)
      .catch(() => undefined);
    if (answer?.data.result.some((r) => Number(r.value[1]) >= t)) return;
    if (Date.now() > deadline) throw new Error('Prometheus has scraped nothing');
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

beforeAll(async () => {
  const program = service('prometheus');
  if (program === undefined) return;
  engine = await emulate(['--speed', '4', '--max-num-seqs', '64']);
  writeFileSync(
    join(dir, 'prometheus.yml'),
    `global: {scrape_interval: 1s}\nscrape_configs:\n  - {job_name: vllm, static_configs: [{targets: ['${new URL(engine.url).host}']}]}\n`,
  );
  const port = await freePort();
  url = `http://127.0.0.1:${port}`;
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
}, 60_000);

afterAll(async () => {
  const ended = prometheus && new Promise((resolve) => prometheus?.once('exit', resolve));
  prometheus?.kill('SIGTERM');
  await ended;
  await engine?.stop();
  remove();
});

describe('diagnose from a Prometheus', () => {
  const load = async (input: number): Promise<string> => {
    await scrapedAfter(Date.now() / 1000);
    const from = Date.now();
    const bench = await run([
      'bench',
      engine.url,
      '--rate',
      '15',
      '--duration',
      '6s',
      '--warmup',
      '0s',
      '--input',
      String(input),
      '--output',
      '8',
      '--slo',
      'ttft=30s',
      '--deadline',
      '60s',
      '--out',
      join(dir, 'runs'),
    ]);
    expect(bench.code, bench.stderr).toBeLessThan(2);
    await scrapedAfter(Date.now() / 1000 + 1);
    return `prometheus+${url}@${from}/${Date.now()}`;
  };

  withService('prometheus', 'tells longer prompts by the raw counters of two ranges', async () => {
    const before = await load(256);
    const after = await load(6000);
    const found = await run(['diagnose', '--before', before, '--after', after, '--json']);
    expect(found.code, found.stderr).toBeLessThan(2);
    const d = JSON.parse(found.stdout);
    const prompt = d.facts.find((f: { fact: string }) => f.fact === 'prompt');
    // Whole tokens: raw differences, not extrapolated ones. The emulator counts a word a token, and the chat template.
    expect(prompt.after / prompt.before).toBeGreaterThan(10);
    expect(d.causes.slice(0, 2).map((c: { id: string }) => c.id)).toContain('longer-prompts');
    expect(d.attribution_ms.prefill).toBeGreaterThan(0);
  });

  withService('prometheus', 'refuses a range without samples in one line', async () => {
    const found = await run([
      'diagnose',
      '--before',
      `prometheus+${url}@1000000000/1000000060`,
      '--after',
      `prometheus+${url}@1000000000/1000000060`,
    ]);
    expect(found.code).toBe(2);
    expect(found.stderr.trim()).toMatch(/^goodput: --before: .* has no series of an engine/);
    expect(found.stderr.trim().split('\n')).toHaveLength(1);
  });
});
