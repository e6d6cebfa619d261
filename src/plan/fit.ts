/**
 * Fits a form of step time to observations: non-negative least squares, robust by Huber weights, intervals by resampling
 * blocks of time, errors on blocks held out. What the data do not vary is not separated, and that is said.
 */
import { InputError } from '../base/errors.ts';
import { studentQuantile } from '../stats/normal.ts';
import { ErrorSums, errorOf, type FitError, medianOf } from './fit-error.ts';
import {
  type CoefficientName,
  columnsOf,
  FORMS,
  type Form,
  type FormName,
  predicted,
  type Side,
  type Values,
} from './form.ts';
import { Normal, nonNegative } from './least-squares.ts';
import type { Observation } from './observations.ts';
import { type Estimate, resampled } from './resampled.ts';
import { separate } from './separation.ts';

export interface Fit {
  readonly form: FormName;
  readonly coefficients: Readonly<Partial<Record<CoefficientName, Estimate>>>;
  /** Of the scaled columns in use. */
  readonly condition: number;
  /** Sentences: what the data could not tell apart, and what then stands for it. */
  readonly unseparated: readonly string[];
  /** The same data: optimistic. */
  readonly fitted: FitError;
  /** Blocks of time the fit had not seen. */
  readonly heldOut: FitError;
  /** Of the form that was not taken, its held-out error of decode and prefill together. */
  readonly otherForm: { readonly form: FormName; readonly error: number } | null;
  /** Mean over typical step: robust fits leave stalls out, users do not. 1 or more. */
  readonly stallFactor: number;
  readonly blocks: number;
  readonly observations: Readonly<Record<Observation['kind'], number>>;
}

const HUBER = 1.345;
const BLOCKS = 32;
const FOLDS = 4;
/** `max` has to beat `sum` by this much on blocks held out: the simpler form generalises. */
const WORTH = 0.85;

export interface FitOptions {
  readonly seed?: number;
  /** Blocks of time; each should be longer than neighbours are alike. */
  readonly blocks?: number;
  /** Coefficients alone: no intervals, nothing held out, the form `sum`. */
  readonly quick?: boolean;
}

/** @throws InputError when there is not enough to fit. */
export function fitSteps(observations: readonly Observation[], options: FitOptions = {}): Fit {
  const counts = { decode: 0, prefill: 0, lone: 0 };
  for (const o of observations) counts[o.kind]++;
  if (counts.decode < 30) {
    throw new InputError(
      `calibrate: only ${counts.decode} decode steps have a certain batch, 30 are needed; give a longer run in which this client is the only load on one replica`,
    );
  }
  const blocks = blocksOf(observations, options.blocks ?? BLOCKS);
  if (options.quick) return quickFit(observations, counts);
  const candidates = (Object.keys(FORMS) as FormName[]).map((name) => {
    const form = FORMS[name];
    const { held, missed } = heldOut(form, observations, blocks);
    return { form, held, missed, error: (held.decode ?? 0) + (held.prefill ?? 0) + (held.lone ?? 0) };
  });
  const [sum, max] = candidates as [(typeof candidates)[number], (typeof candidates)[number]];
  // Without prompts in view there is nothing a second bound could be told by.
  const prompts = counts.prefill + counts.lone >= 8;
  const chosen = prompts && (max.error < WORTH * sum.error || clearlyLess(max.missed, sum.missed, blocks)) ? max : sum;
  const other = chosen === sum ? max : sum;
  const solved = solveForm(chosen.form, observations);
  const estimates = intervals(chosen.form, observations, solved, blocks, options.seed ?? 1);
  const values = valuesOf(chosen.form, solved.x);
  const error = errorOf(chosen.form.name, values, observations);
  return {
    form: chosen.form.name,
    coefficients: estimates,
    condition: solved.condition,
    unseparated: solved.unseparated,
    fitted: error,
    heldOut: chosen.held,
    otherForm: prompts ? { form: other.form.name, error: other.error } : null,
    stallFactor: Math.max(1, 1 + (error.bias ?? 0)),
    blocks: new Set(blocks).size,
    observations: counts,
  };
}

