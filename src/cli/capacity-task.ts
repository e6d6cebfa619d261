/** What a search is given and gives back, on a server or simulated. */
import { InputError } from '../base/errors.ts';
import type { Contract } from '../core/contract.ts';
import type { CapacityOutcome, Probe, SearchPlan } from '../drive/capacity/types.ts';
import { hasSessions, lengthText } from '../workload/index.ts';
import type { CapacityFlags } from './capacity-flags.ts';
import { factsOf, keepSearch, loadFlagsOf, SEARCH_SCHEMA, type StoredSearch } from './capacity-store.ts';
import { type LoadPlan, mixOf } from './load-plan.ts';

export interface CapacityTask {
  readonly flags: CapacityFlags;
  readonly contract: Contract;
  readonly load: LoadPlan;
  readonly stored?: StoredSearch;
}

export interface FoundCapacity {
  readonly outcome: CapacityOutcome;
  readonly folder: string;
  readonly about: Readonly<Record<string, string>>;
}

/** The load at another rate. */
export function atRate(load: LoadPlan, rate: number): LoadPlan {
  if (!load.arrivals) throw new InputError('capacity is about rates, and this load has no arrival process of its own');
  return { ...load, arrivals: { ...load.arrivals, rate } };
}

export function hasSessionsIn(load: LoadPlan): boolean {
  const mix = mixOf(load);
  return mix !== undefined && hasSessions(mix);
}

/** The load of a search in words: everything but its rate. */
export function loadText(load: LoadPlan, seed: number): string {
  const of = load.classes
    ? `workload ${load.name ?? 'file'}: ${load.classes.map((c) => c.name).join(', ')}${hasSessionsIn(load) ? ', by session' : ''}`
    : `input ${lengthText(load.requests.input)}, output ${lengthText(load.requests.output)} tokens`;
  return `${load.arrivals?.process ?? 'poisson'}, ${of}, cache ${load.cache ?? 'cold'}, seed ${seed}`;
}

/** Keeps a search after each run. */
export function keeper(
  folder: string,
  task: CapacityTask,
  plan: SearchPlan,
  target: StoredSearch['target'],
  about: Readonly<Record<string, string>>,
): (probes: StoredSearch['probes'] | readonly Probe[]) => void {
  const { flags, contract, load, stored } = task;
  return (probes) =>
    keepSearch(folder, {
      schema: SEARCH_SCHEMA,
      plan,
      contract,
      flags: stored?.flags ?? loadFlagsOf(withoutCohort(flags)),
      load: factsOf(load),
      target,
      gpus: flags.gpus ?? stored?.gpus ?? null,
      about,
      probes,
    });
}

/** `--requests` is of replications here, and no flag of the load. */
export function withoutCohort({ requests: _, ...flags }: CapacityFlags): Omit<CapacityFlags, 'requests'> {
  return flags;
}
