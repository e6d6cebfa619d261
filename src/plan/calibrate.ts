/** From records to a profile: observe, refuse what cannot be told, fit, and hold out. */
import { InputError, messageOf } from '../base/errors.ts';
import { type Bounds, fitWhole, replayedMeans } from './calibrate-whole.ts';
import { type Fit, fitSteps } from './fit.ts';
import { errorOf, type FitError } from './fit-error.ts';
import type { CoefficientName, Values } from './form.ts';
import { type Observation, type Observed, observe } from './observations.ts';
import { type Profile, profileOf } from './profile.ts';
import type { Receipts } from './receipts.ts';
import { type Seen, slowedByPrompts } from './seen.ts';

/** One run's receipts and what it says of itself. */
export interface CalibrationRun {
  readonly name: string;
  readonly receipts: Receipts;
  /** Its requests as a whole; without them only single steps are fitted. */
  readonly seen?: readonly Seen[];
  readonly target: Readonly<Record<string, unknown>>;
}

export interface CalibrateOptions {
  readonly name: string;
  /** Prompt tokens a step may hold, and whether somebody said so. */
  readonly budget: number;
  readonly budgetGiven?: boolean;
  /** Somebody says that one replica alone answered, whatever the receipts look like. */
  readonly oneReplica?: boolean;
  /** Sequences a batch may hold, when it is known. */
  readonly maxSeqs?: number;
  readonly seed?: number;
}

export interface Calibration {
  readonly profile: Profile;
  readonly fit: Fit;
  /** Absent when no single steps could be seen. */
  readonly observed?: Observed;
}

/** Of the streams that decode while a long prompt is computed, the share that it slows: then they are in one engine. */
const ONE_ENGINE = 0.75;
const LEAST_PAIRS = 5;
/** Below this a simulation with what single steps gave answers the run's own requests well enough, in mean |log ratio|. */
const GOOD = 0.04;
/** Fitting whole requests has to be this much better than single steps. */
const CLEARLY = 0.93;

/** Below this share of receipts that come with their step's the streams do not go in step. */
const LEAST_TOGETHER = 0.6;
/** Below this they do, raggedly: a client or an engine that is late now and then. */
const RAGGED = 0.85;
/** Relative spread of steps of equal batches beyond which something else is at work. */
const FOREIGN = 0.3;

/** @throws InputError when the runs cannot say it, with what to do. */
export function calibrate(runs: readonly CalibrationRun[], options: CalibrateOptions): Calibration {
  const seen = laidOut(runs);
  let steps: Steps | undefined;
  let why = '';
  try {
    steps = fromSteps(runs, options);
  } catch (error) {
    if (!(error instanceof InputError) || seen.length === 0 || !(options.oneReplica || oneEngine(runs))) throw error;
    why = messageOf(error);
  }
  const limited = steps?.observed.limited ? steps.observed.mostStreams : undefined;
  const bounds: Bounds = {
    ...((options.maxSeqs ?? limited) !== undefined && { maxSeqs: (options.maxSeqs ?? limited) as number }),
    budget: options.budget,
    budgetGiven: options.budgetGiven ?? true,
  };
  const inStep = steps !== undefined && steps.observed.together >= RAGGED;
  const whole = seen.length > 0 ? fitWhole(seen, bounds, options, steps?.fit, inStep) : undefined;
  const better =
    whole !== undefined &&
    (steps === undefined || (whole.lossOfSteps > GOOD && whole.fit.loss < CLEARLY * whole.lossOfSteps));
  const fit = better ? whole.fit : (steps?.fit as Fit);
  const remarks = [
    'step (or the two bounds together) is weights read plus overhead at this precision and parallelism: one setting cannot tell them apart, so it does not carry over to another GPU',
    ...(steps ? remarksOf(runs, steps.observed, steps.fit) : [`single steps could not be seen (${why})`]),
    ...(better ? [whole.remark] : []),
  ];
  const limits = better ? whole.fit.limits : undefined;
  const profile = profileOf(fit, steps?.observed, {
    name: options.name,
    target: runs[0]?.target ?? {},
    runs: runs.map((r) => r.name),
    maxSeqs: options.maxSeqs,
    seenMaxSeqs: better && whole.maxSeqsSeen ? whole.fit.limits.maxSeqs : limited,
    budget: limits?.maxBatchedTokens ?? options.budget,
    budgetFrom:
      limits && limits.maxBatchedTokens !== options.budget ? 'seen' : bounds.budgetGiven ? 'given' : 'default',
    kvTokens: limits?.kvTokens,
    scheduler: limits?.scheduler,
    method: better ? (whole.heldSteps ? 'steps and requests' : 'requests') : 'steps',
    seen,
    heldOutRun: steps?.heldOutRun,
    remarks,
  });
  const replayed = seen.length > 0 ? replayedMeans(seen, profile) : undefined;
  return {
    profile: replayed ? { ...profile, fit: { ...profile.fit, replayed } } : profile,
    fit,
    ...(steps && { observed: steps.observed }),
  };
}

