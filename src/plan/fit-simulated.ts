/**
 * Fits step time to whole requests, by simulating the arrivals they had: for records without a stamp a token, and for
 * engines whose streams do not go in step. First tokens and decode times alone cannot tell all coefficients apart; those they
 * cannot are given up, and said.
 *
 * Gauss–Newton on log ratios of simulated to measured, the derivatives by simulating again with each coefficient a little
 * larger; weights by Huber, coefficients never negative.
 */
import { InputError } from '../base/errors.ts';
import type { Fit } from './fit.ts';
import type { FitError } from './fit-error.ts';
import { contextOf, maxStart, scalesOf, startsOf, sumStart } from './fit-starts.ts';
import { FORMS, type Form, type FormName, type Values } from './form.ts';
import { FormStepModel } from './form-step.ts';
import { Normal, nonNegative } from './least-squares.ts';
import { errorsOf, lossOf, residuals } from './request-errors.ts';
import { resampled } from './resampled.ts';
import { type BatchLimits, type Resimulated, resimulate } from './resimulate.ts';
import type { Seen } from './seen.ts';
import { separate } from './separation.ts';

export interface SimulatedFit extends Fit {
  readonly limits: BatchLimits;
  /** Mean of |log ratio| over first tokens and decode times, on blocks not fitted. */
  readonly loss: number;
}

/** Requests simulated for the fit: more cost time and say little more. */
const MOST = 3000;
const LEAST = 30;
const BLOCKS = 16;
const FOLDS = 4;
const ROUNDS = 14;
const HUBER = 1.345;
/** Whole requests are noisier than steps: what is seen only this weakly is noise. */
const WORST_CONDITION = 60;
/** A form or a limit has to beat the simpler one by this much. */
const WORTH = 0.93;

export interface SimulatedFitOptions {
  readonly seed?: number;
  readonly limits: BatchLimits;
  /** Limits to try where the user has not given them; the first that fits clearly best is taken. */
  readonly tryMaxSeqs?: readonly number[];
  readonly tryBatchedTokens?: readonly number[];
  readonly tryKvTokens?: readonly number[];
  /** Coefficients known from single steps: they are not fitted again. */
  readonly held?: Values;
  /** Where else to begin. */
  readonly start?: Values;
}

/** What a fit runs under. */
interface Setting {
  readonly seen: readonly Seen[];
  readonly limits: BatchLimits;
  readonly held: Values;
}

/** @throws InputError when there are too few requests. */
export function fitRequests(all: readonly Seen[], options: SimulatedFitOptions): SimulatedFit {
  const seen = all.slice(0, MOST);
  if (seen.length < LEAST) {
    throw new InputError(
      `calibrate: only ${seen.length} completed requests have a first token and lengths, ${LEAST} are needed; give a longer run`,
    );
  }
  const starts = [...startsOf(seen), ...(options.start ? [options.start] : [])].map((v) => ({ ...v, ...options.held }));
  let on: Setting = { seen, limits: options.limits, held: options.held ?? {} };
  // The simpler form settles the limits; both forms are then fitted under them.
  let sum = bestOf(starts.map((start) => solve(FORMS.sum, on, sumStart(start), ROUNDS)));
  const gapLoss = (at: Setting, s: Solution): number => lossOf(seen, run(FORMS.sum, at, s.x, true), true);
  for (const [key, values] of [
    ['maxSeqs', options.tryMaxSeqs ?? []],
    ['maxBatchedTokens', options.tryBatchedTokens ?? []],
    ['kvTokens', options.tryKvTokens ?? []],
  ] as const) {
    if (values.length === 0) continue;
    // As many rounds for what is as for what is tried: else whatever comes later looks better.
    sum = solve(FORMS.sum, on, sum.x, 5);
    let least = gapLoss(on, sum);
    for (const value of values) {
      const other = { ...on, limits: { ...on.limits, [key]: value } };
      const refit = solve(FORMS.sum, other, sum.x, 5);
      const loss = gapLoss(other, refit);
      if (loss < WORTH * least) [on, sum, least] = [other, refit, loss];
    }
  }
  const max = bestOf([
    solve(FORMS.max, on, maxStart(sum.x), ROUNDS),
    solve(FORMS.max, on, maxStart(sumStart(starts.at(-1) as Values)), ROUNDS),
  ]);
  const candidates = [sum, max].map((s) => ({ s, held: heldOut(s, on) }));
  const [a, b] = candidates as [(typeof candidates)[number], (typeof candidates)[number]];
  const chosen = b.held.loss < WORTH * a.held.loss ? b : a;
  const other = chosen === a ? b : a;
  const { s } = chosen;
  const fitted = errorsOf(seen, run(s.form, on, s.x));
  return {
    form: s.form.name,
    coefficients: resampled(s.form, s.x, s.use, partsOf(s, on), options.seed ?? 1),
    condition: s.condition,
    unseparated: s.unseparated,
    fitted,
    heldOut: chosen.held.error,
    otherForm: { form: other.s.form.name, error: other.held.loss },
    stallFactor: Math.max(1, 1 + (fitted.bias ?? 0)),
    blocks: BLOCKS,
    observations: { decode: seen.filter((r) => r.tpot !== undefined).length, prefill: seen.length, lone: 0 },
    limits: on.limits,
    loss: chosen.held.loss,
  };
}

