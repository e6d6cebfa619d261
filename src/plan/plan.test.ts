import { describe, expect, it } from 'vitest';
import { contractOf } from '../core/contract.ts';
import { accelerator, model } from '../model/index.ts';
import { REQUEST_DEFAULTS } from '../workload/index.ts';
import { largestCap, pace } from './cap.ts';
import { planCsv, rowsOf } from './choose.ts';
import { evaluate } from './evaluate.ts';
import { type Candidate, candidates, type PlanAsk, replicaOf } from './options.ts';
import { chatPace, protectText, tradeRows } from './trade.ts';

const { input, output } = REQUEST_DEFAULTS;
const ask: PlanAsk = {
  model: model('llama-3.1-8b'),
  traffic: {
    kind: 'mix',
    mix: {
      classes: [{ name: 'default', share: 1, input, output, choices: 1, stream: true, ignoreEos: true }],
      prompt: 'none',
    },
    process: { process: 'poisson' },
  },
  rate: 60,
  contract: contractOf({ ttft: 500, tpot: 20 }),
  seed: 3,
  basis: 'ideal',
  headroom: 0.2,
};
const h100: Candidate = { gpu: accelerator('h100-sxm'), tp: 1, weights: 'bf16', kv: 'bf16', chunk: 2048 };

describe('plan', () => {
  it('leaves out what does not fit, with the reason', () => {
    const big = { ...ask, model: model('llama-3.1-70b') };
    const grid = {
      gpus: [h100.gpu],
      tps: [1, 3, 4],
      weights: ['bf16'] as const,
      kvs: ['bf16'] as const,
      chunks: [2048],
    };
    const { try: list, excluded } = candidates(big, grid);
    expect(list.map((c) => c.tp)).toEqual([4]);
    expect(excluded.map((e) => e.why).join()).toMatch(/leaves no room for KV.*does not divide/);
  });

  it('caps the batch where the target share still keeps pace, and not later', () => {
    const replica = replicaOf(ask, h100);
    const { cap, bound } = largestCap(ask, replica);
    expect(bound).toBe('tpot');
    expect(pace(ask, replica, cap).share).toBeGreaterThanOrEqual(0.9);
    expect(pace(ask, replica, Math.ceil(cap * 1.15)).share).toBeLessThan(0.9);
  });

  it('plans replicas on a rate that simulation confirms, with headroom', async () => {
    const e = await evaluate(ask, h100, 'confirm');
    expect(e.end).toBe('found');
    expect(e.low!).toBeLessThan(e.high!);
    const slow = {
      ...e,
      low: null,
      high: null,
      steer: null,
      end: 'infeasible' as const,
      binding: 'ttft',
      aloneTtftP90: 700,
    };
    const rows = rowsOf(ask, [slow, e], new Map([['h100-sxm', 2.5]]));
    expect(rows[0]?.replicas).toBe(Math.ceil(60 / (0.8 * e.low!)));
    expect(rows[0]?.cost_per_hour).toBe(2.5 * rows[0]!.gpus!);
    expect(rows[0]?.frontier).toBe(true);
    expect(rows[1]).toMatchObject({
      gpus: null,
      cause: 'compute',
      why: 'infeasible at any rate: ttft is missed without load (p90 700 ms)',
    });
    expect(planCsv(rows).split('\n')[0]).toMatch(/^gpu,tp,weights/);
  });

  it('states the trade of a larger batch with its own numbers', () => {
    const rows = tradeRows(ask, replicaOf(ask, h100), [1, 32, 256]);
    expect(rows[2]!.tokensPerSecond).toBeGreaterThan(rows[1]!.tokensPerSecond);
    expect(rows[2]!.tpotP90).toBeGreaterThan(rows[1]!.tpotP90);
    expect(protectText(rows, chatPace(ask, 50)).join('\n')).toMatch(/Chat: .*capping the batch near 32 \(p90/);
  });
});
