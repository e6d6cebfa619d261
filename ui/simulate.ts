/**
 * The engine model and the simulator of the command line, run in the page: a step-time model behind a simulated replica,
 * offered requests at a rate, each judged by the contract.
 */
import { keyedSource } from '../src/base/random.ts';
import type { Contract } from '../src/core/contract.ts';
import { judge } from '../src/core/judge.ts';
import type { Workload } from '../src/core/request.ts';
import type { ProfileEngine } from '../src/dashboard/profile.ts';
import {
  accelerator,
  calibrated,
  type Deployment,
  type Dtype,
  deployment,
  IdealStepModel,
  model,
  type StepModel,
} from '../src/model/index.ts';
import { FormStepModel } from '../src/plan/form-step.ts';
import { systemOf } from '../src/sim/build.ts';
import { limitsFor, limitsOf } from '../src/sim/limits.ts';
import { metricsOf } from '../src/sim/record-of.ts';
import { Simulation } from '../src/sim/simulate.ts';

export interface Engine {
  readonly model: string;
  readonly gpu: string;
  readonly tp: number;
  readonly weights?: Dtype | undefined;
  readonly kv: Dtype;
  readonly basis: 'calibrated' | 'ideal';
  /** Sequences in a batch at most. */
  readonly maxSeqs: number;
  readonly replicas: number;
}

export interface Built {
  readonly on: Deployment;
  readonly step: StepModel;
  readonly frontendMs: number;
  readonly beyond: readonly string[];
  readonly error: { readonly tpot: number; readonly ttft: number } | undefined;
}

/** @throws InputError saying what does not go together. */
export function build(e: Pick<Engine, 'model' | 'gpu' | 'tp' | 'weights' | 'kv' | 'basis'>): Built {
  const on = deployment(model(e.model), accelerator(e.gpu), {
    tp: e.tp,
    kv: e.kv,
    ...(e.weights !== undefined && { weights: e.weights }),
  });
  if (e.basis === 'ideal') return { on, step: new IdealStepModel(on), frontendMs: 0, beyond: [], error: undefined };
  const c = calibrated(on);
  return { on, step: c.step, frontendMs: c.frontendMs, beyond: c.beyond, error: c.error };
}

export interface Ask {
  readonly engine: Engine | ProfileEngine;
  readonly contract: Contract;
  readonly input: number;
  readonly output: number;
  readonly rate: number;
  /** Requests counted; a third as many again come before them. */
  readonly requests: number;
  readonly seed: number;
}

export interface Answer {
  readonly rate: number;
  readonly attainment: number;
  readonly goodput: number;
  readonly throughput: number;
}

function clusterOf(engine: Engine | ProfileEngine) {
  if ('coefficients' in engine) {
    const { form, coefficients, name, stallFactor, limits, frontendMs } = engine;
    const step = new FormStepModel(form, coefficients, name, stallFactor);
    return systemOf({ step, limits: limitsOf(limits), replicas: 1, frontend: frontendMs });
  }
  const { on, step, frontendMs } = build(engine);
  const limits = limitsFor(on, { maxSeqs: engine.maxSeqs });
  return systemOf({ step, limits, replicas: engine.replicas, frontend: frontendMs });
}

/** Runs in slices of some milliseconds, so that the page stays alive. Rejects when `signal` aborts. */
export async function simulateRate(ask: Ask, signal: AbortSignal): Promise<Answer> {
  const { engine, contract, rate } = ask;
  const cluster = clusterOf(engine);
  const warm = Math.ceil(ask.requests / 3);
  let counted = 0;
  let good = 0;
  let tokens = 0;
  let first = Number.POSITIVE_INFINITY;
  let last = 0;
  const simulation = new Simulation(
    poisson(ask),
    cluster,
    (done) => {
      if (done.spec.operation < warm || done.spec.operation >= warm + ask.requests) return false;
      counted++;
      const facts = {
        outcome:
          done.outcome === 'completed'
            ? ('completed' as const)
            : done.outcome === 'timed-out'
              ? ('timed-out' as const)
              : ('rejected' as const),
        streamed: true,
        asked: { output: done.spec.outputTokens },
      };
      if (judge(metricsOf(done), facts, contract).class === 'good') good++;
      if (done.outcome === 'completed') tokens += done.spec.outputTokens;
      first = Math.min(first, done.scheduled);
      last = Math.max(last, done.scheduled);
      return counted >= ask.requests;
    },
    { deadline: Number.isFinite(contract.deadline) ? contract.deadline : 600_000 },
  );
  for (;;) {
    const until = performance.now() + 12;
    if (simulation.run(() => performance.now() > until)) break;
    await new Promise((resolve) => setTimeout(resolve));
    if (signal.aborted) throw new DOMException('stopped', 'AbortError');
  }
  const seconds = (last - first) / 1000 || ask.requests / rate;
  return {
    rate,
    attainment: good / Math.max(1, counted),
    goodput: (good / Math.max(1, counted)) * rate,
    throughput: tokens / seconds,
  };
}

function poisson({ rate, input, output, seed, requests }: Ask): Workload {
  const gaps = keyedSource(seed, 'arrivals');
  const warm = Math.ceil(requests / 3);
  // Offers go on behind the cohort, or its last requests would decode in an emptying server.
  const most = 4 * (warm + requests);
  let at = 0;
  let operation = 0;
  return {
    next: () => {
      if (operation >= most) return undefined;
      at += (-Math.log(1 - gaps(operation)()) / rate) * 1000;
      return {
        at,
        spec: {
          operation: operation++,
          attempt: 0,
          class: 'default',
          inputTokens: input,
          outputTokens: output,
          choices: 1,
          stream: true,
          ignoreEos: true,
        },
      };
    },
    ended: () => [],
  };
}