/** How far given coefficients are from what was seen: mean |log ratio|. */
export function requestLoss(
  all: readonly Seen[],
  fit: { readonly form: FormName; readonly values: Values; readonly factor?: number },
  limits: BatchLimits,
): number {
  const seen = all.slice(0, MOST);
  const step = new FormStepModel(fit.form, fit.values, fit.form, fit.factor);
  return lossOf(seen, resimulate(seen, step, fit.values.entry ?? 0, limits));
}

interface Solution {
  readonly form: Form;
  readonly x: Float64Array;
  readonly use: readonly boolean[];
  readonly condition: number;
  readonly unseparated: readonly string[];
  readonly loss: number;
}

function run(form: Form, { seen, limits }: Setting, x: Float64Array, gaps = false): Resimulated {
  const values = Object.fromEntries(form.columns.map((name, i) => [name, x[i]!])) as Values;
  // A step of no time at all cannot be simulated.
  const step = new FormStepModel(form.name, { ...values, step: Math.max(1e-4, values.step ?? 0) });
  return resimulate(seen, step, values.entry ?? 0, limits, gaps);
}

function solve(form: Form, on: Setting, start: Float64Array, rounds: number, pick?: (i: number) => boolean): Solution {
  const { seen, held } = on;
  const fixed = form.columns.map((name) => held[name] !== undefined);
  const lossAt = (at: Float64Array): number => lossOf(seen, run(form, on, at), false, pick);
  let x = Float64Array.from(start, (v, k) => held[form.columns[k]!] ?? v);
  let loss = lossAt(x);
  let damping = 0.03;
  let separation = { use: form.columns.map(() => true), condition: 1, unseparated: [] as string[] };
  for (let round = 0; round < rounds; round++) {
    const normal = assemble(form, linearise(form, on, x), seen.length, pick);
    separation = separate(form, normal, contextOf(seen), WORST_CONDITION);
    separation.unseparated = separation.unseparated.filter(
      (s) => !form.columns.some((name, k) => fixed[k] && s.startsWith(`${name}:`)),
    );
    const { gram, n } = normal;
    let improved = false;
    for (let attempt = 0; attempt < 4 && !improved; attempt++) {
      const damped = new Normal(n);
      damped.merge(normal);
      for (let k = 0; k < n; k++) {
        const e = new Float64Array(n);
        e[k] = 1;
        damped.add(e, x[k]!, damping * gram[k * n + k]!);
      }
      const next = nonNegative(damped, separation.use).map((v, k) => (fixed[k] ? x[k]! : v));
      const nextLoss = lossAt(next);
      if (nextLoss < loss) {
        improved = true;
        const gain = 1 - nextLoss / loss;
        [x, loss] = [next, nextLoss];
        damping = Math.max(1e-3, damping / 3);
        if (gain < 2e-3) round = rounds;
      } else damping *= 8;
    }
    if (!improved) break;
  }
  // What was given up is 0, and the rest carries it.
  const use = separation.use;
  x = x.map((v, k) => (use[k] || fixed[k] ? v : 0));
  const polished = rounds < ROUNDS ? { x, loss: lossAt(x) } : polish(x, use, scalesOf(form, seen), lossAt);
  return { form, ...separation, ...polished };
}

/** Who shares a step with whom changes by jumps, and derivatives do not see them: one coefficient up or down at a time. */
function polish(
  start: Float64Array,
  use: readonly boolean[],
  scales: Float64Array,
  lossAt: (x: Float64Array) => number,
): { x: Float64Array; loss: number } {
  let x = start;
  let loss = lossAt(x);
  for (let share = 0.4; share > 0.02; share /= 2) {
    for (let again = 0, better = true; better && again < 3; again++) {
      better = false;
      for (let k = 0; k < x.length; k++) {
        if (!use[k]) continue;
        const h = Math.max(share * x[k]!, 2 * share * scales[k]!);
        for (const to of [x[k]! + h, Math.max(0, x[k]! - h)]) {
          if (to === x[k]) continue;
          const moved = Float64Array.from(x);
          moved[k] = to;
          const at = lossAt(moved);
          if (at < loss * (1 - 1e-4)) {
            [x, loss, better] = [moved, at, true];
            break;
          }
        }
      }
    }
  }
  return { x, loss };
}

