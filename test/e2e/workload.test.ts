import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { emulate, folderOf, run, type Served, scratch } from './cli.ts';

const SAMPLES = join(import.meta.dirname, '..', '..', 'samples', 'workloads');
const SLO = ['--slo', 'ttft=20s,e2e=30s'];
const { dir, remove } = scratch();
let server: Served;

beforeAll(async () => {
  server = await emulate(['--ttft', '20ms', '--itl', '5ms']);
});
afterAll(async () => {
  await server?.stop();
  remove();
});

function workload(name: string, yaml: string): string {
  const file = join(dir, name);
  writeFileSync(file, yaml);
  return file;
}

describe('bench --workload', () => {
  it('runs classes under their own contracts, sessions whole, prompts at their length by the server’s count', async () => {
    const file = workload(
      'two.yaml',
      `rate: 8
classes:
  - name: chat
    share: 3
    input: 40
    output: 6
    prefix: { tokens: 64, groups: 2 }
    session: { turns: 2, think: 100ms }
  - name: batch
    input: { empirical: [30, 50] }
    output: 4
    slo: e2e=1ms
`,
    );
    const done = await run([
      'bench',
      server.url,
      '--workload',
      file,
      '--duration',
      '3s',
      '--warmup',
      '0.5s',
      '--cache',
      'warm',
      '--calibrate',
      ...SLO,
      '--out',
      dir,
      '--json',
    ]);
    expect([1, 3]).toContain(done.code); // batch misses its contract
    expect(done.stderr).toMatch(/2 shared prefixes sent once/);
    const report = JSON.parse(done.stdout);
    const [batch, chat] = report.classes;
    expect(batch).toMatchObject({ name: 'batch', good: 0, misses: { e2e: batch.offered } });
    expect(chat).toMatchObject({ name: 'chat', good: chat.offered, attainment: { value: 1 } });
    expect(chat.offered % 2).toBe(0);
    expect(chat.offered + batch.offered).toBe(report.cohort.offered);
    expect(report.lengths.achieved_input).toBe(report.lengths.asked_input);
    expect(report.arrivals).toMatchObject({ process: 'poisson', unit: 'sessions', planned_rps: 8 });
    // The folder gives the same report again, and one contract for all when told.
    const folder = folderOf(done);
    expect(JSON.parse((await run(['report', folder, '--json'])).stdout)).toEqual(report);
    const all = JSON.parse((await run(['report', folder, ...SLO, '--json'])).stdout);
    expect(all.attainment.value).toBe(1);
    expect(JSON.parse(readFileSync(join(folder, 'run.json'), 'utf8')).workload.cache).toBe('warm');
  });

  it('sends images, tools and dataset prompts', async () => {
    const file = workload(
      'parts.yaml',
      `rate: 10
classes:
  - { name: seen, input: 10, output: 3, images: { width: 64, height: 32 }, tools: 3 }
  - { name: told, dataset: { file: ${join(SAMPLES, 'sharegpt.json')} }, ignore_eos: true }
`,
    );
    const done = await run([
      'bench',
      server.url,
      '--workload',
      file,
      '--duration',
      '1s',
      '--warmup',
      '0s',
      ...SLO,
      '--out',
      dir,
      '--json',
    ]);
    expect([0, 3]).toContain(done.code);
    const report = JSON.parse(done.stdout);
    expect(report.cohort.good).toBe(report.cohort.offered);
    expect(report.classes).toHaveLength(2);
  });

  it('says what is wrong, where, in one line', async () => {
    const file = workload('bad.yaml', 'classes:\n  - name: a\n    inptu: 5\n');
    const done = await run(['bench', server.url, '--workload', file]);
    expect(done.code).toBe(2);
    expect(done.stderr.trim().split('\n')).toHaveLength(1);
    expect(done.stderr).toMatch(/bad\.yaml:3: unknown key 'classes\[0\]\.inptu' \(did you mean 'input'/);
  });
});

describe('bench --replay', () => {
  it('offers the trace as it arrived, scaled when told, and measures it whole', async () => {
    const trace = join(SAMPLES, 'mooncake.jsonl');
    const done = await run([
      'bench',
      server.url,
      '--replay',
      trace,
      '--time-scale',
      '0.1',
      ...SLO,
      '--out',
      dir,
      '--json',
    ]);
    expect([0, 3]).toContain(done.code);
    const report = JSON.parse(done.stdout);
    expect(report.cohort).toMatchObject({ offered: 4, good: 4 });
    expect(report.arrivals).toMatchObject({ process: 'trace', count: { observed: 4, expected: 4 } });
    expect(report.lengths.achieved_input).toBe(report.lengths.asked_input);
    const again = await run(['bench', server.url, '--replay', trace, '--rate', '5']);
    expect(again.code).toBe(2);
    expect(again.stderr).toMatch(/--rate: the trace says it/);
  });
});

describe('a trace on the wire', () => {
  it('arrives as planned to the microsecond, its hashes as shared text', async () => {
    const bench = join(import.meta.dirname, '..', '..', 'bench', 'workload', 'replay.mjs');
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [bench, join(SAMPLES, 'mooncake.jsonl'), '--time-scale', '0.1'],
      { timeout: 60_000 },
    ).catch((error: { stdout: string }) => error); // how late it was sent is the machine's to answer
    expect(stdout).toMatch(/planned: 0 missing, 0 moved/);
    const [, named, different, received, seen] =
      /names (\d+) whole blocks, (\d+) of them different; received (\d+), (\d+) different/.exec(stdout) ?? [];
    expect(Number(named)).toBeGreaterThan(3);
    expect([received, seen]).toEqual([named, different]);
  });

  it('replays conversations as sessions, the turns after the answers', async () => {
    const trace = join(dir, 'burst.csv');
    writeFileSync(
      trace,
      `Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n${[
        '0,1,0.1,ChatGPT,20,4,24,Conversation log',
        '0.2,2,0.1,ChatGPT,20,4,24,Conversation log',
        '0.4,1,0.1,ChatGPT,40,4,44,Conversation log',
        '0.9,1,0.1,ChatGPT,64,4,68,Conversation log',
      ].join('\n')}\n`,
    );
    const done = await run(['bench', server.url, '--replay', trace, '--sessions', ...SLO, '--out', dir, '--json']);
    const report = JSON.parse(done.stdout);
    expect(report.cohort).toMatchObject({ offered: 4, good: 4 });
    expect(report.arrivals).toMatchObject({ process: 'trace', unit: 'sessions' });
    const rows = (await run(['report', folderOf(done), '--format', 'csv'])).stdout.trim().split(/\r?\n/).slice(1);
    const cells = rows.map((row) => row.split(',')).sort((a, b) => Number(a[0]) - Number(b[0]));
    expect(cells.map((c) => [c[3], c[4]])).toEqual([
      ['0', '0'],
      ['1', '0'],
      ['0', '1'],
      ['0', '2'],
    ]);
    // 0.3 s after the end of the answer before it, whenever that was.
    expect(Number(cells[2]![6]) - Number(cells[0]![11])).toBeCloseTo(300, 1);
  });
});
