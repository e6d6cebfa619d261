import { describe, expect, it } from 'vitest';
import { accelerator } from './accelerator.ts';
import { PipelinedStepModel, SkewedStepModel } from './adjusted.ts';
import { calibrated, SERVED_2026 } from './calibrated.ts';
import { type DeploymentOptions, deployment, kvPoolSequences, weightBytesPerDevice } from './deployment.ts';
import { IdealStepModel, idealRow, largestBatch } from './ideal.ts';
import { model } from './lookup.ts';
import { batchRow, decodeMs, largestBatchUnder, prefillMs } from './operating.ts';
import { capturedBatch, RooflineStepModel } from './roofline.ts';
import { type DecodePiece, emptyBatch } from './step.ts';

const on = (name: string, gpu = 'h100-sxm', options: DeploymentOptions = {}) =>
  deployment(model(name), accelerator(gpu), options);
const roofline = (name: string, gpu?: string, options?: DeploymentOptions) =>
  new RooflineStepModel(on(name, gpu, options), SERVED_2026);

describe('RooflineStepModel', () => {
  it('agrees with itself between a decode piece and a step', () => {
    for (const step of [
      roofline('llama-3.1-8b'),
      roofline('deepseek-v3', 'h200-sxm', { tp: 8 }),
      roofline('gpt-oss-120b', 'b200-sxm', { tp: 2 }),
      roofline('qwen3-235b-a22b', 'h200-sxm', { tp: 2, dp: 4 }),
    ]) {
      const piece: DecodePiece = { ms: 0, slope: 0, untilKv: 0 };
      for (const [n, each] of [
        [1, 10],
        [3, 100],
        [64, 127],
        [64, 129],
        [500, 50],
        [256, 8000],
      ] as const) {
        step.decode(n, n * each, piece);
        const at = (kv: number): number =>
          step.stepMs({ ...emptyBatch(), decodeSequences: n, decodeTokens: n, decodeKv: kv });
        expect(piece.ms).toBe(at(n * each));
        const end = Math.min(piece.untilKv, n * each + 100_000);
        expect(at(end)).toBeCloseTo(piece.ms + piece.slope * (end - n * each), 9);
      }
    }
  });

  it('is never faster than the ideal, and grows with batch, context and prompt', () => {
    for (const name of ['llama-3.1-8b', 'qwen3-30b-a3b', 'gpt-oss-20b']) {
      const ideal = new IdealStepModel(on(name));
      const real = roofline(name);
      for (const batch of [1, 16, 128]) {
        expect(decodeMs(real, batch, 2048)).toBeGreaterThan(decodeMs(ideal, batch, 2048));
        expect(decodeMs(real, 2 * batch, 2048)).toBeGreaterThan(decodeMs(real, batch, 2048));
        expect(decodeMs(real, batch, 4096)).toBeGreaterThanOrEqual(decodeMs(real, batch, 2048));
      }
      expect(prefillMs(real, 4000)).toBeGreaterThan(prefillMs(real, 2000));
    }
  });

  it('takes over twice as many devices less than all of the time, and pays for the links', () => {
    const [one, two, eight] = [1, 2, 8].map((tp) => decodeMs(roofline('llama-3.1-8b', 'h100-sxm', { tp }), 64, 4096));
    expect(two).toBeLessThan(one as number);
    expect(eight).toBeLessThan(two as number);
    expect(eight).toBeGreaterThan((one as number) / 8);
  });

  it('reads of the experts those a batch is expected to touch', () => {
    const small = decodeMs(roofline('qwen3-30b-a3b'), 1, 128);
    const large = decodeMs(roofline('qwen3-30b-a3b'), 64, 128);
    const dense = decodeMs(roofline('qwen3-32b'), 64, 128) / decodeMs(roofline('qwen3-32b'), 1, 128);
    expect(large / small).toBeGreaterThan(1.3 * dense);
  });

  it('pads decode batches to captured sizes', () => {
    expect([1, 2, 3, 5, 8, 9, 512, 513].map(capturedBatch)).toEqual([1, 2, 4, 8, 8, 16, 512, 513]);
  });

  it('waits for the scheduler where the device is faster', () => {
    const slow = new RooflineStepModel(on('qwen3-0.6b'), {
      ...SERVED_2026,
      cpuStepUs: 50_000,
      cpuSequenceUs: 0,
      sequenceUs: 0,
    });
    expect(decodeMs(slow, 4, 100)).toBe(50);
    const piece: DecodePiece = { ms: 0, slope: 0, untilKv: 0 };
    slow.decode(4, 400, piece);
    expect(piece.slope).toBe(0);
    expect(piece.untilKv).toBeGreaterThan(400);
    expect(decodeMs(slow, 1, piece.untilKv)).toBeGreaterThan(0);
  });
});