interface Steps {
  readonly fit: Fit;
  readonly observed: Observed;
  readonly heldOutRun?: FitError;
}

function fromSteps(runs: readonly CalibrationRun[], options: CalibrateOptions): Steps {
  // Once without knowing how long a request is on its way, then knowing it: which step could first hold a prompt hangs on it.
  const { entry } = estimatesOf(
    fitSteps(
      runs.flatMap((run) => observeRun(run, options.budget).observations),
      { quick: true },
    ),
  );
  const seen = runs.map((run) => observeRun(run, options.budget, entry));
  // Each run has its own clock: laid one after the other, so that blocks of time stay within a run.
  let offset = 0;
  const laid = seen.map((o) => {
    const first = o.observations[0]?.t ?? 0;
    const out = o.observations.map((x) => ({ ...x, t: x.t - first + offset }));
    offset = (out.at(-1)?.t ?? offset) + 1;
    return out;
  });
  const observed = together(seen, laid.flat());
  const fit = fitSteps(observed.observations, seedOf(options));
  if (runs.length === 1) return { fit, observed };
  const last = laid.at(-1) as Observation[];
  const rest = fitSteps(laid.slice(0, -1).flat(), seedOf(options));
  return { fit, observed, heldOutRun: errorOf(rest.form, estimatesOf(rest), last) };
}

/** Quiet between two runs that are laid one after the other, ms. */
const APART = 600_000;

function laidOut(runs: readonly CalibrationRun[]): Seen[] {
  const out: Seen[] = [];
  let offset = 0;
  for (const { name, seen, target } of runs) {
    if (!seen || seen.length === 0) continue;
    if (target.kind === 'imported' && seen.length > 1 && seen.every((s) => s.sent === seen[0]!.sent)) {
      throw new InputError(
        `${name}: its ${seen.length} requests all begin at one instant, as in results without start times, so their arrivals cannot be simulated; import results that have them (vLLM: --save-detailed of a recent version)`,
      );
    }
    const first = seen[0]!.sent;
    let end = offset;
    for (const s of seen) {
      const sent = s.sent - first + offset;
      out.push({ ...s, sent });
      end = Math.max(end, sent + s.e2e);
    }
    offset = end + APART;
  }
  return out;
}

/**
 * Streams out of step may be those of several replicas, or of one engine that hands tokens on raggedly. In one engine a long
 * prompt slows everybody. Without stamps a token nothing of the kind is seen, and the user's word stands.
 */
function oneEngine(runs: readonly CalibrationRun[]): boolean {
  return runs.every(({ receipts, seen }) => {
    if (!seen || seen.length === 0) return false;
    if (receipts.streams.length === 0) return true;
    const slowed = slowedByPrompts(receipts.streams);
    return slowed.pairs >= LEAST_PAIRS && slowed.share >= ONE_ENGINE;
  });
}

