/** `search.json`: a search as far as it went, replaced whole after each run, so that it can be taken up again. */
import { InputError, oneLine } from '../base/errors.ts';
import type { Contract } from '../core/contract.ts';
import type { Probe, SearchPlan } from '../drive/capacity/types.ts';
import { readJson, writeJson } from '../store/json.ts';
import type { LoadPlan } from './load-plan.ts';

export const SEARCH_SCHEMA = 'goodput.search/1';

export interface StoredSearch {
  readonly schema: typeof SEARCH_SCHEMA;
  readonly plan: SearchPlan;
  readonly contract: Contract;
  readonly load: Pick<LoadPlan, 'requests' | 'arrivals' | 'classes' | 'contracts'>;
  /** Where the load goes: to be asked for again when it is taken up elsewhere. */
  readonly target: { readonly url: string | null; readonly simulated: boolean; readonly name: string };
  readonly gpus: number | null;
  readonly probes: readonly (Probe & { readonly run?: string })[];
}

export function keepSearch(folder: string, search: StoredSearch): void {
  const { contract } = search;
  writeJson(folder, 'search.json', {
    ...search,
    contract: { ...contract, deadline: Number.isFinite(contract.deadline) ? contract.deadline : null },
  });
}

/** @throws InputError when the folder holds no search. */
export function readSearch(folder: string): StoredSearch {
  const found = readJson(folder, 'search.json');
  if (!found) {
    throw new InputError(`--resume ${oneLine(folder)}: holds no search.json; give the folder 'goodput capacity' named`);
  }
  if (found.schema !== SEARCH_SCHEMA) {
    throw new InputError(
      `--resume ${oneLine(folder)}: search.json is of schema '${oneLine(String(found.schema), 40)}', this version reads '${SEARCH_SCHEMA}'; begin anew`,
    );
  }
  for (const key of ['plan', 'contract', 'load', 'target', 'probes'] as const) {
    if (typeof found[key] !== 'object' || found[key] === null) {
      throw new InputError(`--resume ${oneLine(folder)}: '${key}' is missing from search.json; begin anew`);
    }
  }
  const contract = found.contract as unknown as Contract;
  const search = found as unknown as StoredSearch;
  // Void runs at the end showed nothing, and what made them void may be over: they are made again.
  let kept = search.probes.length;
  while (kept > 0 && (search.probes[kept - 1]?.measure.clientBound.length ?? 0) > 0) kept--;
  return {
    ...search,
    probes: search.probes.slice(0, kept),
    contract: { ...contract, deadline: contract.deadline ?? Number.POSITIVE_INFINITY },
  };
}
