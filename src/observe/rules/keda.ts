/**
 * An autoscaling example for KEDA. It scales on what leads (the offered rate against what a replica carries, and the age
 * of the oldest that waits), never on goodput: goodput falls when demand falls, and when everything is late.
 */
import { InputError } from '../../base/errors.ts';
import type { Contract } from '../../core/contract.ts';
import { METRICS } from '../export/names.ts';
import type { RuleOptions } from './rules.ts';

export interface ScaleOptions {
  /** The deployment to scale. */
  readonly deployment: string;
  readonly prometheus: string;
  readonly minReplicas: number;
  readonly maxReplicas: number;
}

export const SCALE_DEFAULTS: ScaleOptions = {
  deployment: 'llm-server',
  prometheus: 'http://prometheus.monitoring:9090',
  minReplicas: 1,
  maxReplicas: 16,
};

/** @throws InputError without the capacity of a replica: a guess would scale to a guess. */
export function kedaScaledObject(contract: Contract, rules: RuleOptions, scale: ScaleOptions = SCALE_DEFAULTS): object {
  if (rules.capacityPerReplica === undefined) {
    throw new InputError(
      'rules: autoscaling needs what one replica carries; give --capacity 12.5 or --capacity-from a run of goodput capacity',
    );
  }
  const { ttft } = contract.limits;
  return {
    apiVersion: 'keda.sh/v1alpha1',
    kind: 'ScaledObject',
    metadata: { name: `${scale.deployment}-goodput` },
    spec: {
      scaleTargetRef: { name: scale.deployment },
      minReplicaCount: scale.minReplicas,
      maxReplicaCount: scale.maxReplicas,
      // Replicas take minutes to load a model: poll often, and let go slowly.
      pollingInterval: 15,
      cooldownPeriod: 360,
      triggers: [
        {
          // AverageValue: KEDA asks for ceil(offered x headroom / threshold) replicas, which is the recorded required count.
          type: 'prometheus',
          metricType: 'AverageValue',
          metadata: {
            serverAddress: scale.prometheus,
            query: `sum(rate(${METRICS.arrived.name}[2m])) * ${rules.headroom}`,
            threshold: String(rules.capacityPerReplica),
          },
        },
        ...(ttft === undefined
          ? []
          : [
              {
                // Somebody has waited half the TTFT limit: more is on its way than is served, whatever the average says.
                type: 'prometheus',
                metricType: 'Value',
                metadata: {
                  serverAddress: scale.prometheus,
                  query: `max(${METRICS.oldestWaiting.name})`,
                  threshold: String(ttft / 2000),
                },
              },
            ]),
      ],
    },
  };
}
