/** What the speed of the simulator is measured on: conversations on one replica at a share of its capacity. */
import { keyedSource } from '../../src/base/random.ts';
import type { Workload } from '../../src/core/request.ts';
import { accelerator, calibrated, deployment, model } from '../../src/model/index.ts';
import { ContinuousReplica, limitsFor, type ReplicaLimits, simulate } from '../../src/sim/index.ts';
import { arrivals, type LengthPlan, lengthDraw } from '../../src/workload/index.ts';

/** Mean 1,000 in and 200 out. */
const INPUT: LengthPlan = { kind: 'lognormal', mean: 1000, cv: 1 };
const OUTPUT: LengthPlan = { kind: 'lognormal', mean: 200, cv: 1 };

const on = deployment(model('llama-3.1-8b'), accelerator('h100-sxm'));
const { step } = calibrated(on);
/** So small a KV pool that requests are preempted now and then. */
const limits: ReplicaLimits = limitsFor(on, { kvBlocks: 9000 });

export function replica(): ContinuousReplica {
  return new ContinuousReplica(step, limits);
}

/** `count` requests at `rate` a second; one in two begins with one of 200 shared prefixes of 512 tokens. */
export function conversations(count: number, rate: number, seed: number): Workload {
  const at = arrivals({ process: 'poisson', rate }, seed);
  const input = lengthDraw(INPUT);
  const output = lengthDraw(OUTPUT);
  const inputs = keyedSource(seed, 'input-length');
  const outputs = keyedSource(seed, 'output-length');
  const prefixes = keyedSource(seed, 'prefix');
  const shared = Array.from({ length: 200 }, (_, p) => Array.from({ length: 32 }, (_, i) => 100_000 * (p + 1) + i));
  let operation = 0;
  return {
    next: () => {
      if (operation >= count) return undefined;
      const k = operation++;
      const inputTokens = Math.min(8192, input(inputs(k)));
      const outputTokens = Math.min(4096, output(outputs(k)));
      const u = prefixes(k)();
      const prefixBlocks = u < 0.5 && inputTokens > 512 ? shared[Math.floor(2 * u * shared.length)] : undefined;
      return {
        at: at(),
        spec: {
          operation: k,
          attempt: 0,
          class: 'default',
          inputTokens,
          outputTokens,
          choices: 1,
          stream: true,
          ignoreEos: true,
          ...(prefixBlocks && { prefixBlocks }),
        },
      };
    },
    ended: () => [],
  };
}

/** Requests a second the replica serves when more come than it can take: the rate they end at, all arriving at once. */
export function capacity(): number {
  let last = 0;
  let n = 0;
  const all = conversations(4000, 1e6, 7);
  simulate(all, replica(), ({ ended }) => {
    n++;
    if (n <= 3500) last = ended;
  });
  return 3500 / (last / 1000);
}
