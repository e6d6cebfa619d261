/**
 * Attainment against rate of two published systems: one engine that computes prompts between its decodes, and one with
 * prefill and decode on devices of their own. Step times come from the publisher's profiler, lengths from an assumption.
 */
import { InputError } from '../../base/errors.ts';
import type { Millis, PerSecond, Share } from '../../base/units.ts';
import type { Workload } from '../../core/request.ts';
import type { DecodePiece, StepBatch, StepModel } from '../../model/step.ts';
import { type SystemPlan, systemOf } from '../../sim/build.ts';
import { limitsOf } from '../../sim/limits.ts';
import { simulate } from '../../sim/simulate.ts';
import { arrivals } from '../../workload/arrivals.ts';
import type { LengthPlan } from '../../workload/lengths.ts';
import { specSource } from '../../workload/synthetic.ts';

/** ms: `a + b·tokens + c·Σ length²` for prompts, `a + b·ΣKV + c·sequences` for decodes, small batches and large. */
export interface Profile {
  readonly prefill: readonly [number, number, number];
  readonly decoding_smallbs: readonly [number, number, number];
  readonly decoding_largebs: readonly [number, number, number];
  readonly decoding_large_small_bs_threshold: number;
}

/** One model's profiles by tensor parallelism, out of a profiler file. @throws InputError naming what is missing. */
export function profileOf(file: unknown, model: string, tp: number, where: string): Profile {
  const found = (file as Record<string, Record<string, Profile>> | null)?.[model]?.[String(tp)];
  if (!found?.prefill || !found.decoding_smallbs || !found.decoding_largebs) {
    throw new InputError(`${where}: no profile of ${model} at tensor parallelism ${tp}; give the profiler's JSON`);
  }
  return found;
}

/**
 * A step with prompts in it takes both times: the engines of that day ran prompts first and decodes after them. A first
 * token did not wait for the decodes, so `decodePart` says how long they took in the step last asked for.
 */
export function profiledStep(p: Profile): StepModel & { decodePart(): Millis } {
  let part: Millis = 0;
  const decodeMs = (n: number, kv: number): Millis => {
    const [a, b, c] = of(n);
    return a + b * kv + c * n;
  };
  const of = (n: number): readonly [number, number, number] =>
    n < p.decoding_large_small_bs_threshold ? p.decoding_smallbs : p.decoding_largebs;
  const [a, b, c] = p.prefill;
  return {
    label: 'profiled',
    stepMs: (s: StepBatch) => {
      part = s.decodeSequences > 0 ? decodeMs(s.decodeSequences, s.decodeKv) : 0;
      return (s.prefillTokens > 0 ? a + b * s.prefillTokens + c * s.prefillSquares : 0) + part;
    },
    decodePart: () => part,
    decode(n: number, kv: number, into: DecodePiece) {
      into.ms = decodeMs(n, kv);
      into.slope = of(n)[1];
      into.untilKv = Number.POSITIVE_INFINITY;
    },
  };
}

/**
 * What is assumed of the prompts: ShareGPT's mean lengths as the paper prints them (755.5 in, 200.3 out), lognormal, cut
 * at OPT's 2,048 positions; the prompts' spread such that a tenth of them cannot be computed within the TTFT limit on an
 * idle engine, which is what the published attainment at the lowest rate says.
 */
export const SHAREGPT = {
  text: 'lognormal, prompts of mean 755 and coefficient of variation 0.87, outputs of mean 200 and 1.0, 2,048 together at most',
  input: { kind: 'lognormal', mean: 755.5, cv: 0.87 },
  output: { kind: 'lognormal', mean: 200.3, cv: 1 },
  most: 2048,
} as const;

export interface KneeLengths {
  readonly input: LengthPlan;
  readonly output: LengthPlan;
  readonly most: number;
}

export interface KneeSystem {
  readonly plan: SystemPlan;
  readonly gpus: number;
  /** Of a step that mixes prompts and decodes, the decodes' part: first tokens come before it. */
  readonly decodePart?: () => Millis;
}