function quickFit(observations: readonly Observation[], counts: Fit['observations']): Fit {
  const solved = solveForm(FORMS.sum, observations);
  const values = valuesOf(FORMS.sum, solved.x);
  const error = errorOf('sum', values, observations);
  return {
    form: 'sum',
    coefficients: Object.fromEntries(
      FORMS.sum.columns
        .filter((_, i) => solved.use[i])
        .map((name) => {
          const value = values[name] ?? 0;
          return [name, { value, low: value, high: value }];
        }),
    ),
    condition: solved.condition,
    unseparated: solved.unseparated,
    fitted: error,
    heldOut: error,
    otherForm: null,
    stallFactor: 1,
    blocks: 1,
    observations: counts,
  };
}

export function valuesOf(form: Form, x: ArrayLike<number>): Values {
  return Object.fromEntries(form.columns.map((name, i) => [name, x[i]!])) as Values;
}

interface Solved {
  readonly x: Float64Array;
  readonly use: readonly boolean[];
  readonly sides: Uint8Array;
  readonly weights: Float64Array;
  readonly condition: number;
  readonly unseparated: readonly string[];
}

/** The spread expected of an observation that should take `ms`: a share of it, and what a receipt's stamp is good for. */
function sigma(o: Observation, ms: number): number {
  return o.kind === 'lone' ? Math.hypot(0.03 * ms, 0.3) : Math.hypot(0.02 * ms, 0.05 * Math.sqrt(o.steps));
}

function solveForm(form: Form, observations: readonly Observation[]): Solved {
  const n = observations.length;
  const weights = new Float64Array(n);
  const base = new Float64Array(n);
  observations.forEach((o, i) => {
    base[i] = 1 / sigma(o, o.ms) ** 2;
    weights[i] = base[i]!;
  });
  // In a maximum, prompts start on the side of work, decodes on that of memory; then each moves to the longer.
  const sides = new Uint8Array(n);
  if (form.name === 'max') for (let i = 0; i < n; i++) sides[i] = observations[i]!.prefillTokens > 0 ? 1 : 0;
  let normal = assemble(form, observations, sides, weights);
  let use: readonly boolean[] = form.columns.map(() => true);
  let x = nonNegative(normal, use);
  let separation = separate(form, normal, contextOf(observations));
  use = separation.use;
  for (let round = 0; round < 25; round++) {
    x = nonNegative(normal, use);
    const values = valuesOf(form, x);
    let moved = 0;
    if (form.name === 'max') {
      for (let i = 0; i < n; i++) {
        const side = sideOf(values, observations[i]!);
        if (side !== sides[i]) moved++;
        sides[i] = side;
      }
    }
    // Weights by what is predicted: by what was measured, steps that came out short would count more, and bias the fit.
    for (let i = 0; i < n; i++) {
      const o = observations[i]!;
      const ms = predicted(form.name, values, o);
      if (ms > 0) base[i] = 1 / sigma(o, ms) ** 2;
    }
    const scale = spreadOf(form, values, observations, base);
    let change = 0;
    for (let i = 0; i < n; i++) {
      const o = observations[i]!;
      const z = (Math.abs(o.ms - predicted(form.name, values, o)) * Math.sqrt(base[i]!)) / scale;
      const w = base[i]! * (z <= HUBER ? 1 : HUBER / z);
      change += Math.abs(w - weights[i]!) / base[i]!;
      weights[i] = w;
    }
    normal = assemble(form, observations, sides, weights);
    separation = separate(form, normal, contextOf(observations));
    use = separation.use;
    if (moved === 0 && change < 1e-4 * n) break;
  }
  x = nonNegative(normal, use);
  return { x, use, sides, weights, condition: separation.condition, unseparated: separation.unseparated };
}

function sideOf(v: Values, o: Observation): Side {
  const memory = (v.step ?? 0) * o.steps + (v.sequence ?? 0) * o.sequences + ((v.kv ?? 0) * o.kv) / 1000;
  return predicted('max', { ...v, entry: 0 }, o) > memory * (1 + 1e-12) ? 1 : 0;
}

