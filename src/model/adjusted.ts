/** Step models around another: pipeline stages, and attention that waits for the longest sequences. */
import type { Millis } from '../base/units.ts';
import { type Deployment, stages } from './deployment.ts';
import { type DecodePiece, emptyBatch, type StepBatch, type StepModel } from './step.ts';

/** Latency of handing activations to the next stage, ms: one launch and one hop. */
const SEND_MS = 0.02;

/**
 * A pipeline of n stages with n microbatches under way: a token passes all stages, each with 1/n of the layers and of the
 * batch, so a step of batch B takes what all layers take for B/n, and n sends of the microbatch's activations. Between
 * stages of unequal work, and while the pipeline fills, it is longer: this is the steady state of an even one.
 */
export class PipelinedStepModel implements StepModel {
  readonly label: string;
  readonly #inner: StepModel;
  readonly #n: number;
  /** ms a token. */
  readonly #sendMs: number;
  readonly #batch: StepBatch = emptyBatch();

  /** @param inner the step of one stage's devices with all the layers. */
  constructor(inner: StepModel, d: Deployment) {
    this.#inner = inner;
    this.#n = stages(d);
    this.label = `${inner.label}, ${this.#n} pipeline stages`;
    this.#sendMs = (2000 * d.model.hidden) / d.accelerator.link;
  }

  stepMs(b: StepBatch): Millis {
    const n = this.#n;
    if (b.decodeSequences + b.prefillTokens === 0) return 0;
    const micro = this.#batch;
    micro.decodeSequences = Math.ceil(b.decodeSequences / n);
    micro.decodeTokens = b.decodeSequences > 0 ? (b.decodeTokens / b.decodeSequences) * micro.decodeSequences : 0;
    micro.decodeKv = b.decodeKv / n;
    micro.prefillSequences = b.prefillSequences / n;
    micro.prefillTokens = b.prefillTokens / n;
    micro.prefillCompletes = b.prefillCompletes / n;
    micro.prefillKv = b.prefillKv / n;
    micro.prefillSquares = b.prefillSquares / n;
    return this.#inner.stepMs(micro) + this.#sends(micro.decodeTokens + micro.prefillTokens);
  }

  decode(sequences: number, kv: number, into: DecodePiece): void {
    const micro = Math.ceil(sequences / this.#n);
    this.#inner.decode(micro, kv / this.#n, into);
    into.ms += this.#sends(micro);
    into.slope /= this.#n;
    into.untilKv *= this.#n;
  }

  #sends(tokens: number): Millis {
    return this.#n * (SEND_MS + this.#sendMs * tokens);
  }
}

/**
 * Decode attention follows the longest sequences in part, where a kernel gives each sequence its own processors: the time of
 * reading KV is `skew` times that of an even batch. 1, the default, is a kernel that splits long sequences.
 */
export class SkewedStepModel implements StepModel {
  readonly label: string;
  readonly #inner: StepModel;
  readonly #more: number;
  readonly #piece: DecodePiece = { ms: 0, slope: 0, untilKv: 0 };

  constructor(inner: StepModel, skew: number) {
    this.#inner = inner;
    this.#more = skew - 1;
    this.label = `${inner.label}, KV reads × ${skew}`;
  }

  stepMs(b: StepBatch): Millis {
    if (b.decodeSequences === 0) return this.#inner.stepMs(b);
    this.#inner.decode(b.decodeSequences, b.decodeKv, this.#piece);
    return this.#inner.stepMs(b) + this.#more * this.#piece.slope * b.decodeKv;
  }

  decode(sequences: number, kv: number, into: DecodePiece): void {
    this.#inner.decode(sequences, kv, into);
    into.ms += this.#more * into.slope * kv;
    into.slope *= 1 + this.#more;
  }
}