/** OPT-13B keeps 800 KiB a token in 16 bits; 79.1 GiB less 10 %, weights of 25.7 GB and 2 GB leave 59,600 tokens a device. */
const KV_BYTES = 819_200;
const KV_BLOCKS = Math.floor((0.9 * 85e9 - 25.7e9 - 2e9) / KV_BYTES / 16);

export function kneeSystems(
  vllm: Profile,
  prefill: Profile,
  decode: Profile,
): { vllm: KneeSystem; distserve: KneeSystem } {
  const limits = limitsOf({
    kvBlocks: KV_BLOCKS,
    maxBatchedTokens: 2560,
    maxLength: 2048,
    chunkedPrefill: false,
    prefixCaching: false,
  });
  const mixed = profiledStep(vllm);
  return {
    vllm: { plan: { step: mixed, limits }, gpus: 1, decodePart: mixed.decodePart },
    distserve: {
      plan: {
        step: profiledStep(decode),
        limits,
        // Prompts on two devices; KV goes over one NVLink of an A100.
        prefill: {
          replicas: 1,
          step: profiledStep(prefill),
          transfer: { bytesPerToken: KV_BYTES, bandwidth: 300e9, latency: 0 },
        },
      },
      gpus: 3,
    },
  };
}

/** Share of requests within both limits at `rate` a device, over `replications` of `requests`. */
export function kneeAttainment(
  system: KneeSystem,
  rate: PerSecond,
  slo: { readonly ttft: Millis; readonly tpot: Millis },
  effort: { readonly requests: number; readonly replications: number; readonly seed: number },
  lengths: KneeLengths = SHAREGPT,
): Share {
  let good = 0;
  let all = 0;
  for (let r = 0; r < effort.replications; r++) {
    const seed = effort.seed + r;
    const at = arrivals({ process: 'poisson', rate: rate * system.gpus }, seed);
    const draw = specSource(
      { input: lengths.input, output: lengths.output, choices: 1, stream: true, ignoreEos: true, prompt: 'none' },
      seed,
    );
    let operation = 0;
    const workload: Workload = {
      next: () => {
        if (operation >= effort.requests) return undefined;
        const spec = draw(operation++);
        const outputTokens = Math.min(spec.outputTokens, lengths.most / 2);
        return {
          at: at(),
          spec: { ...spec, outputTokens, inputTokens: Math.min(spec.inputTokens, lengths.most - outputTokens) },
        };
      },
      ended: () => [],
    };
    const early = new Map<Millis, Millis>();
    const observe = system.decodePart && {
      observe: () => (tokens: number, _: number, decodes: number, __: Millis, to: Millis) => {
        if (tokens > decodes) early.set(to, system.decodePart?.() ?? 0);
      },
    };
    simulate(workload, systemOf({ ...system.plan, ...observe }), ({ scheduled, finished: f }) => {
      if (!f) return;
      all++;
      const first = f.firstToken - (early.get(f.firstToken) ?? 0);
      const tpot = f.generated > 1 ? (f.lastToken - first) / (f.generated - 1) : 0;
      if (first - scheduled <= slo.ttft && tpot <= slo.tpot) good++;
    });
  }
  return good / all;
}

/** The highest rate at which linear interpolation of (rate, share) is still at `target`; undefined when it never is. */
export function kneeOf(rates: readonly number[], shares: readonly Share[], target: Share): number | undefined {
  let knee: number | undefined;
  for (let i = 0; i < rates.length; i++) {
    const here = shares[i] as number;
    if (here >= target) {
      knee = rates[i];
      continue;
    }
    if (i > 0 && (shares[i - 1] as number) >= target) {
      const from = rates[i - 1] as number;
      const before = shares[i - 1] as number;
      return from + (((rates[i] as number) - from) * (before - target)) / (before - here);
    }
  }
  return knee;
}