function assemble(
  form: Form,
  observations: readonly Observation[],
  sides: Uint8Array,
  weights: Float64Array,
  into = new Normal(form.columns.length),
  pick?: (i: number) => boolean,
): Normal {
  const x = new Float64Array(form.columns.length);
  for (let i = 0; i < observations.length; i++) {
    if (pick && !pick(i)) continue;
    const o = observations[i]!;
    columnsOf(form, o, sides[i] as Side, x);
    into.add(x, o.ms, weights[i]!);
  }
  return into;
}

/** Robust scale of the residuals in units of their expected spread. */
function spreadOf(form: Form, values: Values, observations: readonly Observation[], base: Float64Array): number {
  const z = observations.map((o, i) => Math.abs(o.ms - predicted(form.name, values, o)) * Math.sqrt(base[i]!));
  return Math.max(1e-9, (medianOf(z) ?? 1) / 0.6745);
}

function contextOf(observations: readonly Observation[]): number {
  let kv = 0;
  let sequences = 0;
  for (const o of observations) {
    if (o.kind !== 'decode') continue;
    kv += o.kv;
    sequences += o.sequences;
  }
  return kv / Math.max(1, sequences);
}

/** Equal stretches of observations in time: which one each is in. */
function blocksOf(observations: readonly Observation[], count: number): Int32Array {
  const n = observations.length;
  const first = observations[0]!.t;
  const span = observations[n - 1]!.t - first;
  return Int32Array.from(observations, (o) =>
    span > 0 ? Math.min(count - 1, Math.floor((count * (o.t - first)) / span)) : 0,
  );
}

/** Every fourth block is predicted from the others, in turn. */
function heldOut(
  form: Form,
  observations: readonly Observation[],
  blocks: Int32Array,
): { held: FitError; missed: Float64Array } {
  // Pooled over the folds: a mean of their medians would follow the fold that happened to miss a kind of observation.
  const sums = new ErrorSums();
  const missed = new Float64Array(observations.length).fill(Number.NaN);
  for (let fold = 0; fold < FOLDS; fold++) {
    const train = observations.filter((_, i) => blocks[i]! % FOLDS !== fold);
    const test = observations.filter((_, i) => blocks[i]! % FOLDS === fold);
    if (test.length === 0 || train.filter((o) => o.kind === 'decode').length < 10) continue;
    const values = valuesOf(form, solveForm(form, train).x);
    sums.add(form.name, values, test);
    observations.forEach((o, i) => {
      if (o.kind === 'decode' || blocks[i]! % FOLDS !== fold) return;
      missed[i] = Math.min(1, Math.abs(predicted(form.name, values, o) - o.ms) / o.ms);
    });
  }
  return { held: sums.finish(), missed };
}

/**
 * Whether one form misses prompts by less than the other, beyond chance: paired, so that what disturbs an observation
 * disturbs both, and by means of blocks, since neighbours are alike.
 */
function clearlyLess(a: Float64Array, b: Float64Array, blocks: Int32Array): boolean {
  const sums = new Map<number, { sum: number; n: number }>();
  a.forEach((x, i) => {
    const d = b[i]! - x;
    if (Number.isNaN(d)) return;
    const at = sums.get(blocks[i]!) ?? { sum: 0, n: 0 };
    sums.set(blocks[i]!, { sum: at.sum + d, n: at.n + 1 });
  });
  const means = [...sums.values()].map((s) => s.sum / s.n);
  const n = means.length;
  if (n < 6) return false;
  const mean = means.reduce((s, x) => s + x, 0) / n;
  const variance = means.reduce((s, x) => s + (x - mean) ** 2, 0) / (n - 1);
  return mean > 0 && mean / Math.sqrt(variance / n) > studentQuantile(0.975, n - 1);
}

function intervals(
  form: Form,
  observations: readonly Observation[],
  solved: Solved,
  blocks: Int32Array,
  seed: number,
): Partial<Record<CoefficientName, Estimate>> {
  const parts = [...new Set(blocks)].map((b) =>
    assemble(form, observations, solved.sides, solved.weights, new Normal(form.columns.length), (i) => blocks[i] === b),
  );
  return resampled(form, solved.x, solved.use, parts, seed);
}
