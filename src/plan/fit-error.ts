/** How far a form with its coefficients is from observations. */
import { type FormName, predicted, type Values } from './form.ts';
import type { Observation } from './observations.ts';

/** How far predictions were from what was measured. Shares; medians of |predicted − measured| / measured. */
export interface FitError {
  readonly decode: number | null;
  readonly prefill: number | null;
  readonly lone: number | null;
  /** Σ measured / Σ predicted over decode steps, minus 1: what stalls add, or what the form misses. */
  readonly bias: number | null;
  readonly observations: number;
}

/** Error of coefficients on observations they may never have seen: another run's, say. */
export function errorOf(form: FormName, values: Values, observations: readonly Observation[]): FitError {
  const sums = new ErrorSums();
  sums.add(form, values, observations);
  return sums.finish();
}

export class ErrorSums {
  readonly #ape: Record<Observation['kind'], number[]> = { decode: [], prefill: [], lone: [] };
  #measured = 0;
  #expected = 0;
  #count = 0;

  add(form: FormName, values: Values, observations: readonly Observation[]): void {
    for (const o of observations) {
      const y = predicted(form, values, o);
      this.#ape[o.kind].push(Math.abs(y - o.ms) / o.ms);
      this.#count++;
      if (o.kind !== 'decode') continue;
      this.#measured += o.ms;
      this.#expected += y;
    }
  }

  finish(): FitError {
    return {
      decode: medianOf(this.#ape.decode),
      prefill: medianOf(this.#ape.prefill),
      lone: medianOf(this.#ape.lone),
      bias: this.#expected > 0 ? this.#measured / this.#expected - 1 : null,
      observations: this.#count,
    };
  }
}

export function medianOf(values: readonly number[]): number | null {
  if (values.length === 0) return null;
  const sorted = Float64Array.from(values).sort();
  return sorted[sorted.length >> 1]!;
}
