/** Token lengths: how many a prompt has, how many an answer may have. Drawn per operation, whole and at least 1. */
import { randomLogNormal } from 'd3-random';
import { InputError } from '../base/errors.ts';
import { didYouMean } from '../base/nearest.ts';
import type { Uniform } from '../base/random.ts';

export type LengthPlan =
  | { readonly kind: 'fixed'; readonly tokens: number }
  | { readonly kind: 'uniform'; readonly low: number; readonly high: number }
  | { readonly kind: 'lognormal'; readonly mean: number; readonly cv: number };

/** The most tokens a drawn length may have: a lognormal tail must not become a request nobody can serve. */
export const MAX_LENGTH = 1_000_000;

/** One length. @param u uniforms keyed to the operation. */
export function drawLength(plan: LengthPlan, u: Uniform): number {
  switch (plan.kind) {
    case 'fixed':
      return plan.tokens;
    case 'uniform':
      return plan.low + Math.floor(u() * (plan.high - plan.low + 1));
    case 'lognormal': {
      const variance = Math.log(1 + plan.cv * plan.cv);
      const draw = randomLogNormal.source(u)(Math.log(plan.mean) - variance / 2, Math.sqrt(variance))();
      return Math.min(MAX_LENGTH, Math.max(1, Math.round(draw)));
    }
  }
}

/** The mean of a plan, for estimates before a run. */
export function meanLength(plan: LengthPlan): number {
  switch (plan.kind) {
    case 'fixed':
      return plan.tokens;
    case 'uniform':
      return (plan.low + plan.high) / 2;
    case 'lognormal':
      return plan.mean;
  }
}

/** Reads `512`, `uniform:100-900` or `lognormal:512,0.5` (mean, coefficient of variation). @throws InputError. */
export function parseLength(text: string, flag: string): LengthPlan {
  const bad = (why: string): InputError =>
    new InputError(`${flag}: '${text}' ${why}; write 512, uniform:100-900 or lognormal:512,0.5 (mean, cv)`);
  if (/^\d+$/.test(text)) return { kind: 'fixed', tokens: whole(Number(text), bad) };
  const [kind = '', args = ''] = text.split(':', 2);
  if (kind === 'uniform') {
    const m = /^(\d+)-(\d+)$/.exec(args);
    if (!m) throw bad('is not uniform:LOW-HIGH');
    const low = whole(Number(m[1]), bad);
    const high = whole(Number(m[2]), bad);
    if (high < low) throw bad('ends below its start');
    return { kind: 'uniform', low, high };
  }
  if (kind === 'lognormal') {
    const [mean, cv] = args.split(',').map(Number);
    if (!(mean! >= 1) || !(cv! >= 0) || !Number.isFinite(mean) || !Number.isFinite(cv))
      throw bad('is not lognormal:MEAN,CV');
    return { kind: 'lognormal', mean: mean as number, cv: cv as number };
  }
  throw bad(`is not a length${didYouMean(kind, ['uniform', 'lognormal'])}`);
}

function whole(n: number, bad: (why: string) => InputError): number {
  if (!(n >= 1 && n <= MAX_LENGTH)) throw bad(`is not between 1 and ${MAX_LENGTH}`);
  return n;
}

/** A plan in the words it is written in. */
export function lengthText(plan: LengthPlan): string {
  switch (plan.kind) {
    case 'fixed':
      return String(plan.tokens);
    case 'uniform':
      return `uniform:${plan.low}-${plan.high}`;
    case 'lognormal':
      return `lognormal:${plan.mean},${plan.cv}`;
  }
}
