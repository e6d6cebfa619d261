/** What is asked of an engine, and when. */
import type { Millis } from '../base/units.ts';

/** One attempt at one operation: everything an engine, real or simulated, needs to serve it. Plain data. */
export interface RequestSpec {
  /** Index of the operation in the run's seeded sequence of offers; with the seed it names the same operation anywhere. */
  readonly operation: number;
  /** 0 for the first attempt, then counted up by retries and hedges. */
  readonly attempt: number;
  /** Traffic class; classes may have their own contracts. `default` when the workload names none. */
  readonly class: string;
  /** Multi-turn session and the turn within it. */
  readonly session?: number;
  readonly turn?: number;
  /** Prompt tokens asked for. */
  readonly inputTokens: number;
  /** The most output tokens the server may generate, and with `ignoreEos` exactly how many. */
  readonly outputTokens: number;
  /** Choices asked for (`n`), 1 or more. */
  readonly choices: number;
  readonly stream: boolean;
  /** Ask the engine not to stop at an end token, where it can be asked (vLLM, SGLang, llama.cpp). */
  readonly ignoreEos: boolean;
  /** What to send. Absent in simulation, where only lengths matter. */
  readonly prompt?: Prompt;
  /** Hashes of the prompt's leading blocks, for prefix caches (simulated, or replayed from a trace). */
  readonly prefixBlocks?: readonly number[];
}

/** Text for a completion, messages for a chat. */
export type Prompt = string | readonly Message[];

export interface Message {
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
  readonly content: string;
}

/** A request and the moment the arrival process says it should start. */
export interface Offer {
  readonly at: Millis;
  readonly spec: RequestSpec;
}

/**
 * What arrives when. Offers come in non-decreasing `at`; `ended` hands back the offers that the end of an operation
 * releases (the next turn of a session, the next request of a closed loop), none in a plain open loop.
 */
export interface Workload {
  next(): Offer | undefined;
  ended(operation: number, t: Millis, ok: boolean): readonly Offer[];
}
