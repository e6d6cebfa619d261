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

describe('goodput model, parts by flag', () => {
  const of = async (name: string, ...more: string[]): Promise<ModelAnswer> => {
    const batch = more.includes('--batch') ? [] : ['--batch', '64'];
    const { out, err } = await runCommand(model, ['--model', name, '--tpot', '50ms', ...batch, ...more, '--json']);
    expect(err).toBe('');
    return JSON.parse(out);
  };
  const step = (a: ModelAnswer): number => a.rows[0]?.step_ms as number;

  it('precisions: fewer bytes a weight, fewer GB and shorter steps', async () => {
    const bf16 = await of('llama-3.1-8b', '--gpu', 'b200');
    for (const [dtype, share] of [
      ['fp8', 0.5],
      ['int8', 0.5],
      ['int4', 0.26],
      ['fp4', 0.28],
    ] as const) {
      const a = await of('llama-3.1-8b', '--gpu', 'b200', '--weights', dtype);
      expect(a.weights_dtype).toBe(dtype);
      // Embedding and head stay in 16 bits.
      expect(a.weights_gb / bf16.weights_gb).toBeGreaterThan(share);
      expect(a.weights_gb / bf16.weights_gb).toBeLessThan(share + 0.15);
      expect(step(a)).toBeLessThan(step(bf16));
    }
  });
  it('MLA caches a latent, windows bound what is read, experts are read as far as they are touched', async () => {
    const mla = await of('deepseek-v3', '--gpu', 'h200', '--tp', '8');
    expect(mla.kv_mb_per_sequence).toBeCloseTo((61 * 576 * 2 * 2048) / 1e6, 6);
    const near = await of('gpt-oss-20b', '--gpu', 'h100', '--context', '4096');
    const far = await of('gpt-oss-20b', '--gpu', 'h100', '--context', '8192');
    expect(far.kv_mb_per_sequence).toBeLessThan(2 * near.kv_mb_per_sequence);
    const moe = ['qwen3-30b-a3b', '--gpu', 'h100', '--context', '128', '--ideal', '--batch', '1,8,64'] as const;
    const [one, eight, many] = (await of(...moe)).rows;
    expect(eight?.step_ms).toBeGreaterThan(2 * (one?.step_ms as number));
    expect(many?.step_ms).toBeLessThan(8 * (eight?.step_ms as number));
  });
  it('pads to captured sizes', async () => {
    const rows = (await of('llama-3.1-8b', '--gpu', 'h100', '--batch', '57,64', '--context', '64')).rows;
    expect((rows[1]?.step_ms as number) / (rows[0]?.step_ms as number)).toBeLessThan(1.02);
  });
  it('pipeline stages share the weights, and say what is assumed', async () => {
    const a = await of('llama-3.1-70b', '--gpu', 'h100', '--tp', '2', '--pp', '2');
    expect(a).toMatchObject({ devices: 4, tp: 2, pp: 2 });
    expect(a.step).toMatch(/2 pipeline stages$/);
    expect(a.basis.join()).toMatch(/2 even stages and as many microbatches under way are assumed/);
    const flat = await of('llama-3.1-70b', '--gpu', 'h100', '--tp', '4');
    expect(step(a)).toBeGreaterThan(step(flat));
    expect(Math.abs(a.kv_pool_sequences / flat.kv_pool_sequences - 1)).toBeLessThan(0.1);
  });
  it('uneven contexts cost the factor that is given', async () => {
    const [even, skewed] = [
      await of('llama-3.1-8b', '--gpu', 'h100'),
      await of('llama-3.1-8b', '--gpu', 'h100', '--kv-skew', '1.3'),
    ];
    expect(step(skewed)).toBeGreaterThan(step(even));
    expect(skewed.basis.join()).toMatch(/--kv-skew/);
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
