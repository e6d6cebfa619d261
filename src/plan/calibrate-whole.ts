/** Calibration by whole requests: what a simulation of the same arrivals says where single steps do not say enough. */
import type { Fit } from './fit.ts';
import { fitRequests, requestLoss, type SimulatedFit } from './fit-simulated.ts';
import type { Values } from './form.ts';
import type { Profile } from './profile.ts';
import { ProfileStepModel } from './profile-step.ts';
import { type BatchLimits, resimulate } from './resimulate.ts';
import { mostContext, mostDecoding, type Seen } from './seen.ts';

/** What is known of the engine's limits. */
export interface Bounds {
  readonly maxSeqs?: number;
  readonly budget: number;
  readonly budgetGiven: boolean;
}

export interface Whole {
  readonly fit: SimulatedFit;
  /** Of the coefficients from single steps, under the same limits; +∞ without them. */
  readonly lossOfSteps: number;
  /** Decode's coefficients are those of single steps. */
  readonly heldSteps: boolean;
  readonly maxSeqsSeen: boolean;
  readonly remark: string;
}

/** vLLM's, where nothing shows it. */
const DEFAULT_SEQS = 256;
const BUDGETS = [4096, 2048, 1024, 512, 256];
const DECODE = ['step', 'sequence', 'kv'] as const;
/** Another way to put batches together has to answer blocks of time it has not seen this much better. */
const GATED = 0.93;
/** Steps are trusted for decode unless whole requests fit this much better without them. */
const WITHOUT = 0.85;

export function fitWhole(
  seen: readonly Seen[],
  bounds: Bounds,
  options: { readonly seed?: number },
  steps: Fit | undefined,
  /** Streams go in step: only continuous batching makes them. */
  inStep: boolean,
): Whole {
  const most = mostDecoding(seen);
  const limits: BatchLimits = { maxSeqs: bounds.maxSeqs ?? DEFAULT_SEQS, maxBatchedTokens: bounds.budget };
  const longest = seen.reduce((n, s) => Math.max(n, s.input), 0);
  const search = {
    limits,
    ...(options.seed !== undefined && { seed: options.seed }),
    tryMaxSeqs: bounds.maxSeqs === undefined && most > 1 ? [most] : [],
    tryBatchedTokens: bounds.budgetGiven ? [] : BUDGETS.filter((b) => b < 4 * longest && b < bounds.budget),
    tryKvTokens: most > 1 ? [mostContext(seen)] : [],
  };
  const values = steps && valuesOf(steps);
  const held: Values = Object.fromEntries(
    DECODE.flatMap((name) => (values?.[name] === undefined ? [] : [[name, values[name]]])),
  );
  let fit = fitRequests(seen, { ...search, ...(values && { start: values, held }) });
  const lossOfSteps = steps
    ? requestLoss(seen, { form: steps.form, values: values as Values, factor: steps.stallFactor }, fit.limits)
    : Number.POSITIVE_INFINITY;
  let heldSteps = values !== undefined;
  if (heldSteps && fit.loss > 0.1) {
    const free = fitRequests(seen, { ...search, limits: fit.limits, ...(values && { start: values }) });
    if (free.loss < WITHOUT * fit.loss) [fit, heldSteps] = [free, false];
  }
  if (!inStep && fit.loss > 0.1) {
    // What looked like steps of all streams was none: nothing is held from them.
    const gated = fitGated(seen, bounds, options, values);
    if (gated.loss < GATED * fit.loss) [fit, heldSteps] = [gated, false];
  }
  if (heldSteps && steps) {
    const decode = Object.fromEntries(
      DECODE.flatMap((n) => (steps.coefficients[n] ? [[n, steps.coefficients[n]]] : [])),
    );
    const unseparated = steps.unseparated.filter((s) => DECODE.some((n) => s.startsWith(n)));
    fit = {
      ...fit,
      coefficients: { ...decode, ...fit.coefficients },
      unseparated: [...unseparated, ...fit.unseparated],
      stallFactor: Math.max(fit.stallFactor, 1),
    };
  }
  return {
    fit,
    lossOfSteps,
    heldSteps,
    maxSeqsSeen: bounds.maxSeqs === undefined && fit.limits.maxSeqs === most,
    remark:
      fit.limits.scheduler === 'gated'
        ? 'streams take turns, and requests join only when one stream at most is left (gated batching, as in node-llama-cpp): simulated so, blocks of time it had not seen came out clearly better; fitted to whole requests'
        : heldSteps
          ? 'decode is fitted to single steps, prompts and entry to whole requests, by simulating the same arrivals: that answered the run better'
          : 'fitted to whole requests by simulating the same arrivals: first tokens and decode times, errors are per request',
  };
}

