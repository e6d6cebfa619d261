import { describe, expect, it } from 'vitest';
import { accelerator } from './accelerator.ts';
import { deployment, kvPoolBytesPerDevice, kvPoolSequences } from './deployment.ts';
import { IdealStepModel, idealRow, largestBatch } from './ideal.ts';
import { model } from './lookup.ts';
import { kvBytesPerSequence, kvBytesPerToken, weightBytes } from './shape.ts';
import { type DecodePiece, emptyBatch } from './step.ts';

const d = deployment(model('llama-3.1-8b'), accelerator('h100-sxm'));

describe('the worked table: Llama 3.1 8B, BF16, one H100 SXM, 2,048 tokens', () => {
  it('gives the printed weights and KV', () => {
    expect((weightBytes(d.model) / 1e9).toFixed(2)).toBe('16.06');
    expect(kvBytesPerToken(d.model)).toBe(128 * 1024);
    expect((kvBytesPerSequence(d.model, 2048) / 1e6).toFixed(0)).toBe('268');
  });

  it.each([
    [16, '6.08', '2633', '10.3'],
    [32, '7.36', '4349', '17.0'],
    [64, '9.92', '6450', '25.2'],
    [96, '12.49', '7688', '0.0'],
    [128, '15.05', '8505', '0.0'],
  ])('batch %i: %s ms, %s tokens/s, %s requests/s', (batch, ms, tokens, goodput) => {
    const row = idealRow(d, batch, 2048, 256, 10);
    expect(row.stepMs.toFixed(2)).toBe(ms);
    expect(row.tokensPerSecond.toFixed(0)).toBe(tokens);
    expect(row.goodput.toFixed(1)).toBe(goodput);
    expect(row.bound).toBe('memory');
  });

  it('checks compute', () => {
    expect(idealRow(d, 128, 2048, 256).computeMs.toFixed(2)).toBe('2.08');
  });

  it('bounds the batch at 10 ms, with BF16 and FP8 KV', () => {
    const bf16 = largestBatch(d, 2048, 10);
    expect(bf16.tpotBound.toFixed(2)).toBe('64.97');
    expect(bf16).toMatchObject({ largest: 64, bound: 'tpot' });
    const fp8 = largestBatch(deployment(d.model, d.accelerator, { kv: 'fp8' }), 2048, 10);
    expect(fp8.tpotBound.toFixed(2)).toBe('129.94');
    expect(fp8.largest).toBe(129);
  });

  it('sizes the pool, which binds at 50 ms and without a latency objective', () => {
    expect(largestBatch(d, 2048, 50)).toMatchObject({ pool: 200, largest: 200, bound: 'kv-pool' });
    expect(largestBatch(d, 2048)).toMatchObject({ largest: 200, bound: 'kv-pool' });
    expect(kvPoolBytesPerDevice(d)).toBeCloseTo(72e9 - 2e9 - weightBytes(d.model), 0);
  });
});

describe('deployment', () => {
  it('refuses a parallelism that does not divide the heads, in one line', () => {
    expect(() => deployment(d.model, d.accelerator, { tp: 3 })).toThrow(
      /tensor parallelism 3 does not divide the 32 heads of llama-3.1-8b; use 1, 2, 4, 8, 16/,
    );
    expect(() => deployment(d.model, d.accelerator, { tp: 0 })).toThrow(/must be a whole number/);
  });
  it('keeps a KV head whole, and an MLA latent on every device', () => {
    const at = (name: string, tp: number): number =>
      kvPoolSequences(deployment(model(name), accelerator('h200'), { tp }), 8192);
    // Beyond 8 devices a model of 8 KV heads copies them: the weights' share shrinks, the KV's does not.
    expect(at('llama-3.1-8b', 16)).toBeLessThan(1.05 * at('llama-3.1-8b', 8));
    // Each device keeps the whole latent: a doubling frees only what the weights leave.
    expect(at('deepseek-v3', 16)).toBeLessThan(3 * at('deepseek-v3', 8));
    expect(at('llama-3.1-70b', 1)).toBe(0);
  });
});

describe('IdealStepModel', () => {
  it('agrees with itself between a decode piece and a step, on every catalogue kind', () => {
    for (const name of ['llama-3.1-8b', 'deepseek-v3', 'gpt-oss-20b', 'mixtral-8x7b', 'qwen3-0.6b']) {
      const step = new IdealStepModel(deployment(model(name), accelerator('h200-sxm'), { tp: 8 }));
      const piece: DecodePiece = { ms: 0, slope: 0, untilKv: 0 };
      for (const [n, each] of [
        [1, 10],
        [3, 100],
        [64, 127],
        [64, 129],
        [4000, 5],
        [256, 8000],
      ] as const) {
        step.decode(n, n * each, piece);
        const at = (kv: number): number =>
          step.stepMs({ ...emptyBatch(), decodeSequences: n, decodeTokens: n, decodeKv: kv });
        expect(piece.ms).toBe(at(n * each));
        const end = Math.min(piece.untilKv, n * each + 1000);
        expect(at(end)).toBeCloseTo(piece.ms + piece.slope * (end - n * each), 9);
      }
    }
  });

  it('is compute-bound on a long prefill', () => {
    const step = new IdealStepModel(d);
    const ms = step.stepMs({
      ...emptyBatch(),
      prefillSequences: 1,
      prefillTokens: 4096,
      prefillKv: 4096,
      prefillSquares: 4096 ** 2,
      prefillCompletes: 1,
    });
    // 2 · 8.03e9 · 4096 FLOPs of linear layers and 2 · 32 layers · 4096 · 4096² of causal attention, at 989 TFLOP/s.
    expect(ms).toBeCloseTo((2 * 8.03e9 * 4096 + 2 * 32 * 4096 * 4096 ** 2) / 989e9, 1);
  });
});
