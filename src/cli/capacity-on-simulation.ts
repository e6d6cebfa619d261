/** A search on a simulated engine. */
import { mkdirSync } from 'node:fs';
import { InputError } from '../base/errors.ts';
import { parseDuration } from '../base/units.ts';
import type { Offer, Workload } from '../core/request.ts';
import { runSearch } from '../drive/capacity/index.ts';
import type { Probe } from '../drive/capacity/types.ts';
import { probeOf } from '../plan/probe.ts';
import { ContinuousReplica, limitsFor } from '../sim/index.ts';
import { makeFolder } from '../store/folder.ts';
import { MixSource } from '../workload/index.ts';
import { deploymentFlags, guessOf } from './capacity-guess.ts';
import { arrivalOf, planned, simulatedPlan } from './capacity-plan.ts';
import type { SimulatedEngine } from './capacity-store.ts';
import { atRate, type CapacityTask, type FoundCapacity, keeper, loadText } from './capacity-task.ts';
import { announce, tell } from './capacity-tell.ts';
import type { Cli } from './cli.ts';
import { basisOf, engineOf } from './engine-flags.ts';
import { hostClock } from './host.ts';
import { interruption } from './interruption.ts';
import { type LoadPlan, mixOf, workloadOf } from './load-plan.ts';
import { MAX_WARM } from './prompts-for.ts';

export async function searchSimulated(cli: Cli, task: CapacityTask): Promise<FoundCapacity> {
  const { flags, contract, load, stored } = task;
  const engine = stored?.target.engine ?? engineFlags(task);
  const choice = await engineOf(engine);
  const limits = limitsFor(choice.on, replicaFlags(engine, load), choice.reserves);
  const seed = stored?.plan.seed ?? flags.seed ?? 1;
  const guess = guessOf(choice, load, contract, limits.maxSeqs);
  const plan =
    stored?.plan ??
    planned(
      {
        ...simulatedPlan(contract.attainment, seed),
        ...arrivalOf(load),
        ...(guess !== undefined && { guess, unloadedRate: Number((guess / 200).toPrecision(2)) }),
      },
      flags,
    );
  const requests = { ...load.requests, prompt: 'none' as const };
  const unwritten = { ...load, requests };
  const target = {
    contract,
    cluster: () => new ContinuousReplica(choice.step, limits),
    ...(load.contracts && { contracts: load.contracts }),
    workload: (rate: number, seed: number) => warmed(workloadOf(atRate(unwritten, rate), seed), unwritten, seed),
  };
  announce(cli, choice.text, plan, undefined);
  const interrupted = interruption(cli);
  const budget = flags.budget === undefined ? undefined : parseDuration(flags.budget, '--budget');
  const began = performance.now();
  const folder = flags.resume ?? makeFolder(flags.out ?? 'runs', flags.name ?? 'capacity', hostClock().epochWall);
  mkdirSync(folder, { recursive: true });
  const about = {
    target: `${choice.text}, simulated`,
    load: loadText(load, seed),
    basis: basisOf(choice).join('; '),
  };
  const keep = keeper(folder, task, plan, { url: null, simulated: true, name: choice.text, engine }, about);
  const done = stored?.probes ?? [];
  keep(done);
  let kept = performance.now();
  try {
    const outcome = await runSearch(
      plan,
      {
        run: async (request) => {
          const measure = probeOf(target, request);
          tell(cli, request, measure);
          // Between simulated runs the process hears its signals.
          await new Promise((resolve) => setImmediate(resolve));
          return measure;
        },
        keep: (probes) => {
          // Simulated runs are short: what a second made is soon made again.
          if (performance.now() - kept < KEEP_EVERY) return;
          keep(probes);
          kept = performance.now();
        },
        enough: (_next, probes) => {
          const over = interrupted.now() || (budget !== undefined && performance.now() - began > budget);
          if (over) keep(probes);
          return over;
        },
        ended: keep,
      },
      done as readonly Probe[],
    );
    return { outcome, folder, about };
  } finally {
    interrupted.forget();
  }
}

const KEEP_EVERY = 1000;

/** @throws InputError saying what is missing. */
function engineFlags({ flags }: CapacityTask): SimulatedEngine {
  const { model, gpu, maxNumSeqs, maxNumBatchedTokens, kvBlocks } = flags;
  if (model === undefined || gpu === undefined) {
    throw new InputError('--simulate: say what to simulate, with --model llama-3.1-8b --gpu h100-sxm, say');
  }
  for (const name of ['dialect', 'header', 'body'] as const) {
    if (flags[name] !== undefined) {
      throw new InputError(`--${name}: a simulated engine is sent no request; leave it out`);
    }
  }
  if (flags.calibrate) throw new InputError('--calibrate: a simulated engine has no tokenizer; leave it out');
  return {
    ...deploymentFlags(flags, model),
    ...(maxNumSeqs !== undefined && { maxNumSeqs }),
    ...(maxNumBatchedTokens !== undefined && { maxNumBatchedTokens }),
    ...(kvBlocks !== undefined && { kvBlocks }),
  };
}

function replicaFlags({ maxNumSeqs, maxNumBatchedTokens, kvBlocks }: SimulatedEngine, load: LoadPlan) {
  return {
    // Prompts that share nothing cannot hit: looking for it would only take time.
    prefixCaching: load.classes?.some((c) => c.prefix || c.session) ?? false,
    ...(maxNumSeqs !== undefined && { maxSeqs: maxNumSeqs }),
    ...(maxNumBatchedTokens !== undefined && { maxBatchedTokens: maxNumBatchedTokens }),
    ...(kvBlocks !== undefined && { kvBlocks }),
  };
}

/** With a warm cache every shared prefix is offered once when the warm-up begins, before anything else, outside all cohorts. */
function warmed(load: Workload, plan: LoadPlan, seed: number): Workload {
  const mix = mixOf(plan);
  if (plan.cache !== 'warm' || !mix) return load;
  const first: Offer[] = [];
  for (const { tokens, blocks } of new MixSource(mix, seed).prefixes()) {
    if (first.length >= MAX_WARM) break;
    first.push({
      at: 0,
      spec: {
        operation: -1 - first.length,
        attempt: 0,
        class: 'warm',
        inputTokens: tokens + 1,
        outputTokens: 1,
        choices: 1,
        stream: true,
        ignoreEos: true,
        prefixBlocks: blocks,
      },
    });
  }
  return { next: () => first.shift() ?? load.next(), ended: (operation, t, ok) => load.ended(operation, t, ok) };
}
