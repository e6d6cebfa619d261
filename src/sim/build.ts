/** A serving system from its parts: a scheduler's replicas, behind a router, split into pools, behind a frontend. */
import { InputError } from '../base/errors.ts';
import type { Millis } from '../base/units.ts';
import type { StepModel } from '../model/step.ts';
import type { Cluster, DecodeCluster } from './cluster.ts';
import { ContinuousReplica, type StepObserver } from './continuous.ts';
import { DisaggregatedCluster, type Transfer } from './disaggregated.ts';
import { FrontendCluster } from './frontend.ts';
import { GatedReplica } from './gated.ts';
import type { ReplicaLimits } from './limits.ts';
import { RoutedCluster, RoutedDecodeCluster, type RouterPolicy } from './router.ts';
import { type Speculation, SpeculativeReplica } from './speculative.ts';
import { StaticReplica } from './static.ts';

export type SchedulerName = 'continuous' | 'static' | 'gated';
export const SCHEDULERS: readonly SchedulerName[] = ['continuous', 'static', 'gated'];

export interface SystemPlan {
  readonly step: StepModel;
  /** Of each replica. A bounded queue counts over the whole system. */
  readonly limits: ReplicaLimits;
  readonly scheduler?: SchedulerName;
  readonly replicas?: number;
  readonly router?: RouterPolicy;
  /** Replicas that only compute prompts, before `replicas` that only decode. */
  readonly prefill?: {
    readonly replicas: number;
    readonly transfer: Transfer;
    /** Where prompts have other step times than decodes: other devices, another parallelism. */
    readonly step?: StepModel;
  };
  readonly speculation?: Speculation;
  /** From the door to the queue and back, ms. */
  readonly frontend?: Millis;
  /** Told of each run of steps, by replica (prefill replicas first). */
  readonly observe?: (replica: number) => StepObserver;
}

/** @throws InputError for parts that do not go together. */
export function systemOf(plan: SystemPlan): Cluster {
  const { step, scheduler = 'continuous', replicas = 1, router = 'least-loaded', prefill, speculation, observe } = plan;
  const alone = [scheduler !== 'continuous' && `${scheduler} batching`, speculation && 'speculative decoding'].filter(
    Boolean,
  );
  if (alone.length > 1) throw new InputError(`${alone.join(' and ')} cannot be simulated together; choose one`);
  if (alone.length > 0 && prefill) {
    throw new InputError(`${alone[0]} cannot be simulated with prefill and decode on pools of their own; choose one`);
  }
  const queue = plan.limits.maxQueue;
  const limits = { ...plan.limits, maxQueue: Number.POSITIVE_INFINITY };
  let made = 0;
  const continuous = (model: StepModel = step): ContinuousReplica =>
    new ContinuousReplica(model, limits, observe?.(made++));
  const one = (): Cluster => {
    if (scheduler === 'static') return new StaticReplica(step, limits);
    if (scheduler === 'gated') return new GatedReplica(step, limits);
    return speculation
      ? new SpeculativeReplica(step, limits, { ...speculation, seed: speculation.seed + made++ })
      : continuous();
  };
  let system: Cluster;
  if (prefill) {
    const pool = list(prefill.replicas, () => continuous(prefill.step));
    const decode = list(replicas, () => continuous());
    system = new DisaggregatedCluster(
      pool.length === 1 ? (pool[0] as Cluster) : new RoutedCluster(pool, router),
      decode.length === 1 ? (decode[0] as DecodeCluster) : new RoutedDecodeCluster(decode, router),
      prefill.transfer,
    );
  } else {
    const each = list(replicas, one);
    system = each.length === 1 ? (each[0] as Cluster) : new RoutedCluster(each, router);
  }
  const { frontend = 0 } = plan;
  return frontend > 0 || queue < Number.POSITIVE_INFINITY ? new FrontendCluster(system, frontend, queue) : system;
}

function list<T>(n: number, make: () => T): T[] {
  return Array.from({ length: n }, make);
}
