/** The plans of a search: how much is offered, by what it is put on. */
import type { Millis, Share } from '../base/units.ts';
import { SEARCH_DEFAULTS, type SearchPlan } from '../drive/capacity/types.ts';

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
export function livePlan(target: Share, seed: number, e2e: Millis): SearchPlan {
  return {
    ...SEARCH_DEFAULTS,
    target,
    seed,
    unloadedRate: Number(((1000 * UNLOADED) / Math.max(1, e2e)).toPrecision(2)),
    unloadedRequests: 20,
    steerRequests: 200,
  };
}