export function estimatesOf(fit: Pick<Fit, 'coefficients'>): Values {
  return Object.fromEntries(
    Object.entries(fit.coefficients).map(([name, e]) => [name as CoefficientName, e.value]),
  ) as Values;
}

function observeRun(run: CalibrationRun, budget: number, entry = 0): Observed {
  const { streams, leftOut } = run.receipts;
  if (streams.length === 0) {
    const why =
      leftOut.notPerToken > 0
        ? `none of its ${leftOut.notPerToken} answers has one token a chunk, so steps cannot be seen`
        : `it has no completed stream${leftOut.broken > 0 ? ` (${leftOut.broken} ended otherwise)` : ''}`;
    throw new InputError(`${run.name}: ${why}; measure a streaming endpoint that sends each token by itself`);
  }
  const observed = observe(run.receipts, { budget, entry });
  if (observed.togetherSteps >= 30 && observed.together < LEAST_TOGETHER) {
    throw new InputError(
      `${run.name}: only ${(100 * observed.together).toFixed(0)} % of the receipts come with the others of their step, so the streams do not go in step: several replicas, or something that gathers tokens on the way; calibrate one replica alone, without a load balancer (and if that is what it is, add --one-replica)`,
    );
  }
  return observed;
}

function together(seen: readonly Observed[], observations: readonly Observation[]): Observed {
  const steps = seen.reduce((sum, o) => sum + o.steps, 0);
  const togetherSteps = seen.reduce((sum, o) => sum + o.togetherSteps, 0);
  const most = Math.max(...seen.map((o) => o.mostStreams));
  return {
    observations,
    steps,
    uncertain: seen.reduce((sum, o) => sum + o.uncertain, 0),
    together: togetherSteps > 0 ? seen.reduce((sum, o) => sum + o.together * o.togetherSteps, 0) / togetherSteps : 1,
    togetherSteps,
    mostStreams: most,
    limited: seen.some((o) => o.limited && o.mostStreams === most),
    context: [Math.min(...seen.map((o) => o.context[0])), Math.max(...seen.map((o) => o.context[1]))],
  };
}

function remarksOf(runs: readonly CalibrationRun[], observed: Observed, fit: Fit): string[] {
  const out: string[] = [];
  if ((fit.fitted.decode ?? 0) > FOREIGN) {
    out.push(
      `steps of equal batches differ by ${(100 * (fit.fitted.decode ?? 0)).toFixed(0)} % at the median: foreign load on the engine, or a client too busy; what is fitted is this mixture, and holds only while it lasts`,
    );
  }
  if (observed.togetherSteps >= 30 && observed.together < RAGGED) {
    out.push(
      `only ${(100 * observed.together).toFixed(0)} % of the receipts came with the others of their step: the client or the engine was held up by other work, or tokens are gathered on the way`,
    );
  }
  if (fit.stallFactor > 1.1) {
    out.push(
      `the mean step is ${(100 * (fit.stallFactor - 1)).toFixed(0)} % above the typical one: steps stall now and then; simulations carry that factor evenly`,
    );
  }
  if (observed.uncertain > observed.steps / 3) {
    out.push(`${observed.uncertain} of ${observed.steps} steps were left out, because their batch was not certain`);
  }
  const left = runs.reduce((sum, r) => sum + r.receipts.leftOut.broken + r.receipts.leftOut.notPerToken, 0);
  if (left > 0) out.push(`${left} requests were left out: not completed, or not one token a chunk`);
  if (fit.observations.prefill + fit.observations.lone === 0) {
    out.push('no prompt was seen being computed: nothing is known of prefill, and TTFT cannot be predicted');
  }
  return out;
}

function seedOf(options: CalibrateOptions): { seed?: number } {
  return options.seed === undefined ? {} : { seed: options.seed };
}
