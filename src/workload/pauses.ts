/** Think times: how long a user takes between the end of an answer and the next question. */
import { InputError } from '../base/errors.ts';
import { didYouMean } from '../base/nearest.ts';
import type { Uniform } from '../base/random.ts';
import { formatDuration, type Millis, parseDuration } from '../base/units.ts';
import { standardNormal } from './lengths.ts';

export type PausePlan =
  | { readonly kind: 'fixed'; readonly time: Millis }
  | { readonly kind: 'exponential'; readonly mean: Millis }
  | { readonly kind: 'uniform'; readonly low: Millis; readonly high: Millis }
  | { readonly kind: 'lognormal'; readonly mean: Millis; readonly cv: number };

export function drawPause(plan: PausePlan, u: Uniform): Millis {
  switch (plan.kind) {
    case 'fixed':
      return plan.time;
    case 'exponential':
      return -plan.mean * Math.log1p(-u());
    case 'uniform':
      return plan.low + u() * (plan.high - plan.low);
    case 'lognormal': {
      const variance = Math.log(1 + plan.cv * plan.cv);
      return Math.exp(Math.log(plan.mean) - variance / 2 + Math.sqrt(variance) * standardNormal(u));
    }
  }
}

export function meanPause(plan: PausePlan): Millis {
  if (plan.kind === 'fixed') return plan.time;
  return plan.kind === 'uniform' ? (plan.low + plan.high) / 2 : plan.mean;
}

/** Reads `5s`, `exponential:5s`, `uniform:1s-9s` or `lognormal:5s,0.8` (mean, cv). @throws InputError naming `what`. */
export function parsePause(text: string, what: string): PausePlan {
  const [kind = '', args] = text.split(':', 2);
  if (args === undefined) return { kind: 'fixed', time: parseDuration(text, what) };
  const positive = (t: string): Millis => {
    const ms = parseDuration(t, what);
    if (!(ms > 0)) throw new InputError(`${what}: '${text}' needs a time above 0`);
    return ms;
  };
  if (kind === 'exponential') return { kind, mean: positive(args) };
  if (kind === 'uniform') {
    const [low = '', high = ''] = args.split('-');
    const plan = { kind, low: parseDuration(low, what), high: parseDuration(high, what) } as const;
    if (plan.high < plan.low) throw new InputError(`${what}: '${text}' ends below its start`);
    return plan;
  }
  if (kind === 'lognormal') {
    const [mean = '', cv = ''] = args.split(',');
    const spread = cv.trim() === '' ? Number.NaN : Number(cv);
    if (!(spread >= 0) || !Number.isFinite(spread)) {
      throw new InputError(`${what}: '${text}' is not lognormal:MEAN,CV`);
    }
    return { kind, mean: positive(mean), cv: spread };
  }
  throw new InputError(
    `${what}: '${text}' is not a pause${didYouMean(kind, ['exponential', 'uniform', 'lognormal'])}; write 5s, exponential:5s, uniform:1s-9s or lognormal:5s,0.8 (mean, cv)`,
  );
}

export function pauseText(plan: PausePlan): string {
  if (plan.kind === 'fixed') return formatDuration(plan.time);
  if (plan.kind === 'uniform') return `uniform:${formatDuration(plan.low)}-${formatDuration(plan.high)}`;
  return `${plan.kind}:${formatDuration(plan.mean)}${plan.kind === 'lognormal' ? `,${plan.cv}` : ''}`;
}
