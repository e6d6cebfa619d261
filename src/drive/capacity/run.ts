/** Runs a search: asks, has the run made, keeps the answer, asks again. The one who runs it owns time and engine. */
import type { Millis } from '../../base/units.ts';
import { capacitySearch, STOP } from './search.ts';
import type { CapacityOutcome, Probe, ProbeMeasure, ProbeRequest, SearchPlan } from './types.ts';

export interface SearchHost {
  /** Makes one run. Undefined: it was interrupted and shows nothing. */
  run(request: ProbeRequest): Promise<ProbeMeasure | undefined> | ProbeMeasure | undefined;
  /** After each run, with all of them: where a stored search is kept. */
  keep?(probes: readonly Probe[]): void;
  /** At the end, with all of them. */
  ended?(probes: readonly Probe[]): void;
  /** Asked before each run: no time is left for it, or the user wants no more. */
  enough?(next: ProbeRequest, probes: readonly Probe[]): boolean;
}

/**
 * @param done what a stored search had been told, in order; the plan must be the one it was told under.
 * @throws Error when the stored runs are not those this plan asks for.
 */
export async function runSearch(
  plan: SearchPlan,
  host: SearchHost,
  done: readonly Probe[] = [],
): Promise<CapacityOutcome> {
  const search = capacitySearch(plan);
  const probes: Probe[] = [];
  let step = search.next(STOP);
  for (let i = 0; !step.done; i++) {
    const asked = step.value;
    const stored = done[i];
    let measure: ProbeMeasure | undefined;
    if (stored) {
      if (stored.request.seed !== asked.seed || Math.abs(stored.request.rate / asked.rate - 1) > 1e-9) {
        throw new Error('internal: the stored runs are not those of this plan');
      }
      measure = stored.measure;
    } else if (!host.enough?.(asked, probes)) measure = await host.run(asked);
    if (measure === undefined) {
      step = search.next(STOP);
      continue;
    }
    probes.push({ request: asked, measure });
    if (!stored) host.keep?.(probes);
    step = search.next(measure);
  }
  host.ended?.(probes);
  return step.value;
}

/** How long a run should take: its offers at their rate, and the last to end. */
export function runTime(request: ProbeRequest, e2e: Millis): Millis {
  return (1000 * (request.requests + request.warmup)) / request.rate + e2e;
}
