import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { run, scratch } from './cli.ts';

const { dir, remove } = scratch();
afterAll(remove);

const PLAN = ['plan', '--model', 'llama-3.1-8b', '--rate', '40', '--input', '64', '--output', '16', '--threads', '1'];
const ONE = ['--gpu', 'h100-sxm', '--tp', '1', '--weights', 'bf16', '--chunks', '2048', '--finalists', '1'];
const SLO = ['--slo', 'ttft=300ms,tpot=8ms'];
const LONG = 240_000;

const file = (name: string, text: string): string => {
  const path = join(dir, name);
  writeFileSync(path, text);
  return path;
};

const profile = (target: object, maxSeqs: number | null): string =>
  JSON.stringify({
    schema: 'goodput.profile/1',
    name: 'ours',
    target,
    runs: ['r'],
    form: 'sum',
    coefficients: {
      step: { value: 6, low: 6, high: 6 },
      sequence: { value: 0.02, low: 0.02, high: 0.02 },
      kv: { value: 0.04, low: 0.04, high: 0.04 },
      prefill_token: { value: 20, low: 20, high: 20 },
    },
    unseparated: [],
    stall_factor: 1,
    range: { sequences: [1, 32], context: [1, 4096], prompt: [1, 4096] },
    limits: { max_seqs: maxSeqs, max_seqs_from: maxSeqs === null ? 'default' : 'given', max_batched_tokens: 2048 },
    fit: {
      condition: 5,
      blocks: 10,
      observations: { decode: 100, prefill: 10, lone: 5 },
      together: 1,
      fitted: { decode: 0.01, prefill: 0.01, lone: 0.01, bias: 0, observations: 100 },
      held_out: { decode: 0.01, prefill: 0.01, lone: 0.01, bias: 0, observations: 100 },
      held_out_run: null,
      other_form: null,
    },
    remarks: [],
  });

