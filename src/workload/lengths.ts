/** Token lengths: how many a prompt has, how many an answer may have. Drawn per operation, whole and at least 1. */
import { randomGamma } from 'd3-random';
import { InputError } from '../base/errors.ts';
import { didYouMean } from '../base/nearest.ts';
import type { Uniform } from '../base/random.ts';
import { trim } from '../base/units.ts';

export type LengthPlan =
  | { readonly kind: 'fixed'; readonly tokens: number }
  /** Both ends included. */
  | { readonly kind: 'uniform'; readonly low: number; readonly high: number }
  | { readonly kind: 'lognormal'; readonly mean: number; readonly cv: number }
  | { readonly kind: 'gamma'; readonly mean: number; readonly cv: number }
  /** Each value of the list is equally likely. `from` says where the list was read. */
  | { readonly kind: 'empirical'; readonly values: ArrayLike<number>; readonly from?: string }
  /** Bins by weight, uniform inside a bin, both ends included. */
  | { readonly kind: 'histogram'; readonly bins: readonly LengthBin[] };

export interface LengthBin {
  readonly low: number;
  readonly high: number;
  readonly weight: number;
}

/** The most tokens a drawn length may have: a lognormal tail must not become a request nobody can serve. */
export const MAX_LENGTH = 1_000_000;

/** One length. @param u uniforms keyed to the operation. */
export function drawLength(plan: LengthPlan, u: Uniform): number {
  return lengthDraw(plan)(u);
}

/** The same for many operations: what depends on the plan alone is worked out once. */
export function lengthDraw(plan: LengthPlan): (u: Uniform) => number {
  switch (plan.kind) {
    case 'fixed': {
      const { tokens } = plan;
      return () => tokens;
    }
    case 'uniform': {
      const { low, high } = plan;
      return (u) => low + Math.floor(u() * (high - low + 1));
    }
    case 'lognormal': {
      const variance = Math.log(1 + plan.cv * plan.cv);
      const mu = Math.log(plan.mean) - variance / 2;
      const sigma = Math.sqrt(variance);
      return (u) => clamp(Math.exp(mu + sigma * standardNormal(u)));
    }
    case 'gamma': {
      if (plan.cv === 0) return () => clamp(plan.mean);
      const shape = 1 / (plan.cv * plan.cv);
      return (u) => clamp(randomGamma.source(u)(shape, plan.mean / shape)());
    }
    case 'empirical': {
      const { values } = plan;
      return (u) => values[Math.floor(u() * values.length)] as number;
    }
    case 'histogram': {
      const { bins } = plan;
      const total = bins.reduce((sum, bin) => sum + bin.weight, 0);
      return (u) => {
        let left = u() * total;
        const bin = bins.find((b) => (left -= b.weight) < 0) ?? (bins.at(-1) as LengthBin);
        return bin.low + Math.floor(u() * (bin.high - bin.low + 1));
      };
    }
  }
}

const clamp = (x: number): number => Math.min(MAX_LENGTH, Math.max(1, Math.round(x)));

/** Marsaglia's polar method: the first of the pair, as d3-random draws it. */
export function standardNormal(u: Uniform): number {
  for (;;) {
    const x = u() * 2 - 1;
    const y = u() * 2 - 1;
    const r = x * x + y * y;
    if (r && r <= 1) return y * Math.sqrt((-2 * Math.log(r)) / r);
  }
}

/** The mean of a plan, for estimates before a run. Rounding to whole tokens and the cap are left out. */
export function meanLength(plan: LengthPlan): number {
  switch (plan.kind) {
    case 'fixed':
      return plan.tokens;
    case 'uniform':
      return (plan.low + plan.high) / 2;
    case 'lognormal':
    case 'gamma':
      return plan.mean;
    case 'empirical': {
      let sum = 0;
      for (let i = 0; i < plan.values.length; i++) sum += plan.values[i] as number;
      return sum / plan.values.length;
    }
    case 'histogram': {
      const weight = plan.bins.reduce((sum, b) => sum + b.weight, 0);
      return plan.bins.reduce((sum, b) => sum + (b.weight * (b.low + b.high)) / 2, 0) / weight;
    }
  }
}

/**
 * Reads `512`, `uniform:100-900`, `lognormal:512,0.5` or `gamma:512,0.5` (mean, coefficient of variation), or
 * `empirical:100,200,200`. @throws InputError.
 */
export function parseLength(text: string, flag: string): LengthPlan {
  const bad = (why: string): InputError =>
    new InputError(
      `${flag}: '${text}' ${why}; write 512, uniform:100-900, lognormal:512,0.5 or gamma:512,0.5 (mean, cv)`,
    );
  if (/^\d+$/.test(text)) return { kind: 'fixed', tokens: whole(Number(text), bad) };
  const [kind = '', args = ''] = text.split(':', 2);
  if (kind === 'uniform') {
    const m = /^(\d+)-(\d+)$/.exec(args);
    if (!m) throw bad('is not uniform:LOW-HIGH');
    const low = whole(Number(m[1]), bad);
    const high = whole(Number(m[2]), bad);
    if (high < low) throw bad('ends below its start');
    return { kind, low, high };
  }
  if (kind === 'lognormal' || kind === 'gamma') {
    const [mean, cv] = args.split(',').map((x) => (x.trim() === '' ? Number.NaN : Number(x)));
    if (!(mean! >= 1 && mean! <= MAX_LENGTH) || !(cv! >= 0) || !Number.isFinite(cv)) {
      throw bad(`is not ${kind}:MEAN,CV`);
    }
    return { kind, mean: mean as number, cv: cv as number };
  }
  if (kind === 'empirical') {
    if (!/^\d+(,\s*\d+)*$/.test(args)) throw bad('is not empirical:N,N,…');
    return { kind, values: args.split(',').map((x) => whole(Number(x), bad)) };
  }
  throw bad(`is not a length${didYouMean(kind, ['uniform', 'lognormal', 'gamma', 'empirical'])}`);
}

function whole(n: number, bad: (why: string) => InputError): number {
  if (!(n >= 1 && n <= MAX_LENGTH)) throw bad(`is not between 1 and ${MAX_LENGTH}`);
  return n;
}

/** A plan in the words it is written in; a long list by its size. */
export function lengthText(plan: LengthPlan): string {
  switch (plan.kind) {
    case 'fixed':
      return String(plan.tokens);
    case 'uniform':
      return `uniform:${plan.low}-${plan.high}`;
    case 'lognormal':
    case 'gamma':
      return `${plan.kind}:${plan.mean},${plan.cv}`;
    case 'empirical':
      return plan.values.length <= 6 && plan.from === undefined
        ? `empirical:${Array.from(plan.values).join(',')}`
        : `${plan.values.length} values${plan.from === undefined ? '' : ` of ${plan.from}`} (mean ${trim(meanLength(plan), 4)})`;
    case 'histogram':
      return `a histogram of ${plan.bins.length} bins (mean ${trim(meanLength(plan), 4)})`;
  }
}
