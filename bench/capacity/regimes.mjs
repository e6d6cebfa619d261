/** Three ways a server reaches its limit, each small enough to be simulated by the hundred million requests. */
import { randomExponential, randomLogNormal } from 'd3-random';
import { load } from './dist.mjs';

const { keyed } = await load('base/random.js');
const { contractOf } = await load('core/contract.js');
const { accelerator, deployment, IdealStepModel, model } = await load('model/index.js');
const { ContinuousReplica, limitsFor } = await load('sim/index.js');

const on = deployment(model('llama-3.1-8b'), accelerator('h100-sxm'));
const step = new IdealStepModel(on);

/** As `openLoop`, with one generator a purpose instead of one an operation: a third of the simulation's cost otherwise. */
function lognormalLoad(input, output) {
  return (rate, seed) => {
    const gap = randomExponential.source(keyed(seed, 'arrival'))(rate / 1000);
    const draw = ([mean, cv], purpose) => {
      const variance = Math.log(1 + cv * cv);
      const value = randomLogNormal.source(keyed(seed, purpose))(Math.log(mean) - variance / 2, Math.sqrt(variance));
      return () => Math.max(1, Math.min(4000, Math.round(value())));
    };
    const prompt = draw(input, 'input');
    const answer = draw(output, 'output');
    let at = 0;
    let operation = 0;
    const next = () => {
      at += gap();
      return {
        at,
        spec: {
          operation: operation++,
          attempt: 0,
          class: 'default',
          inputTokens: prompt(),
          outputTokens: answer(),
          choices: 1,
          stream: true,
          ignoreEos: true,
        },
      };
    };
    return { next, ended: () => [] };
  };
}

const replica = (limits) => () => new ContinuousReplica(step, limitsFor(on, { prefixCaching: false, ...limits }));

const contract = (limits) => contractOf(limits, { deadline: 120_000 });

export const REGIMES = {
  tpot: {
    name: 'TPOT-bound',
    about: 'batch ≤ 256, ample KV; prompts 512 cv 0.6, answers 64 cv 0.5; TPOT ≤ 9 ms',
    target: {
      cluster: replica({}),
      workload: lognormalLoad([512, 0.6], [64, 0.5]),
      contract: contract({ ttft: 500, tpot: 9 }),
    },
    around: [20, 90],
  },
  queue: {
    name: 'queue-bound',
    about: '16 slots, prompts 128 cv 0.5, answers 64 cv 0.5; TTFT ≤ 250 ms',
    target: {
      cluster: replica({ maxSeqs: 16 }),
      workload: lognormalLoad([128, 0.5], [64, 0.5]),
      contract: contract({ ttft: 250 }),
    },
    around: [20, 60],
  },
  preempt: {
    name: 'KV-preempting',
    about:
      '600 KV blocks of 16 tokens: requests are preempted and computed again; prompts 256 cv 0.5, answers 128 cv 0.8; TTFT ≤ 500 ms, TPOT ≤ 20 ms',
    target: {
      cluster: replica({ kvBlocks: 600 }),
      workload: lognormalLoad([256, 0.5], [128, 0.8]),
      contract: contract({ ttft: 500, tpot: 20 }),
    },
    around: [5, 60],
  },
};
