/** The plans of a search: how much is offered, by what it is put on. */
import type { Share } from '../base/units.ts';
import { SEARCH_DEFAULTS, type SearchPlan } from '../drive/capacity/types.ts';

/** Simulated requests are cheap: enough of them that the interval is narrow. `bench/capacity` holds it to its coverage. */
export function simulatedPlan(target: Share, seed: number): SearchPlan {
  return {
    ...SEARCH_DEFAULTS,
    target,
    seed,
    unloadedRate: 0.1,
    unloadedRequests: 100,
    steerRequests: 1000,
    confirmRequests: 2000,
    stretch: 8,
    replications: 8,
    warmup: 100,
  };
}
