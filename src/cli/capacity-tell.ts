/** What a search says of itself: before it starts, and after each run. */
import { oneLine } from '../base/errors.ts';
import { formatDuration, type Millis, trim } from '../base/units.ts';
import { searchCost } from '../drive/capacity/cost.ts';
import type { ProbeMeasure, ProbeRequest, SearchPlan } from '../drive/capacity/types.ts';
import type { Cli } from './cli.ts';

/** What is going to happen and how long it will take, before it starts. */
export function announce(cli: Cli, where: string, plan: SearchPlan, budget: Millis | undefined): void {
  const cost = searchCost(plan);
  const at = (rate: number): string => `${formatDuration((1000 * cost.offered) / rate)} at ${trim(rate, 3)}/s`;
  const time = plan.guess === undefined ? [1, 10, 100].map(at).join(', ') : at(plan.guess);
  cli.stderr.line(`Target    ${oneLine(where)}`);
  cli.stderr.line(
    `Search    from ${trim(plan.unloadedRate, 3)}/s${plan.guess === undefined ? '' : `, then about ${trim(plan.guess, 3)}/s`}; about ${cost.runs} runs and ${cost.offered.toLocaleString('en')} requests, up to ${cost.most.toLocaleString('en')} where neighbours are much alike: ${budget === undefined ? 'simulated, so seconds to minutes' : `${time} of capacity, at most ${formatDuration(budget)}`}`,
  );
}

export function tell(cli: Cli, request: ProbeRequest, m: ProbeMeasure): void {
  const state = m.clientBound.length > 0 ? `void: ${m.clientBound[0]}` : `${trim(100 * m.attainment, 4)} % good`;
  cli.stderr.line(`${`${trim(request.rate, 4)}/s`.padStart(10)}  ${state}  (${request.why})`);
}
