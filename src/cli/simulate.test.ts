import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
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
  it('takes a workload file as bench does: classes, each by its own contract, and a trace', async () => {
    const file = join(folder, 'mix.yaml');
    await writeFile(
      file,
      [
        'name: mix',
        'rate: 12',
        'classes:',
        '  - { name: chat, share: 3, input: 500, output: 50 }',
        '  - { name: batch, share: 1, input: 2000, output: 20, slo: "e2e=1ms" }',
      ].join('\n'),
    );
    const r = await reported('--workload', file, '--duration', '60s', '--slo', 'ttft=500ms');
    expect(r.run.workload).toMatch(/poisson 12\/s, workload mix/);
    expect(r.classes?.map((c) => [c.name, c.good > 0]).sort()).toEqual([
      ['batch', false],
      ['chat', true],
    ]);
    const trace = join(folder, 'trace.csv');
    const rows = Array.from({ length: 40 }, (_, i) => `2023-11-16 18:17:${String(i).padStart(2, '0')}.0,300,20`);
    await writeFile(trace, `TIMESTAMP,ContextTokens,GeneratedTokens\n${rows.join('\n')}\n`);
    expect((await reported('--replay', trace, '--slo', 'ttft=500ms')).cohort.offered).toBe(40);
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
  it('plans a step ahead under asynchronous scheduling, spreads layers over stages, charges uneven KV', async () => {
    const load = ['--rate', '20', '--duration', '20s', '--slo', 'ttft=500ms,tpot=30ms'];
    const plain = await reported(...load);
    const ahead = await reported(...load, '--async-scheduling');
    expect(ahead.metrics.ttft_ms?.mean as number).toBeGreaterThan(plain.metrics.ttft_ms?.mean as number);
    const piped = await reported(...load, '--pp', '2');
    expect(piped.run.gpus).toBe(2);
    expect(piped.run.target).toContain('2 pipeline stages');
    expect((await reported(...load, '--kv-skew', '2')).metrics.tpot_ms?.mean as number).toBeGreaterThan(
      plain.metrics.tpot_ms?.mean as number,
    );
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
  describe('of a calibrated profile', () => {
    const profile = (limits: object = {}) =>
      JSON.stringify({
        schema: 'goodput.profile/1',
        name: 'mine',
        target: {},
        runs: ['r'],
        form: 'sum',
        coefficients: {
          step: { value: 10, low: 9, high: 11 },
          prefill_token: { value: 20, low: 19, high: 21 },
          entry: { value: 3, low: 2, high: 4 },
        },
        unseparated: ['kv: nothing in the data varies it; it is taken as 0 and not known'],
        stall_factor: 1,
        range: { sequences: [1, 4], context: [1, 600], prompt: [10, 500] },
        limits: { max_seqs: null, max_seqs_from: 'default', max_batched_tokens: 8192, ...limits },
        fit: {
          condition: 5,
          blocks: 30,
          observations: { decode: 100, prefill: 10, lone: 10 },
          together: 1,
          fitted: { decode: 0.01, prefill: 0.02, lone: null, bias: 0, observations: 100 },
          held_out: { decode: 0.01, prefill: 0.02, lone: null, bias: 0, observations: 100 },
          held_out_run: null,
          other_form: null,
        },
        remarks: [],
      });
    const written = async (name: string, text: string): Promise<string> => {
      const file = join(folder, name);
      await writeFile(file, text);
      return file;
    };
    const ASK = ['--rate', '0.5', '--requests', '20', '--slo', 'ttft=1s', '--json'];

    it('takes its step times, says what it was measured on, and when it is asked beyond', async () => {
      const file = await written('p.yaml', profile());
      const lone = await runCommand(simulate, ['--profile', file, ...ASK, '--input', '500', '--output', '21']);
      const report: Report = JSON.parse(lone.out);
      // Alone in the batch: 3 ms of entry, a step of 10 ms with a prompt of 10 ms, then 20 steps of 10 ms.
      expect(report.metrics.ttft_ms?.p50).toBeCloseTo(23, 3);
      expect(report.metrics.tpot_ms?.p50).toBeCloseTo(10, 3);
      const remarks = report.run.remarks?.join('\n') ?? '';
      expect(remarks).toMatch(
        /calibrated \(mine\): median error on time it was not fitted to 1 % for decode, 2 % for prompts/,
      );
      expect(remarks).toMatch(/batch limit is not known: 256, the usual one, is taken/);
      expect(remarks).toMatch(/KV pool is not known/);
      expect(remarks).toMatch(/not separated: kv/);
      expect(remarks).not.toMatch(/beyond the data/);
      const far = await runCommand(simulate, ['--profile', file, ...ASK, '--input', '5000', '--output', '21']);
      expect(JSON.parse(far.out).run.remarks.join()).toMatch(
        /beyond the data: contexts of 50\d\d tokens, where 600 was the longest/,
      );
      const known = await written('q.yaml', profile({ max_seqs: 4, max_seqs_from: 'seen', kv_tokens: 4096 }));
      const { out } = await runCommand(simulate, ['--profile', known, ...ASK, '--input', '500', '--output', '21']);
      expect(JSON.parse(out).run.remarks.join()).not.toMatch(/not known: /);
      expect(JSON.parse(out).run.target).toMatch(/batch ≤ 4.*256 KV blocks/);
    });

    it.each([
      [['--profile', 'p.yaml', '--tp', '2'], /--tp: a profile is one engine as it was measured/],
      [['--profile', 'p.yaml', '--ideal'], /--ideal: a profile is one engine/],
      [
        ['--profile', '/nowhere.yaml'],
        /--profile \/nowhere.yaml: cannot be read \(ENOENT\); make one with goodput calibrate/,
      ],
      [['--gpu', 'h100'], /--model: what is simulated is not named; give --model and --gpu, or --profile FILE/],
      [[], /--model and --gpu: what is simulated is not named/],
    ])('refuses %j in one line', async (argv, message) => {
      const { err, out } = await runCommand(simulate, [...argv, '--slo', 'ttft=1s']);
      expect(err).toMatch(message);
      expect(err.split('\n')).toHaveLength(1);
      expect(out).toBe('');
    });
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
