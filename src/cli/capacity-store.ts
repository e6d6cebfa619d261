/** `search.json`: a search as far as it went, replaced whole after each run, so that it can be taken up again. */
import { InputError, oneLine } from '../base/errors.ts';
import type { Contract } from '../core/contract.ts';
import type { Probe, SearchPlan } from '../drive/capacity/types.ts';
import { readJson, writeJson } from '../store/json.ts';
import type { DeploymentFlags } from './engine-flags.ts';
import { workloadFacts } from './load-facts.ts';
import type { LoadFlags } from './load-flags.ts';
import type { LoadPlan } from './load-plan.ts';

export const SEARCH_SCHEMA = 'goodput.search/1';

/** What a simulated engine is made of. */
export interface SimulatedEngine extends DeploymentFlags {
  readonly maxNumSeqs?: number;
  readonly maxNumBatchedTokens?: number;
  readonly kvBlocks?: number;
}

export interface StoredSearch {
  readonly schema: typeof SEARCH_SCHEMA;
  readonly plan: SearchPlan;
  readonly contract: Contract;
  /** The load as it was asked for: files it names are read again. */
  readonly flags?: LoadFlags;
  /** What these flags meant, to tell whether a file has changed since. */
  readonly load: LoadFacts;
  /** Where the load goes: to be asked for again when it is taken up elsewhere. */
  readonly target: {
    readonly url: string | null;
    readonly simulated: boolean;
    readonly name: string;
    readonly engine?: SimulatedEngine;
  };
  readonly gpus: number | null;
  /** Target, load and contract in words. */
  readonly about?: Readonly<Record<string, string>>;
  readonly probes: readonly (Probe & { readonly run?: string })[];
}

export type LoadFacts = Readonly<Record<string, unknown>>;

/** A load by what it asks for, without rate, prompts and salt. */
export function factsOf(load: LoadPlan): LoadFacts {
  const { prompt: _, text: __, ...requests } = load.requests;
  return { requests, process: load.arrivals?.process ?? null, ...workloadFacts(load) };
}

/** The flags of a load alone, of all a command was given. */
export function loadFlagsOf(flags: LoadFlags): LoadFlags {
  const { arrivals, burstiness, input, output, n, stream, ignoreEos, workload, cache } = flags;
  return {
    stream,
    ignoreEos,
    ...(arrivals !== undefined && { arrivals }),
    ...(burstiness !== undefined && { burstiness }),
    ...(input !== undefined && { input }),
    ...(output !== undefined && { output }),
    ...(n !== undefined && { n }),
    ...(workload !== undefined && { workload }),
    ...(cache !== undefined && { cache }),
  };
}

/** @throws InputError when the load is no longer the one the search began with. */
export function checkSameLoad(stored: StoredSearch, load: LoadPlan): void {
  if (stored.flags === undefined) {
    throw new InputError('--resume: this search was stored by an earlier version, without its load; begin anew');
  }
  const [then, now] = [JSON.stringify(stored.load), JSON.stringify(factsOf(load))];
  if (then === now) return;
  throw new InputError(
    `--resume: ${oneLine(stored.flags.workload ?? 'the load', 100)} is not what it was when the search began, and what was found would not hold for it; begin anew`,
  );
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
