/** Intervals of coefficients, by resampling blocks of time. */
import { keyed } from '../base/random.ts';
import { studentQuantile } from '../stats/normal.ts';
import type { CoefficientName, Form } from './form.ts';
import { Normal, nonNegative } from './least-squares.ts';

export interface Estimate {
  readonly value: number;
  /** 95 %, from resampled time blocks. */
  readonly low: number;
  readonly high: number;
}

const RESAMPLES = 200;
/** Blocks that say as much as one independent: what tells a coefficient sits in a few phases of a round. */
const ALIKE = 4;

/**
 * Student intervals with the spread of resampled blocks; percentiles of few blocks are too narrow.
 * @param parts each block's normal equations.
 */
export function resampled(
  form: Form,
  values: Float64Array,
  use: readonly boolean[],
  parts: readonly Normal[],
  seed: number,
): Partial<Record<CoefficientName, Estimate>> {
  const n = form.columns.length;
  const mean = new Float64Array(n);
  const square = new Float64Array(n);
  const u = keyed(seed, 'calibrate-blocks');
  for (let r = 0; r < RESAMPLES; r++) {
    const sum = new Normal(n);
    for (let i = 0; i < parts.length; i++) sum.merge(parts[Math.floor(u() * parts.length)]!);
    const x = nonNegative(sum, use);
    for (let i = 0; i < n; i++) {
      mean[i]! += x[i]! / RESAMPLES;
      square[i]! += x[i]! ** 2 / RESAMPLES;
    }
  }
  const t = studentQuantile(0.975, Math.max(2, parts.length / ALIKE - 1));
  const widen = Math.sqrt(parts.length / Math.max(1, parts.length - ALIKE));
  const out: Partial<Record<CoefficientName, Estimate>> = {};
  form.columns.forEach((name, i) => {
    if (!use[i]) return;
    const value = values[i]!;
    const half = t * widen * Math.sqrt(Math.max(0, square[i]! - mean[i]! ** 2));
    out[name] = { value, low: Math.max(0, value - half), high: value + half };
  });
  return out;
}
