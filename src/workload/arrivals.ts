/**
 * Arrival processes: the gaps between offers, each drawn from (seed, 'arrival', operation), never rescaled to hit a count
 * or a duration: that would remove the very variance that makes queues.
 */
import { randomGamma } from 'd3-random';
import { InputError } from '../base/errors.ts';
import { didYouMean } from '../base/nearest.ts';
import { keyedSource, type Uniform } from '../base/random.ts';
import type { Millis, PerSecond } from '../base/units.ts';

export interface ArrivalPlan {
  readonly process: ArrivalName;
  readonly rate: PerSecond;
  /**
   * Shape of the gamma process, as vLLM's `burstiness`: 1 is Poisson, below 1 burstier, above 1 more regular. The squared
   * coefficient of variation of the gaps is 1 / burstiness.
   */
  readonly burstiness?: number;
}

/** Mean-one gaps from uniforms. */
const PROCESSES = {
  poisson: () => (u: Uniform) => -Math.log1p(-u()),
  constant: () => () => 1,
  gamma: (plan: ArrivalPlan) => {
    const shape = plan.burstiness ?? 1;
    return (u: Uniform) => randomGamma.source(u)(shape, 1 / shape)();
  },
} as const satisfies Record<string, (plan: ArrivalPlan) => (u: Uniform) => number>;

export type ArrivalName = keyof typeof PROCESSES;
export const ARRIVALS = Object.keys(PROCESSES) as readonly ArrivalName[];

/** Arrival times in ms from 0, one a call. Operation k's gap depends on seed and k alone. */
export function arrivals(plan: ArrivalPlan, seed: number): () => Millis {
  checkPlan(plan);
  const gap = PROCESSES[plan.process](plan);
  const source = keyedSource(seed, 'arrival');
  const mean = 1000 / plan.rate;
  let at = 0;
  let k = 0;
  return () => {
    at += mean * gap(source(k++));
    return at;
  };
}

/** Squared coefficient of variation of the gaps: what an arrivals test holds the achieved process against. */
export function gapVariation(plan: ArrivalPlan): number {
  if (plan.process === 'constant') return 0;
  return plan.process === 'gamma' ? 1 / (plan.burstiness ?? 1) : 1;
}

/** Reads `poisson`, `constant`, `gamma` or `gamma:0.5`. @throws InputError. */
export function parseArrivals(text: string, rate: PerSecond, burstiness?: number): ArrivalPlan {
  const [name = '', shape] = text.split(':');
  if (!(name in PROCESSES)) {
    throw new InputError(`--arrivals: '${text}' is not one of ${ARRIVALS.join(', ')}${didYouMean(name, ARRIVALS)}`);
  }
  const b = shape === undefined ? burstiness : Number(shape);
  if (b !== undefined && name === 'constant') {
    throw new InputError('--burstiness: constant arrivals have none; use --arrivals gamma');
  }
  const process = name === 'poisson' && b !== undefined && b !== 1 ? 'gamma' : (name as ArrivalName);
  const plan: ArrivalPlan = { process, rate, ...(b !== undefined && { burstiness: b }) };
  checkPlan(plan);
  return plan;
}

function checkPlan({ rate, burstiness }: ArrivalPlan): void {
  if (!(rate > 0) || !Number.isFinite(rate)) throw new InputError(`--rate: ${rate} is not a rate above 0 per second`);
  if (burstiness !== undefined && !(burstiness > 0 && Number.isFinite(burstiness))) {
    throw new InputError(`--burstiness: ${burstiness} is not above 0; 1 is Poisson, below 1 burstier`);
  }
}
