import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Report } from '../report/index.ts';
import { simulate } from './simulate.ts';
import { runCommand } from './testing.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'simulate-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const BASE = ['--model', 'llama-3.1-8b', '--gpu', 'h100-sxm'];
const LOAD = ['--rate', '20', '--duration', '60s', '--slo', 'ttft=500ms,tpot=30ms'];

async function reported(...more: string[]): Promise<Report & { code: number }> {
  const { out, err, code } = await runCommand(simulate, [...BASE, ...more, '--json']);
  expect(err).toBe('');
  return { ...JSON.parse(out), code };
}

describe('goodput simulate', () => {
  it('reports as bench does, in virtual time, with the phases', async () => {
    const r = await reported(...LOAD);
    expect(r.schema).toBe('goodput.report/1');
    expect(r.window.seconds).toBe(60);
    expect(r.cohort.offered).toBeGreaterThan(1000);
    expect(r.cohort.offered).toBe(r.cohort.good + r.cohort.late);
    expect(r.cohort.undecided).toBe(0);
    expect(r.code).toBe(0);
    expect(r.client.verdict).toBe('ok');
    expect(r.metrics.itl_ms?.exactness).toBe('exact');
    const remarks = r.run.remarks?.join('\n') ?? '';
    expect(remarks).toMatch(/simulated: nothing was measured/);
    for (const phase of ['queue', 'prefill', 'decode'])
      expect(remarks).toContain(`${phase} time of completed requests`);
  });
  it('gives the same twice, another seed another, and says in the exit code that the contract is missed', async () => {
    const [a, b, c] = [await reported(...LOAD), await reported(...LOAD), await reported(...LOAD, '--seed', '2')];
    expect(b).toEqual(a);
    expect(c.metrics.ttft_ms?.mean).not.toBe(a.metrics.ttft_ms?.mean);
    expect((await reported('--rate', '20', '--duration', '20s', '--slo', 'ttft=1ms')).code).toBe(1);
  });
  it('counts a cohort of requests, in an open and in a closed loop', async () => {
    const open = await reported('--rate', '20', '--requests', '200', '--slo', 'ttft=1s');
    expect(open.cohort.offered).toBe(200);
    expect(open.window.seconds).toBe(10);
    const closed = await reported('--concurrency', '8', '--requests', '100', '--slo', 'ttft=1s');
    expect(closed.cohort.offered).toBe(100);
    expect(closed.run.closed_loop).toBe(true);
    expect(closed.goodput_rps).toBeGreaterThan(1);
  });
  it('serves worse with static batching, better with more replicas; splits prefill from decode; speculates', async () => {
    const load = [
      '--rate',
      '60',
      '--duration',
      '20s',
      '--slo',
      'ttft=500ms,tpot=30ms',
      '--ideal',
      '--max-num-seqs',
      '32',
    ];
    const one = await reported(...load);
    const fixed = await reported(...load, '--scheduler', 'static');
    const two = await reported(...load, '--replicas', '2', '--router', 'round-robin');
    expect(fixed.metrics.ttft_ms?.p50 as number).toBeGreaterThan(one.metrics.ttft_ms?.p50 as number);
    expect(two.metrics.e2e_ms?.p50 as number).toBeLessThan(one.metrics.e2e_ms?.p50 as number);
    expect(two.run.gpus).toBe(2);
    const wide = load.slice(0, -2);
    const split = await reported(...wide, '--prefill-replicas', '1', '--kv-link', '400');
    expect(split.run.target).toContain('1 prefill and 1 decode replicas');
    expect(split.metrics.tpot_ms?.p99 as number).toBeLessThan((await reported(...wide)).metrics.tpot_ms?.p99 as number);
    const drafted = await reported(...load, '--draft-tokens', '4', '--acceptance', '0.8');
    expect(drafted.metrics.tpot_ms?.p50 as number).toBeLessThan(one.metrics.tpot_ms?.p50 as number);
  });
  it('keeps a run folder whose report is the same, and a Chrome trace of the schedule', async () => {
    const trace = join(folder, 'trace.json');
    const { out, err } = await runCommand(simulate, [
      ...BASE,
      '--rate',
      '5',
      '--duration',
      '10s',
      '--slo',
      'ttft=500ms',
      '--out',
      folder,
      '--chrome-trace',
      trace,
      '--json',
    ]);
    expect(err).toMatch(/^Run folder: /);
    const direct = await reported('--rate', '5', '--duration', '10s', '--slo', 'ttft=500ms');
    const stored: Report = JSON.parse(out);
    expect(stored.metrics).toEqual(direct.metrics);
    expect(stored.cohort).toEqual(direct.cohort);
    expect(stored.attainment).toEqual(direct.attainment);
    const { traceEvents } = JSON.parse(await readFile(trace, 'utf8')) as {
      traceEvents: { name: string; ph: string; ts: number; dur: number; pid: number; tid: number }[];
    };
    expect(new Set(traceEvents.filter((e) => e.pid === 1).map((e) => e.name))).toEqual(
      new Set(['process_name', 'queue', 'prefill', 'decode']),
    );
    // Runs of one replica follow each other without overlap.
    const runs = traceEvents.filter((e) => e.pid === 2 && e.ph === 'X');
    expect(runs.length).toBeGreaterThan(10);
    for (let i = 1; i < runs.length; i++)
      expect(runs[i]?.ts).toBeGreaterThanOrEqual((runs[i - 1]?.ts as number) + (runs[i - 1]?.dur as number) - 1);
  });
  it.each([
    [['--kv-link', '10'], /--kv-link: KV stays where it is/],
    [['--acceptance', '0.5'], /nothing is drafted/],
    [['--draft-tokens', '2', '--acceptance', '2'], /acceptance 2 is not a share/],
    [['--scheduler', 'static', '--prefill-replicas', '1'], /static batching cannot be simulated with prefill/],
    [['--max-num-seqs', '512', '--max-num-batched-tokens', '256'], /token budget 256 is below the 512 sequences/],
    [
      ['--chrome-trace', '/nowhere/trace.json', '--requests', '10'],
      /--chrome-trace \/nowhere\/trace.json: cannot be written/,
    ],
  ])('refuses %j in one line', async (argv, message) => {
    const { err, out } = await runCommand(simulate, [...BASE, '--slo', 'ttft=1s', ...argv]);
    expect(err).toMatch(message);
    expect(err.split('\n')).toHaveLength(1);
    expect(out).toBe('');
  });
});