describe('adjusted step models', () => {
  const piece: DecodePiece = { ms: 0, slope: 0, untilKv: 0 };
  const d = on('llama-3.1-70b', 'h100-sxm', { tp: 2, pp: 4 });
  const { pp: _, ...stage } = d;
  const inner = new RooflineStepModel(stage, SERVED_2026);

  it('a pipeline takes what all layers take for its microbatch, and the sends', () => {
    const pipe = new PipelinedStepModel(inner, d);
    expect(decodeMs(pipe, 64, 2048)).toBeGreaterThan(decodeMs(inner, 16, 2048));
    expect(decodeMs(pipe, 64, 2048)).toBeLessThan(1.05 * decodeMs(inner, 16, 2048) + 0.1);
    // More tokens a second than one stage's devices alone would give, fewer than four times as many.
    const ratio = decodeMs(inner, 64, 2048) / decodeMs(pipe, 64, 2048);
    expect(ratio).toBeGreaterThan(1);
    expect(ratio).toBeLessThan(4);
    expect(kvPoolSequences(d, 2048)).toBeGreaterThan(4 * kvPoolSequences(stage, 2048));
    // The ends have an embedding or a head of their own.
    const share = weightBytesPerDevice(d) / weightBytesPerDevice(stage);
    expect(share).toBeGreaterThan(0.25);
    expect(share).toBeLessThan(0.27);
  });
  it('agree with themselves between a decode piece and a step', () => {
    for (const step of [new PipelinedStepModel(inner, d), new SkewedStepModel(inner, 1.3)]) {
      for (const [n, each] of [
        [1, 10],
        [7, 300],
        [64, 2000],
      ] as const) {
        step.decode(n, n * each, piece);
        const at = (kv: number): number =>
          step.stepMs({ ...emptyBatch(), decodeSequences: n, decodeTokens: n, decodeKv: kv });
        expect(piece.ms).toBeCloseTo(at(n * each), 12);
        const end = Math.min(piece.untilKv, n * each + 10_000) - 1;
        expect(at(end)).toBeCloseTo(piece.ms + piece.slope * (end - n * each), 9);
      }
    }
  });
  it('uneven KV costs its factor of what reading grows by', () => {
    const skewed = new SkewedStepModel(inner, 1.5);
    const [a, b] = [decodeMs(inner, 64, 1000), decodeMs(inner, 64, 5000)];
    expect(decodeMs(skewed, 64, 5000) - decodeMs(skewed, 64, 1000)).toBeCloseTo(1.5 * (b - a), 9);
  });
});

describe('operating points', () => {
  it('agree with the closed form under the ideal', () => {
    const d = on('llama-3.1-8b');
    const ideal = new IdealStepModel(d);
    const row = batchRow(d, ideal, { batch: 64, context: 2048, output: 256, tpot: 10 });
    const closed = idealRow(d, 64, 2048, 256, 10);
    expect(row).toMatchObject({
      stepMs: closed.stepMs,
      goodput: closed.goodput,
      computeMs: closed.computeMs,
      fitsPool: true,
    });
    expect(largestBatchUnder(d, ideal, { context: 2048, tpot: 10 })).toMatchObject({ largest: 64, bound: 'tpot' });
    expect(largestBatchUnder(d, ideal, { context: 2048, tpot: 50 })).toEqual({
      largest: 200,
      pool: 200,
      bound: 'kv-pool',
    });
    expect(largestBatchUnder(d, ideal, { context: 2048 }).largest).toBe(largestBatch(d, 2048).largest);
  });
  it('say so when the pool cannot hold the batch, or nothing fits', () => {
    const d = on('llama-3.1-8b');
    expect(batchRow(d, new IdealStepModel(d), { batch: 201, context: 2048, output: 256 })).toMatchObject({
      fitsPool: false,
      goodput: 0,
    });
    const none = on('llama-3.1-70b');
    expect(largestBatchUnder(none, new IdealStepModel(none), { context: 2048, tpot: 50 })).toMatchObject({
      largest: 0,
      pool: 0,
    });
  });
});

describe('calibrated', () => {
  it('says what it was fitted on, and where it is used beyond that', () => {
    expect(calibrated(on('llama-3.1-8b')).beyond).toEqual([]);
    expect(calibrated(on('llama-3.1-8b')).step.label).toContain('calibrated');
    expect(calibrated(on('llama-3.1-8b', 'l40s')).beyond.join()).toContain('l40s');
    expect(calibrated(on('llama-3.1-8b', 'h100-sxm', { weights: 'int8' })).beyond.join()).toContain('int8');
    expect(calibrated(on('llama-3.1-8b', 'h100-sxm', { tp: 16 })).beyond.join()).toContain('16');
  });
});
