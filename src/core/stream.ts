/**
 * The meaning of one event of a response stream, whatever the dialect. `wire` makes these, the recorder folds them. One
 * event may carry output of several choices, a finish, usage and an error at once.
 */
import type { Millis } from '../base/units.ts';

/**
 * What kind of output a chunk is. `summary` is reasoning that the server summarised: its tokens were generated but not
 * delivered. `unclassified` is a non-empty delta of a kind we do not know: it is output, and said to be unknown.
 */
export type OutputKind = 'text' | 'reasoning' | 'summary' | 'refusal' | 'tool' | 'unclassified';

/** Stable small integers for columns and typed arrays. Only ever appended to. */
export const OUTPUT_KINDS: readonly OutputKind[] = ['text', 'reasoning', 'summary', 'refusal', 'tool', 'unclassified'];

/** True for output that is part of the answer, so that it may set `firstAnswer`. */
export function isAnswer(kind: OutputKind): boolean {
  return kind !== 'reasoning' && kind !== 'summary';
}

/** Output of one choice in one event: one chunk. */
export interface OutputPart {
  /** Index of the choice, 0 in a single-choice stream. */
  readonly choice: number;
  readonly kind: OutputKind;
  /** Tokens delivered by this chunk where the stream says so (token ids, continuous usage); absent when unknown. */
  readonly tokens?: number;
  /** The visible text, for tokenizers and `inspect`; absent where there is none (token ids alone). */
  readonly text?: string;
  /** In `unclassified` output, where in the event it stood: `delta.foo`. */
  readonly field?: string;
}

/** One choice came to its end. */
export interface Finish {
  readonly choice: number;
  /** The server's own word: `stop`, `length`, `end_turn`, `MAX_TOKENS`, `eos_token`, … */
  readonly reason: string;
  /** End tokens that usage counts and nobody saw (an EOS of vLLM or SGLang). */
  readonly unseenEndTokens?: number;
}

/** Tokens by the server's own count, cumulative: a later one replaces an earlier one field by field, never adds to it. */
export interface Usage {
  readonly input?: number;
  /** All generated tokens, reasoning included. */
  readonly output?: number;
  /** Of `output`, tokens of reasoning. */
  readonly reasoning?: number;
  /** Of `input`, tokens found in a prefix cache. */
  readonly cachedInput?: number;
}

/** An error told inside the stream, or a body that is an error. */
export interface StreamError {
  readonly message: string;
  /** The server's own type or status word. */
  readonly type?: string;
  /** HTTP-like code, when one is given. */
  readonly code?: number;
}

/** Times the server says of itself, on its own clock: evidence, never mixed into client figures. Milliseconds. */
export interface ServerTimes {
  readonly queue?: Millis;
  readonly prefill?: Millis;
  readonly decode?: Millis;
  readonly e2e?: Millis;
  /** Loading the model, where the server does so on demand. */
  readonly load?: Millis;
}

export interface StreamEvent {
  /** Chunks in this event, at most one a choice. Empty for role, usage, ping, progress and framing events. */
  readonly outputs: readonly OutputPart[];
  readonly finishes?: readonly Finish[];
  readonly usage?: Usage;
  readonly error?: StreamError;
  /** The dialect's own terminal event (`message_stop`, `response.completed`, `done:true`). `[DONE]` is not one. */
  readonly terminal?: boolean;
  /** The end was implied by a clean end of a dialect that marks none: truncation cannot be told there. */
  readonly impliedEnd?: boolean;
  /** The body was one whole answer, not a stream: nothing inside it can be timed. */
  readonly whole?: boolean;
  /** The frame could not be understood: why. */
  readonly malformed?: string;
  readonly model?: string;
  readonly server?: ServerTimes;
}

/** An event that means nothing for timing: pings, roles, framing. */
export const NO_MEANING: StreamEvent = { outputs: [] };
