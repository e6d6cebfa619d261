import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { emulate, folderOf, run, type Served, scratch } from './cli.ts';

/** Many runs of some seconds each, on a machine that may be busy. */
const PATIENCE = 180_000;
const SLO = ['--slo', 'ttft=20s,e2e=30s'];
const LOAD = ['--rate', '30', '--duration', '1.5s', '--warmup', '0.3s', '--output', '6', '--input', '16'];
const SAMPLES = join(import.meta.dirname, '..', '..', 'samples', 'results');
const { dir, remove } = scratch();
let fast: Served;
let slow: Served;

beforeAll(async () => {
  [fast, slow] = await Promise.all([
    emulate(['--ttft', '30ms', '--itl', '10ms']),
    emulate(['--ttft', '900ms', '--itl', '10ms']),
  ]);
});
afterAll(async () => {
  await Promise.all([fast?.stop(), slow?.stop()]);
  remove();
});

describe('bench --repeat --against, then compare', () => {
  it(
    'measures in pairs of one seed, never calls the slower server better, and fails a threshold',
    async () => {
      const out = join(dir, 'pairs');
      const done = await run([
        'bench',
        fast.url,
        '--repeat',
        '3',
        '--against',
        slow.url,
        ...LOAD,
        ...SLO,
        '--out',
        out,
        '--json',
      ]);
      const comparison = JSON.parse(done.stdout);
      expect(comparison.schema).toBe('goodput.compare/1');
      expect(comparison.paired).toBe(true);
      expect(comparison.a.map((r: { seed: number }) => r.seed).sort()).toEqual([1, 2, 3]);
      const groups = readdirSync(out).map(
        (f) => JSON.parse(readFileSync(join(out, f, 'run.json'), 'utf8')).workload.group,
      );
      expect(new Set(groups.map((g) => g.id)).size).toBe(1);
      expect(groups.map((g) => `${g.side}${g.repeat}`).sort()).toEqual(['A0', 'A1', 'A2', 'B0', 'B1', 'B2']);

      // The runs name their sides, so the folders alone are enough. A busy machine may make a run client-bound: --anyway.
      const folders = readdirSync(out).map((f) => join(out, f));
      const again = await run([
        'compare',
        ...folders,
        '--anyway',
        '--fail-on',
        'ttft.p50>+50%,attainment<50%',
        '--json',
      ]);
      expect(again.code).toBe(1);
      const { figures, thresholds, verdict } = JSON.parse(again.stdout);
      // Worse by far; whether six runs of a second show it depends on how busy the machine is. When they do, src/report tests.
      const mean = figures.find((f: { name: string }) => f.name === 'ttft.mean');
      expect(mean.grounds).toBe('runs');
      expect(mean.relative).toBeGreaterThan(1);
      expect(['worse', 'not shown']).toContain(mean.verdict);
      expect(['worse', 'mixed', 'not shown']).toContain(verdict);
      expect(thresholds.map((t: { missed: boolean }) => t.missed)).toEqual([true, false]);

      const md = await run(['compare', ...folders, '--anyway', '--format', 'md']);
      expect(md.code).toBe(0);
      expect(md.stdout).toMatch(/^### .*worse/);
    },
    PATIENCE,
  );

  it(
    'of two runs says only that they differ, and refuses unlike ones',
    async () => {
      const a = folderOf(await run(['bench', fast.url, ...LOAD, ...SLO, '--out', dir]));
      const b = folderOf(await run(['bench', slow.url, ...LOAD, ...SLO, '--out', dir]));
      const two = await run(['compare', a, b, '--anyway', '--json']);
      expect(JSON.parse(two.stdout).verdict).toBe('differs between these runs');

      const other = folderOf(await run(['bench', fast.url, ...LOAD.with(1, '20'), ...SLO, '--out', dir]));
      const refused = await run(['compare', a, other]);
      expect(refused.code).toBe(2);
      expect(refused.stderr).toMatch(/rate.* is 30 in .* and 20 in /);
      expect(refused.stderr.trim().split('\n')).toHaveLength(1);

      for (const format of ['vllm', 'guidellm', 'aiperf']) {
        const shown = await run(['report', a, '--format', format]);
        expect(JSON.parse(shown.stdout)._definitions.length, format).toBeGreaterThan(5);
      }
      const csv = await run(['report', a, '--format', 'csv']);
      expect(csv.stdout.split('\r\n')[0]).toMatch(/^operation,in_cohort,/);
      expect((await run(['report', a, '--format', 'md'])).stdout).toMatch(/^### /);
    },
    PATIENCE,
  );

  it('names what it cannot use', async () => {
    expect((await run(['compare', dir])).stderr).toMatch(/give two run folders/);
    expect((await run(['compare', 'a', 'b', '--fail-on', 'tfft>1'])).stderr).toMatch(/did you mean 'ttft/);
  });
});

describe('import', () => {
  it('brings a result file into a run folder that report and compare read', async () => {
    const a = await run(['import', join(SAMPLES, 'vllm.json'), '--slo', 'ttft=75ms', '--out', dir, '--json']);
    expect(a.code).toBe(1);
    const report = JSON.parse(a.stdout);
    expect(report.cohort).toMatchObject({ offered: 5, good: 3, late: 1, failed: 1 });
    expect(report.client.verdict).toBe('unknown');
    expect(report.notes.map((n: { text: string }) => n.text).join()).toMatch(
      /imported from vllm bench: when requests were scheduled/,
    );
    const folder = folderOf(a);
    expect(JSON.parse((await run(['report', folder, '--json'])).stdout).cohort).toEqual(report.cohort);
    const b = folderOf(await run(['import', join(SAMPLES, 'aiperf.jsonl'), '--slo', 'ttft=75ms', '--out', dir]));
    expect((await run(['compare', folder, b])).stderr).toMatch(/tool is vllm bench in .* and aiperf in /);
  });

  it('says in one line what a damaged file is', async () => {
    const done = await run(['import', join(SAMPLES, 'README.md'), '--out', dir]);
    expect(done.code).toBe(2);
    expect(done.stderr.trim().split('\n')).toHaveLength(1);
    expect(done.stderr).toMatch(/is not JSON/);
  });
});
