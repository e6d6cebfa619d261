/** A profile as a step model for the simulator, which notices when it is asked beyond what was measured. */
import type { Millis } from '../base/units.ts';
import type { DecodePiece, StepBatch, StepModel } from '../model/step.ts';
import { FormStepModel } from './form-step.ts';
import { type Profile, valuesOfProfile } from './profile.ts';

export class ProfileStepModel implements StepModel {
  readonly label: string;
  readonly profile: Profile;
  readonly #form: FormStepModel;
  #mostSequences = 0;
  #longestContext = 0;
  #longestPrompt = 0;

  constructor(profile: Profile) {
    this.profile = profile;
    this.label = `calibrated (${profile.name})`;
    this.#form = new FormStepModel(profile.form, valuesOfProfile(profile), this.label, profile.stall_factor);
  }

  /** A request's way to the queue and back, ms: `FrontendCluster`'s delay. */
  get frontendMs(): Millis {
    return this.profile.coefficients.entry?.value ?? 0;
  }

  stepMs(b: StepBatch): Millis {
    if (b.decodeSequences > this.#mostSequences) this.#mostSequences = b.decodeSequences;
    if (b.decodeKv > this.#longestContext * b.decodeSequences) this.#longestContext = b.decodeKv / b.decodeSequences;
    if (b.prefillTokens > 0 && b.prefillKv > this.#longestPrompt * b.prefillSequences) {
      this.#longestPrompt = b.prefillKv / b.prefillSequences;
    }
    return this.#form.stepMs(b);
  }

  decode(sequences: number, kv: number, into: DecodePiece): void {
    if (sequences > this.#mostSequences) this.#mostSequences = sequences;
    if (kv > this.#longestContext * sequences) this.#longestContext = kv / sequences;
    this.#form.decode(sequences, kv, into);
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
