import { describe, expect, it } from 'vitest';
import { contractOf } from '../core/contract.ts';
import { accelerator, deployment, IdealStepModel, model } from '../model/index.ts';
import { ContinuousReplica, limitsFor } from '../sim/index.ts';
import { type ClassPlan, type MixPlan, openMix } from '../workload/index.ts';
import { type ProbeTarget, probeOf } from './probe.ts';

const d = deployment(model('llama-3.1-8b'), accelerator('h100-sxm'));
const cluster = (maxSeqs = 64) => new ContinuousReplica(new IdealStepModel(d), limitsFor(d, { maxSeqs }));
const kind = (name: string, output: number, session?: ClassPlan['session']): ClassPlan => ({
  name,
  share: 1,
  input: { kind: 'fixed', tokens: 200 },
  output: { kind: 'fixed', tokens: output },
  choices: 1,
  stream: true,
  ignoreEos: true,
  ...(session && { session }),
});
const target = (mix: MixPlan, more: Omit<ProbeTarget, 'cluster' | 'workload'>): ProbeTarget => ({
  cluster,
  workload: (rate, seed) => openMix(mix, { process: 'poisson', rate }, seed),
  ...more,
});
const ask = { rate: 5, seed: 1, requests: 200, warmup: 20, role: 'steer', why: '' } as const;

describe('a simulated probe', () => {
  const mix: MixPlan = { classes: [kind('chat', 50), kind('batch', 100)], prompt: 'none' };

  it('holds each class to its own contract and deadline', () => {
    const wide = contractOf({ ttft: 60_000 });
    const tight = contractOf({ e2e: 0.001 });
    expect(probeOf(target(mix, { contract: wide }), ask).attainment).toBe(1);
    const own = probeOf(target(mix, { contract: wide, contracts: { batch: tight } }), ask);
    expect(own.misses.map((m) => m.class)).toEqual(['batch']);
    expect(own.attainment).toBeGreaterThan(0.3);
    expect(own.attainment).toBeLessThan(0.7);
    const short = { ...wide, deadline: 1 };
    const timed = probeOf(target(mix, { contract: wide, contracts: { chat: short } }), ask);
    expect(timed.misses).toMatchObject([{ class: 'chat', limit: 'timed-out' }]);
  });

  it('ends, and counts turns that were never sent, when first turns fail', () => {
    const session = kind('chat', 50, {
      turns: { kind: 'fixed', tokens: 4 },
      think: { kind: 'fixed', time: 100 },
    });
    const turns: MixPlan = { classes: [session], prompt: 'none' };
    const strict = { ...contractOf({ ttft: 1000 }), deadline: 1 };
    const m = probeOf(target(turns, { contract: strict, perArrival: 4 }), ask);
    expect(m.offered).toBe(200);
    expect(m.misses.map((x) => x.limit).sort()).toEqual(['timed-out', 'unsent']);
    expect(m.misses.find((x) => x.limit === 'unsent')?.count).toBe(150);
  });
});