interface Linear {
  readonly columns: readonly Float64Array[];
  readonly y: Float64Array;
  readonly weights: Float64Array;
}

/** Around `x`: r(x') ≈ J·x' − y, with each row's Huber weight. */
function linearise(form: Form, on: Setting, x: Float64Array): Linear {
  const { seen, held } = on;
  const at = residuals(seen, run(form, on, x));
  const scales = scalesOf(form, seen);
  const columns = form.columns.map((name, k) => {
    if (held[name] !== undefined) return new Float64Array(at.length);
    const h = Math.max(0.04 * x[k]!, scales[k]!);
    const moved = Float64Array.from(x);
    moved[k]! += h;
    const r = residuals(seen, run(form, on, moved));
    return r.map((v, i) => (v - at[i]!) / h);
  });
  const n = seen.length;
  const spread = [0, 1].map((kind) => {
    const abs = Float64Array.from(
      at.subarray(kind * n, kind * n + n).filter((v) => !Number.isNaN(v)),
      Math.abs,
    ).sort();
    return Math.max(0.01, (abs[abs.length >> 1] ?? 1) / 0.6745);
  });
  const weights = at.map((v, i) => {
    if (Number.isNaN(v)) return 0;
    const s = spread[i < n ? 0 : 1]!;
    const z = Math.abs(v) / s;
    return (z <= HUBER ? 1 : HUBER / z) / s ** 2;
  });
  const y = at.map((v, i) => columns.reduce((sum, c, k) => sum + c[i]! * x[k]!, -v));
  return { columns, y, weights };
}

function assemble(form: Form, l: Linear, requests: number, pick?: (i: number) => boolean): Normal {
  const normal = new Normal(form.columns.length);
  const row = new Float64Array(form.columns.length);
  for (let i = 0; i < l.y.length; i++) {
    if (!(l.weights[i]! > 0) || (pick && !pick(i % requests))) continue;
    for (let k = 0; k < row.length; k++) row[k] = l.columns[k]![i]!;
    normal.add(row, l.y[i]!, l.weights[i]!);
  }
  return normal;
}

function partsOf(s: Solution, on: Setting): Normal[] {
  const { seen } = on;
  const l = linearise(s.form, on, s.x);
  const block = blocksOf(seen);
  return [...new Set(block)].map((b) => assemble(s.form, l, seen.length, (i) => block[i] === b));
}

function blocksOf(seen: readonly Seen[]): Int32Array {
  const first = seen[0]!.sent;
  const span = seen[seen.length - 1]!.sent - first;
  return Int32Array.from(seen, (s, i) =>
    span > 0
      ? Math.min(BLOCKS - 1, Math.floor((BLOCKS * (s.sent - first)) / span))
      : Math.floor((BLOCKS * i) / seen.length),
  );
}

/** Every fourth block of time judged by a fit of the others, in turn. */
function heldOut(s: Solution, on: Setting): { loss: number; error: FitError } {
  const { seen } = on;
  const block = blocksOf(seen);
  let loss = 0;
  let folds = 0;
  const joined: Resimulated = {
    ttft: new Float64Array(seen.length).fill(Number.NaN),
    decode: new Float64Array(seen.length).fill(Number.NaN),
    maxGap: new Float64Array(0),
  };
  for (let fold = 0; fold < FOLDS; fold++) {
    const test = (i: number): boolean => block[i]! % FOLDS === fold;
    const trained = solve(s.form, on, s.x, 4, (i) => !test(i));
    const sim = run(s.form, on, trained.x);
    const here = lossOf(seen, sim, false, test);
    if (Number.isFinite(here)) {
      loss += here;
      folds++;
    }
    for (let i = 0; i < seen.length; i++) {
      if (!test(i)) continue;
      joined.ttft[i] = sim.ttft[i]!;
      joined.decode[i] = sim.decode[i]!;
    }
  }
  return { loss: folds > 0 ? loss / folds : Number.POSITIVE_INFINITY, error: errorsOf(seen, joined) };
}

function bestOf(solutions: readonly Solution[]): Solution {
  return solutions.reduce((best, s) => (s.loss < best.loss ? s : best));
}