describe('goodput plan', () => {
  it('gives replicas, cost, the frontier and reasons in JSON, and every row in the CSV', {
    timeout: LONG,
  }, async () => {
    const csv = join(dir, 'plan.csv');
    const args = [
      ...PLAN,
      ...SLO,
      '--gpu',
      'h100-sxm,l4',
      '--tp',
      '1',
      '--weights',
      'bf16',
      '--chunks',
      '2048',
      '--finalists',
      '1',
    ];
    const done = await run([...args, '--ideal', '--json', '--csv', csv, '--price', 'h100-sxm=2.5,l4=0.5']);
    expect(done.code).toBe(0);
    const plan = JSON.parse(done.stdout);
    expect(plan).toMatchObject({
      schema: 'goodput.plan/1',
      model: 'llama-3.1-8b',
      rate: 40,
      basis: 'ideal',
      headroom: 0.2,
    });
    expect(plan.method).toMatch(/capped at the largest batch that meets the pace.*replicas added/);
    const [best, loser] = plan.rows;
    expect(best).toMatchObject({ gpu: 'h100-sxm', tp: 1, confirmed: true, frontier: true });
    expect(best.rate_high).toBeGreaterThan(best.rate_low);
    expect(best.replicas).toBe(Math.ceil(40 / (0.8 * best.rate_low)));
    expect(best.cost_per_hour).toBeCloseTo(2.5 * best.gpus, 9);
    // 16 GB of weights at 300 GB/s: no step is as short as the pace asks.
    expect(loser).toMatchObject({ gpu: 'l4', gpus: null, cost_per_hour: null, cause: 'tpot' });
    expect(loser.why).toMatch(/infeasible at any rate: tpot is missed without load/);
    const lines = readFileSync(csv, 'utf8').trim().split('\n');
    expect(lines).toHaveLength(1 + plan.rows.length);
    expect(lines[0]).toMatch(/^gpu,tp,weights,kv,chunk,cap,cap_bound,.*cause/);
    expect(plan.protect.join('\n')).toMatch(/Chat: .*\nBatch: .*\nMixed: /);
    expect(done.stderr).toMatch(
      /Plan {6}2 operating points, 2 of them confirmed: about .* simulated requests on 1 threads, roughly/,
    );
  });

  it('says for people what it did and what to protect, and exits 1 when nothing holds', { timeout: LONG }, async () => {
    const done = await run([...PLAN, ...ONE, '--engine', 'vllm', '--slo', 'ttft=300ms,tpot=1ms']);
    expect(done.code).toBe(1);
    expect(done.stdout).toMatch(/calibrated step times \(served rows of vllm\)/);
    expect(done.stdout).toMatch(/Method +concurrency is capped at the largest batch/);
    expect(done.stdout).toMatch(/Answer +nothing that was tried holds the contract at any rate/);
    expect(done.stdout).toMatch(/Chat: no batch keeps TPOT p90 within 1 ms/);
  });

  it('holds each class of a workload to its own contract', { timeout: LONG }, async () => {
    const classes = (slo: string): string =>
      file(
        'mix.yaml',
        `rate: 40\nclasses:\n  - { name: chat, share: 3, input: 64, output: 16, slo: '${slo}' }\n  - { name: batch, share: 1, input: 256, output: 32, slo: e2e=60s }\n`,
      );
    const ask = async (slo: string) => {
      const base = [
        'plan',
        '--model',
        'llama-3.1-8b',
        ...ONE,
        '--ideal',
        '--threads',
        '1',
        '--json',
        '--slo',
        'e2e=60s',
      ];
      return JSON.parse((await run([...base, '--workload', classes(slo)])).stdout);
    };
    const [loose, tight] = [await ask('ttft=2s,tpot=20ms'), await ask('ttft=2s,tpot=7ms')];
    expect(loose.rate).toBe(40);
    expect(Object.keys(loose.contracts)).toEqual(['chat', 'batch']);
    // A pace of one class caps the batch of the whole replica.
    expect(tight.rows[0].cap).toBeLessThan(loose.rows[0].cap);
    expect(tight.rows[0].cap_bound).toBe('tpot');
    expect(tight.rows[0].rate).toBeLessThan(loose.rows[0].rate);
  });

  it('plans a trace at another rate, and says how it got there', { timeout: LONG }, async () => {
    const at = (i: number): string => new Date(Date.UTC(2023, 10, 16) + 400 * i + 97 * (i % 5)).toISOString();
    const rows = Array.from(
      { length: 300 },
      (_, i) => `${at(i).replace('T', ' ').replace('Z', '0000')},${40 + (i % 50)},${8 + (i % 16)}`,
    );
    const trace = file('trace.csv', `TIMESTAMP,ContextTokens,GeneratedTokens\n${rows.join('\n')}\n`);
    const base = ['plan', '--model', 'llama-3.1-8b', ...ONE, ...SLO, '--ideal', '--threads', '1', '--json'];
    const done = await run([...base, '--replay', trace, '--rate', '40']);
    expect(done.stderr).not.toMatch(/error/i);
    const plan = JSON.parse(done.stdout);
    expect(plan.traffic).toMatch(/300 requests, recorded at 2\.49\/s\) at 40\/s: its clock is kept/);
    expect(plan.rows[0].rate_low).toBeGreaterThan(10);
    expect((await run([...base, '--replay', trace, '--arrivals', 'constant'])).stderr).toMatch(
      /--arrivals: a trace has its own/,
    );
  });

  it('takes a profile for what it was measured on, and nothing else', { timeout: LONG }, async () => {
    const own = file('own.yaml', profile({ model: 'meta-llama/Llama-3.1-8B-Instruct' }, 24));
    const base = [
      'plan',
      '--model',
      'llama-3.1-8b',
      '--rate',
      '20',
      '--input',
      '64',
      '--output',
      '16',
      '--gpu',
      'a100-sxm',
    ];
    const done = await run([
      ...base,
      '--slo',
      'ttft=1s,tpot=50ms',
      '--threads',
      '1',
      '--finalists',
      '1',
      '--tp',
      '2',
      '--profile',
      own,
      '--json',
    ]);
    expect(done.code).toBe(0);
    const plan = JSON.parse(done.stdout);
    expect(plan.rows).toHaveLength(1);
    expect(plan.rows[0]).toMatchObject({ tp: 2, basis: 'profile', cap: 24, cap_bound: 'measured', chunk: 2048 });
    expect(plan.rows[0].gpus).toBe(2 * plan.rows[0].replicas);
    expect(plan.remarks.join('\n')).toMatch(/does not say its accelerator: taken to be a100-sxm/);
    expect(plan.remarks.join('\n')).toMatch(/batches are capped at 24, the limit its engine was run with/);
    const refused = async (target: object, ...more: string[]) => {
      const { code, stderr } = await run([...base, '--profile', file('other.yaml', profile(target, null)), ...more]);
      expect(code).toBe(2);
      expect(stderr.trim().split('\n')).toHaveLength(1);
      return stderr;
    };
    expect(await refused({ model: 'qwen3-32b' })).toMatch(/was measured on qwen3-32b, not llama-3\.1-8b/);
    expect(await refused({ model: 'llama-3.1-8b', gpu: 'h100' })).toMatch(
      /was measured on h100, not a100-sxm.*give --gpu h100-sxm/,
    );
    expect(await refused({ model: 'llama-3.1-8b', tp: 4 }, '--tp', '2')).toMatch(
      /at tensor parallelism 4, not 2; give --tp 4/,
    );
  });

  it('refuses what cannot be planned in one line, with exit code 2', { timeout: LONG }, async () => {
    const refused = async (...args: string[]): Promise<string> => {
      const { code, stderr, stdout } = await run(['plan', ...args]);
      expect([code, stdout]).toEqual([2, '']);
      expect(stderr.trim().split('\n')).toHaveLength(1);
      return stderr;
    };
    const on = (model: string, ...more: string[]): Promise<string> => refused('--model', model, '--rate', '1', ...more);
    expect(await on('llama-3.1-405b', '--gpu', 'h100-sxm', '--tp', '1')).toMatch(
      /leaves no room for KV on 1 × h100-sxm \(short by/,
    );
    expect(await on('llama-3.1-8b', '--gpu', 'h100-sxm', '--tp', '3')).toMatch(
      /tensor parallelism 3 does not divide the 32 heads/,
    );
    expect(await on('llama-3.1-8b', '--gpu', 'h100-smx')).toMatch(/unknown accelerator 'h100-smx'.*h100-sxm/);
    expect(await on('llama-3.1-9b', '--gpu', 'h100-sxm')).toMatch(/unknown model 'llama-3.1-9b'.*llama-3.1-8b/);
    const half = file('half.json', JSON.stringify({ model_type: 'llama', hidden_size: 4096 }));
    expect(await on(half, '--gpu', 'h100-sxm')).toMatch(/half\.json.*num_hidden_layers/);
    expect(await refused('--model', 'llama-3.1-8b', '--gpu', 'h100-sxm')).toMatch(/--rate: say how many/);
    expect(await on('llama-3.1-8b', '--gpu', 'h100-sxm', '--price', 'h100-sxm')).toMatch(/not gpu=price/);
    expect(await on('llama-3.1-8b', '--gpu', 'h100-sxm', '--attainment', '100%')).toMatch(/no number of runs shows/);
  });
});
