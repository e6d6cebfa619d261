/** A form of step time with its coefficients, as a step model. */
import type { Millis } from '../base/units.ts';
import type { DecodePiece, StepBatch, StepModel } from '../model/step.ts';
import type { FormName, Values } from './form.ts';

export class FormStepModel implements StepModel {
  readonly label: string;
  readonly #max: boolean;
  readonly #step: Millis;
  readonly #sequence: Millis;
  /** ms a token of ΣKV. */
  readonly #kv: number;
  readonly #prefillStep: Millis;
  readonly #prefillToken: number;
  readonly #prefillSquare: number;
  readonly #workStep: Millis;
  readonly #workToken: number;
  readonly #workSquare: number;

  /** @param factor of every step time. */
  constructor(form: FormName, values: Values, label: string = form, factor = 1) {
    const of = (name: keyof Values, per = 1): number => (factor * (values[name] ?? 0)) / per;
    this.label = label;
    this.#max = form === 'max';
    this.#step = of('step');
    this.#sequence = of('sequence');
    this.#kv = of('kv', 1000);
    this.#prefillStep = of('prefill_step');
    this.#prefillToken = of('prefill_token', 1000);
    this.#prefillSquare = of('prefill_square', 1e6);
    this.#workStep = of('work_step');
    this.#workToken = of('work_token', 1000);
    this.#workSquare = of('work_square', 1e6);
  }

  stepMs(b: StepBatch): Millis {
    if (b.decodeSequences + b.prefillTokens === 0) return 0;
    const memory = this.#step + this.#sequence * b.decodeSequences + this.#kv * b.decodeKv;
    if (this.#max) {
      const work =
        this.#workStep + this.#workToken * (b.decodeTokens + b.prefillTokens) + this.#workSquare * b.prefillSquares;
      return Math.max(memory, work);
    }
    if (b.prefillTokens === 0) return memory;
    return memory + this.#prefillStep + this.#prefillToken * b.prefillTokens + this.#prefillSquare * b.prefillSquares;
  }

  decode(sequences: number, kv: number, into: DecodePiece): void {
    const memory = this.#step + this.#sequence * sequences + this.#kv * kv;
    into.ms = memory;
    into.slope = this.#kv;
    into.untilKv = Number.POSITIVE_INFINITY;
    if (!this.#max) return;
    const work = this.#workStep + this.#workToken * sequences;
    if (work <= memory) return;
    into.ms = work;
    into.slope = 0;
    into.untilKv = this.#kv > 0 ? kv + (work - memory) / this.#kv : Number.POSITIVE_INFINITY;
  }
}
