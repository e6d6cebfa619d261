/** What a search will cost, before it starts. */
import type { SearchPlan } from './types.ts';

export interface SearchCost {
  /** Runs, and operations offered, most likely and at most (bracket and groups as they usually fall; every group used). */
  readonly runs: number;
  readonly offered: number;
  readonly most: number;
}

/** Bracketing probes without a guess, rates four times apart, then halves to the resolution. */
const BRACKET = 4;

export function searchCost(plan: SearchPlan): SearchCost {
  const halves = Math.ceil(Math.log2(Math.log(4) / Math.log(1 + plan.resolution)));
  const steer = (plan.guess === undefined ? BRACKET : 2) + halves;
  const steered = steer * (plan.steerRequests + plan.warmup);
  const group = plan.replications * (plan.confirmRequests + Math.max(plan.warmup, plan.confirmRequests / 4));
  return {
    runs: 1 + steer + 2 * plan.replications,
    offered: Math.round(plan.unloadedRequests + steered + 2.5 * group),
    most: Math.round(plan.unloadedRequests * 4 + steered + plan.groups * plan.stretch * group),
  };
}
