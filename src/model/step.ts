/**
 * What the simulator needs of an engine: how long one step of a batch takes, and how many tokens of KV fit. The ideal
 * closed form, a calibrated roofline and a fixed table for tests all stand behind `StepModel`.
 */
import type { Millis } from '../base/units.ts';

/**
 * One engine step. Sums over its sequences are enough; a batch never lists them. A mutable scratch object: the caller
 * fills it again for each step, the model must not keep it.
 */
export interface StepBatch {
  /** Sequences that decode, and Σ of the tokens of context each attends to (its new token included). */
  decodeSequences: number;
  decodeKv: number;
  /** Tokens the decoding sequences put through the model: equal to `decodeSequences`, more under speculation. */
  decodeTokens: number;
  /** Prefill chunks, their tokens in all, and how many of them complete a prompt (and so sample a token). */
  prefillSequences: number;
  prefillTokens: number;
  prefillCompletes: number;
  /** Σ of context lengths F at the chunks' ends: KV that attention reads. */
  prefillKv: number;
  /** Σ (F² − p²) over chunks from p to F: what causal attention computes. */
  prefillSquares: number;
}

export function emptyBatch(): StepBatch {
  return {
    decodeSequences: 0,
    decodeKv: 0,
    decodeTokens: 0,
    prefillSequences: 0,
    prefillTokens: 0,
    prefillCompletes: 0,
    prefillKv: 0,
    prefillSquares: 0,
  };
}

/** A linear piece of pure-decode step time over ΣKV. Mutable scratch, filled by `StepModel.decode`. */
export interface DecodePiece {
  /** Step time at the ΣKV asked for, ms. */
  ms: Millis;
  /** Growth for one more token of ΣKV, ms. */
  slope: number;
  /** The largest ΣKV the piece still holds at: beyond it a maximum switches, or a window saturates. */
  untilKv: number;
}

export interface StepModel {
  /** What the times rest on, printed wherever they appear: `ideal`, or what was fitted on what. */
  readonly label: string;
  /** Duration of any step, ms. */
  stepMs(batch: StepBatch): Millis;
  /**
   * Pure decode of `sequences` with `kv` tokens of context in all: the linear piece around it. `decode(...).ms` equals
   * `stepMs` of that batch exactly, so that a skipped run and a stepped one agree.
   */
  decode(sequences: number, kv: number, into: DecodePiece): void;
}
