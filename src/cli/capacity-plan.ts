/** The plans of a search: how much is offered, by what it is put on, by what the load is, and by the flags. */
import { InputError } from '../base/errors.ts';
import { type Millis, parseShare, type Share } from '../base/units.ts';
import { SEARCH_DEFAULTS, type SearchPlan } from '../drive/capacity/types.ts';
import { type MixPlan, meanPause, meanTokens, meanTurns } from '../workload/index.ts';
import type { CapacityFlags } from './capacity-flags.ts';
import { type LoadPlan, mixOf } from './load-plan.ts';

/** Simulated requests are cheap: enough of them that the interval is narrow. `bench/capacity` holds it to its coverage. */
export function simulatedPlan(target: Share, seed: number): SearchPlan {
  return {
    ...SEARCH_DEFAULTS,
    target,
    seed,
    unloadedRate: 0.1,
    unloadedRequests: 100,
    steerRequests: 2000,
    confirmRequests: 2000,
    stretch: 8,
    replications: 8,
    warmup: 100,
  };
}

/** Mean requests in flight of the first, almost unloaded run. */
const UNLOADED = 0.3;

/** On a server every request takes time: enough to tell, widened where neighbours are alike. @param e2e of a lone request. */
export function livePlan(target: Share, seed: number, e2e: Millis, operations = 1): SearchPlan {
  return {
    ...SEARCH_DEFAULTS,
    target,
    seed,
    unloadedRate: Number(((1000 * UNLOADED) / Math.max(1, e2e * operations)).toPrecision(2)),
    unloadedRequests: 20,
    steerRequests: 200,
  };
}

/** A plan as the flags change it. */
export function planned(plan: SearchPlan, flags: CapacityFlags): SearchPlan {
  const resolution = flags.resolution === undefined ? plan.resolution : parseShare(flags.resolution, '--resolution');
  if (!(resolution >= 0.005 && resolution <= 1)) {
    throw new InputError(`--resolution: '${flags.resolution}' is not between 0.5% and 100%`);
  }
  const replications = flags.replications ?? plan.replications;
  if (replications < 3) {
    throw new InputError(
      `--replications ${replications}: fewer than 3 independent runs show no spread to trust; give 3 or more`,
    );
  }
  return {
    ...plan,
    resolution,
    replications,
    ...(flags.requests !== undefined && { confirmRequests: flags.requests }),
    ...(flags.steer !== undefined && { steerRequests: flags.steer }),
    ...(flags.maxRate !== undefined && { maxRate: flags.maxRate }),
    ...(flags.guess !== undefined && { guess: flags.guess }),
  };
}

/** What an arrival of the load is: absent where it is one request. */
export function arrivalOf(load: LoadPlan): Pick<SearchPlan, 'arrival'> {
  const mix = mixOf(load);
  if (!mix?.classes.some((c) => c.session)) return {};
  return { arrival: { operations: meanTokens(mix).requests, pauses: meanPauses(mix) } };
}

/** Mean think time of an arrival, all its turns together. */
function meanPauses({ classes }: MixPlan): Millis {
  const total = classes.reduce((sum, c) => sum + c.share, 0);
  const of = (c: MixPlan['classes'][number]): number =>
    c.session ? Math.max(0, meanTurns(c) - 1) * meanPause(c.session.think) : 0;
  return classes.reduce((sum, c) => sum + (c.share / total) * of(c), 0);
}