/** Under each budget in turn, each from where the one before ended: alone, some end in a worse valley. */
function fitGated(
  seen: readonly Seen[],
  bounds: Bounds,
  options: { readonly seed?: number },
  start: Values | undefined,
): SimulatedFit {
  const under = (maxSeqs: number, maxBatchedTokens: number, from: Values | undefined): SimulatedFit =>
    fitRequests(seen, {
      limits: { scheduler: 'gated', maxSeqs, maxBatchedTokens },
      ...(options.seed !== undefined && { seed: options.seed }),
      ...(from && { start: from }),
    });
  const most = Math.max(1, mostDecoding(seen));
  const longest = seen.reduce((n, s) => Math.max(n, s.input), 0);
  const smaller = bounds.budgetGiven ? [] : BUDGETS.filter((b) => b < 2 * longest && b < bounds.budget);
  // While a batch runs whoever comes waits, and all join at once: as many as ever streamed is then the limit.
  const maxSeqs = bounds.maxSeqs ?? most;
  let best = under(maxSeqs, bounds.budget, start);
  for (const budget of smaller) {
    const fit = under(maxSeqs, budget, valuesOf(best));
    if (fit.loss < best.loss) best = fit;
  }
  if (bounds.maxSeqs !== undefined) return best;
  const unlimited = under(DEFAULT_SEQS, best.limits.maxBatchedTokens, valuesOf(best));
  return best.loss < 0.98 * unlimited.loss ? best : unlimited;
}

const valuesOf = (fit: Fit): Values =>
  Object.fromEntries(Object.entries(fit.coefficients).map(([name, e]) => [name, e.value])) as Values;

export interface Means {
  readonly measured: number;
  readonly simulated: number;
}

/** The run's own arrivals under the profile: mean first token, time a token, and whole answer, ms. Optimistic. */
export function replayedMeans(
  all: readonly Seen[],
  profile: Profile,
): { readonly requests: number; readonly ttft: Means; readonly tpot: Means; readonly e2e: Means } {
  const seen = all.slice(0, 3000);
  const step = new ProfileStepModel(profile);
  const { max_seqs: maxSeqs, max_batched_tokens: maxBatchedTokens, kv_tokens: kvTokens, scheduler } = profile.limits;
  const sim = resimulate(seen, step, step.frontendMs, {
    maxSeqs: maxSeqs ?? DEFAULT_SEQS,
    maxBatchedTokens,
    ...(kvTokens !== undefined && { kvTokens }),
    ...(scheduler && { scheduler }),
  });
  const mean = (of: (s: Seen, i: number) => readonly [number | undefined, number]): Means => {
    let [measured, simulated, n] = [0, 0, 0];
    seen.forEach((s, i) => {
      const [a, b] = of(s, i);
      if (a === undefined || Number.isNaN(b)) return;
      measured += a;
      simulated += b;
      n++;
    });
    const tidy = (x: number): number => Number((x / Math.max(1, n)).toPrecision(5));
    return { measured: tidy(measured), simulated: tidy(simulated) };
  };
  return {
    requests: seen.length,
    ttft: mean((s, i) => [s.ttft, sim.ttft[i]!]),
    tpot: mean((s, i) => [s.tpot, sim.decode[i]! / (s.output - 1)]),
    e2e: mean((s, i) => [s.e2e, sim.ttft[i]! + (s.output > 1 ? sim.decode[i]! : 0)]),
  };
}
