/** A profile as a step model for the simulator, which notices when it is asked beyond what was measured. */
import type { Millis } from '../base/units.ts';
import type { DecodePiece, StepBatch, StepModel } from '../model/step.ts';
import type { Profile } from './profile.ts';

export class ProfileStepModel implements StepModel {
  readonly label: string;
  readonly profile: Profile;
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
  #mostSequences = 0;
  #longestContext = 0;
  #longestPrompt = 0;

  constructor(profile: Profile) {
    const { coefficients: c, stall_factor: f } = profile;
    const of = (name: keyof typeof c, per = 1): number => (f * (c[name]?.value ?? 0)) / per;
    this.profile = profile;
    this.label = `calibrated (${profile.name})`;
    this.#max = profile.form === 'max';
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

  /** A request's way to the queue and back, ms: `FrontendCluster`'s delay. */
  get frontendMs(): Millis {
    return this.profile.coefficients.entry?.value ?? 0;
  }

  stepMs(b: StepBatch): Millis {
    if (b.decodeSequences + b.prefillTokens === 0) return 0;
    if (b.decodeSequences > this.#mostSequences) this.#mostSequences = b.decodeSequences;
    if (b.decodeKv > this.#longestContext * b.decodeSequences) this.#longestContext = b.decodeKv / b.decodeSequences;
    const memory = this.#step + this.#sequence * b.decodeSequences + this.#kv * b.decodeKv;
    if (b.prefillTokens > 0) {
      if (b.prefillKv > this.#longestPrompt * b.prefillSequences)
        this.#longestPrompt = b.prefillKv / b.prefillSequences;
    }
    if (this.#max) {
      const work =
        this.#workStep + this.#workToken * (b.decodeTokens + b.prefillTokens) + this.#workSquare * b.prefillSquares;
      return Math.max(memory, work);
    }
    if (b.prefillTokens === 0) return memory;
    return memory + this.#prefillStep + this.#prefillToken * b.prefillTokens + this.#prefillSquare * b.prefillSquares;
  }

  decode(sequences: number, kv: number, into: DecodePiece): void {
    if (sequences > this.#mostSequences) this.#mostSequences = sequences;
    if (kv > this.#longestContext * sequences) this.#longestContext = kv / sequences;
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

  /** In what respects it was asked beyond its data since it was made; a clause each. */
  beyond(): string[] {
    const { sequences, context, prompt } = this.profile.range;
    const out: string[] = [];
    if (this.#mostSequences > sequences[1]) {
      out.push(`batches of ${this.#mostSequences} sequences, where ${sequences[1]} was the most measured`);
    }
    // Means over a batch were asked, single sequences measured: the comparison errs towards silence, not alarm.
    if (this.#longestContext > context[1] * 1.02) {
      out.push(`contexts of ${Math.round(this.#longestContext)} tokens, where ${context[1]} was the longest measured`);
    }
    if (this.#longestPrompt > prompt[1] * 1.02) {
      out.push(`prompts of ${Math.round(this.#longestPrompt)} tokens, where ${prompt[1]} was the longest measured`);
    }
    return out;
  }
}
