/** The deployments worth trying, and those that cannot be, with the reason. Plain data: it is sent to worker threads. */
import { messageOf } from '../base/errors.ts';
import type { Contract } from '../core/contract.ts';
import type { Accelerator } from '../model/accelerator.ts';
import { calibrated } from '../model/calibrated.ts';
import { type Deployment, type DeploymentOptions, deployment } from '../model/deployment.ts';
import type { Dtype } from '../model/dtype.ts';
import type { EngineName } from '../model/engines.ts';
import { IdealStepModel } from '../model/ideal.ts';
import type { ModelShape } from '../model/shape.ts';
import type { StepModel } from '../model/step.ts';
import { type Cluster, limitsFor, limitsOf, type ReplicaLimits, type SchedulerName, systemOf } from '../sim/index.ts';
import type { Profile } from './profile.ts';
import { ProfileStepModel } from './profile-step.ts';
import { type Traffic, tokensOf } from './traffic.ts';

/** What the whole plan is for. */
export interface PlanAsk {
  readonly model: ModelShape;
  readonly traffic: Traffic;
  readonly rate: number;
  readonly contract: Contract;
  /** Contracts of classes that have their own: each must meet its own target too. */
  readonly contracts?: Readonly<Record<string, Contract>>;
  readonly seed: number;
  /** `calibrated`: the fitted roofline; `ideal`: the closed form. A profile stands for the replica it was measured on. */
  readonly basis: 'calibrated' | 'ideal';
  /** Whose overheads the calibrated basis takes; none named: one fit over all. */
  readonly engine?: EngineName;
  readonly profile?: { readonly gpu: string; readonly tp: number; readonly profile: Profile };
  /** Share of each replica's sustainable rate that stays free. */
  readonly headroom: number;
}

/** One way to run a replica, before its batch cap is known. */
export interface Candidate {
  readonly gpu: Accelerator;
  readonly tp: number;
  readonly weights: Dtype;
  readonly kv: Dtype;
  readonly chunk: number;
}

export interface GridAsk {
  readonly gpus: readonly Accelerator[];
  readonly tps: readonly number[];
  readonly weights: readonly Dtype[];
  /** `weights` were not asked for: those an accelerator has no operations for are not tried on it. */
  readonly native?: boolean;
  readonly kvs: readonly Dtype[];
  readonly chunks: readonly number[];
}

export interface Excluded {
  readonly label: string;
  readonly why: string;
}

export function labelOf(c: Omit<Candidate, 'chunk'>): string {
  return `${c.tp} × ${c.gpu.id}, ${c.weights}${c.kv === 'bf16' ? '' : `, ${c.kv} KV`}`;
}

/** Every combination that fits, and why the others do not. */
export function candidates(ask: PlanAsk, grid: GridAsk): { try: Candidate[]; excluded: Excluded[] } {
  const out: Candidate[] = [];
  const excluded: Excluded[] = [];
  for (const gpu of grid.gpus) {
    for (const tp of grid.tps) {
      for (const weights of grid.weights) {
        if (grid.native && weights !== ask.model.weights && gpu.flops[weights] === undefined) continue;
        for (const kv of grid.kvs) {
          const c = { gpu, tp, weights, kv };
          try {
            if (tp > gpu.domain) throw new Error(`${tp} devices are more than one scale-up domain of ${gpu.domain}`);
            limitsFor(deploymentOf(ask.model, c));
          } catch (error) {
            excluded.push({ label: labelOf(c), why: messageOf(error) });
            continue;
          }
          for (const chunk of grid.chunks) out.push({ ...c, chunk });
        }
      }
    }
  }
  return { try: out, excluded };
}

export function deploymentOf(model: ModelShape, c: Pick<Candidate, 'gpu' | 'tp' | 'weights' | 'kv'>): Deployment {
  const options: DeploymentOptions = { weights: c.weights, kv: c.kv, tp: c.tp };
  return deployment(model, c.gpu, options);
}

/** A replica's step model, where its figures come from, and a fresh cluster of one at any batch cap. */
export interface Replica {
  readonly step: StepModel;
  readonly basis: 'calibrated' | 'ideal' | 'profile';
  readonly beyond: () => readonly string[];
  readonly limits: (maxSeqs: number) => ReplicaLimits;
  readonly cluster: (maxSeqs: number) => Cluster;
  /** The batch limit a profile's engine was run with: beyond it nothing was measured. */
  readonly mostSeqs?: number;
}

export function replicaOf(ask: PlanAsk, c: Candidate): Replica {
  const d = deploymentOf(ask.model, c);
  const profile = ask.profile?.gpu === c.gpu.id && c.tp === ask.profile.tp ? ask.profile.profile : undefined;
  const limits = (maxSeqs: number): ReplicaLimits =>
    profile
      ? limitsOf({
          ...limitsFor(d, { maxSeqs, maxBatchedTokens: Math.max(maxSeqs, profile.limits.max_batched_tokens) }),
        })
      : limitsFor(d, { maxSeqs, maxBatchedTokens: Math.max(maxSeqs, c.chunk) });
  if (profile) {
    const step = new ProfileStepModel(profile);
    return {
      step,
      basis: 'profile',
      beyond: () => step.beyond(),
      limits,
      ...(profile.limits.max_seqs !== null && { mostSeqs: profile.limits.max_seqs }),
      cluster: (n) => front(step, limits(n), step.frontendMs, profile.limits.scheduler),
    };
  }
  if (ask.basis === 'ideal') {
    const step = new IdealStepModel(d);
    return { step, basis: 'ideal', beyond: () => [], limits, cluster: (n) => front(step, limits(n), 0) };
  }
  const fit = calibrated(d, ask.engine);
  // A prompt's own share of the frontend is taken at the mean prompt.
  const prompt = tokensOf(ask.traffic).input;
  return {
    step: fit.step,
    basis: 'calibrated',
    beyond: () => fit.beyond,
    limits,
    cluster: (n) => front(fit.step, limits(n), fit.frontendMs + (fit.frontendTokenUs * prompt) / 1000),
  };
}

function front(step: StepModel, limits: ReplicaLimits, frontend: number, scheduler?: SchedulerName): Cluster {
  return systemOf({ step, limits, frontend, ...(scheduler && { scheduler }) });
}
