import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ModelAnswer, model } from './model.ts';
import { runCommand } from './testing.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'model-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const BASE = ['--model', 'llama-3.1-8b', '--gpu', 'h100-sxm', '--output', '256'];

async function answer(...more: string[]): Promise<ModelAnswer> {
  const { out, err } = await runCommand(model, [...BASE, ...more, '--json']);
  expect(err).toBe('');
  return JSON.parse(out);
}

describe('goodput model --ideal', () => {
  it('prints the worked table', async () => {
    const a = await answer('--tpot', '10ms', '--ideal');
    expect(
      a.rows.map((r) => [
        r.batch,
        r.step_ms.toFixed(2),
        r.tokens_per_s.toFixed(0),
        r.meets_tpot,
        r.goodput_rps.toFixed(1),
        r.bound,
      ]),
    ).toEqual([
      [16, '6.08', '2633', true, '10.3', 'memory'],
      [32, '7.36', '4349', true, '17.0', 'memory'],
      [64, '9.92', '6450', true, '25.2', 'memory'],
      [96, '12.49', '7688', false, '0.0', 'memory'],
      [128, '15.05', '8505', false, '0.0', 'memory'],
    ]);
    expect(a.compute_check_ms.toFixed(2)).toBe('2.08');
    expect(a.weights_gb.toFixed(2)).toBe('16.06');
    expect(a.kv_mb_per_sequence.toFixed(0)).toBe('268');
    expect(a.largest_batch_bound?.toFixed(2)).toBe('64.97');
    expect(a).toMatchObject({
      largest_batch: 64,
      kv_pool_sequences: 200,
      bound: 'tpot',
      step: 'ideal',
      reserves: { memory_share: 0.9, other_gb: 2 },
    });
  });
  it('bounds the batch with FP8 KV, at 50 ms, and without a latency objective', async () => {
    const fp8 = await answer('--tpot', '10ms', '--ideal', '--kv-dtype', 'fp8');
    expect(fp8.largest_batch_bound?.toFixed(2)).toBe('129.94');
    expect(fp8.largest_batch).toBe(129);
    const slack = await answer('--tpot', '50ms', '--ideal');
    expect(slack).toMatchObject({ largest_batch: 200, bound: 'kv-pool' });
    const none = await answer('--ideal');
    expect(none).toMatchObject({ largest_batch: 200, bound: 'kv-pool', largest_batch_bound: null, tpot_ms: null });
    expect(none.notes.join()).toContain('goodput equals throughput');
    for (const row of none.rows) expect(row.goodput_rps).toBeCloseTo(row.tokens_per_s / 256, 9);
  });
  it('says when compute binds', async () => {
    const a = await answer('--ideal', '--tpot', '20ms', '--context', '16', '--batch', '64,1024');
    expect(a.rows.map((r) => r.bound)).toEqual(['memory', 'compute']);
    expect(a.bound).toBe('compute');
    expect(a.notes.join()).toMatch(/compute binds the step at batch 1024/);
  });
});

describe('goodput model, calibrated', () => {
  it('is slower than the ideal, says what it rests on, and where it has no data', async () => {
    const [ideal, real] = [await answer('--ideal', '--tpot', '20ms'), await answer('--tpot', '20ms')];
    for (const [i, row] of ideal.rows.slice(0, 5).entries()) expect(real.rows[i]?.step_ms).toBeGreaterThan(row.step_ms);
    expect(real.step).toMatch(/^calibrated/);
    expect(real.basis.join()).toMatch(/left out of the fit 17 % for TPOT/);
    const a100 = await runCommand(model, ['--model', 'llama-3.1-8b', '--gpu', 'a100', '--tpot', '20ms']);
    expect(a100.out).toContain('beyond the data: no measurement on a100-sxm was in the fit');
  });
  it('holds a percentile of steps, of requests, of uneven contexts: prefill makes steps worse than requests', async () => {
    const on = ['--tpot', '25ms', '--batch', '32', '--percentile', '99'];
    const steps = await answer(...on, '--percentile-of', 'steps');
    const requests = await answer(...on, '--percentile-of', 'requests');
    const p = (a: ModelAnswer): number => a.rows[0]?.tpot_percentile_ms as number;
    expect(p(steps)).toBeGreaterThan(p(requests));
    expect(p(requests)).toBeGreaterThan(requests.rows[0]?.step_ms as number);
    expect(requests.largest_batch).toBeGreaterThan(steps.largest_batch);
    const uneven = await answer(...on, '--percentile-of', 'requests', '--context', 'uniform:512-3584');
    expect(uneven.context).toBe(2048);
    expect(p(uneven)).toBeGreaterThan(0);
  });
});

describe('goodput model, bad input: one line that says which and what to do', () => {
  it.each([
    [['--model', 'llama-3.1-8bb', '--gpu', 'h100'], /unknown model 'llama-3.1-8bb' \(did you mean 'llama-3.1-8b'\?\)/],
    [['--model', 'llama-3.1-8b', '--gpu', 'h10'], /unknown accelerator 'h10' \(did you mean 'h100'\?\)/],
    [['--model', 'llama-3.1-70b', '--gpu', 'h100'], /leaves no room for KV on 1 × h100-sxm.*use more devices/],
    [
      ['--model', 'llama-3.1-8b', '--gpu', 'h100', '--tp', '3'],
      /tensor parallelism 3 does not divide the 32 heads.*use 1, 2, 4/,
    ],
    [
      ['--model', 'llama-3.1-8b', '--gpu', 'l4', '--context', '50000'],
      /KV pool does not hold one sequence of 50000 tokens/,
    ],
    [
      ['--model', 'llama-3.1-8b', '--gpu', 'h100', '--kv-dtype', 'fp9'],
      /--kv-dtype: 'fp9' is not a precision \(did you mean 'fp8'/,
    ],
    [['--model', 'llama-3.1-8b', '--gpu', 'h100', '--batch', '4,x'], /--batch: 'x' is not a whole number/],
    [['--model', 'llama-3.1-8b', '--gpu', 'h100', '--context', 'uniform:1-9'], /add --percentile-of/],
    [['--model', 'llama-3.1-8b', '--gpu', 'h100', '--tpot', '10'], /--tpot: '10' is not a duration/],
    [['--model', 'none.json', '--gpu', 'h100'], /none\.json: cannot be read as JSON/],
  ])('%j', async (argv, message) => {
    const { err, out } = await runCommand(model, argv);
    expect(err).toMatch(message);
    expect(err.split('\n')).toHaveLength(1);
    expect(out).toBe('');
  });
  it('a config with missing fields', async () => {
    const file = join(folder, 'config.json');
    await writeFile(file, JSON.stringify({ model_type: 'llama', num_hidden_layers: 2, hidden_size: 64 }));
    const { err } = await runCommand(model, ['--model', file, '--gpu', 'h100']);
    expect(err).toMatch(/lacks 'num_attention_heads'; add it/);
  });
});
