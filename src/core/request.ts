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
  /**
   * Hashes of the prompt's leading blocks of 16 tokens, for prefix caches (simulated, or replayed from a trace). Each covers
   * all that comes before it: two prompts have the same block k exactly when their texts agree up to its end.
   */
  readonly prefixBlocks?: readonly number[];
  /** Tools the model may call. */
  readonly tools?: readonly ToolDefinition[];
}

/** Tokens one hash of `prefixBlocks` stands for. */
export const PREFIX_BLOCK_TOKENS = 16;

/** Text for a completion, messages for a chat. */
export type Prompt = string | readonly Message[];

export interface Message {
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
  readonly content: string | readonly ContentPart[];
  /** Calls an assistant message made. */
  readonly toolCalls?: readonly ToolCall[];
  /** The call a tool message answers. */
  readonly toolCallId?: string;
}

export type ContentPart =
  | { readonly type: 'text'; readonly text: string }
  /** An `https:` URL, or the image itself as a base64 `data:` URL. */
  | { readonly type: 'image'; readonly url: string };

export interface ToolDefinition {
  readonly name: string;
  readonly description?: string;
  /** JSON Schema of the arguments. */
  readonly parameters?: Readonly<Record<string, unknown>>;
}

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** Arguments as JSON text. */
  readonly arguments: string;
}

/** The text of a message, its images left out. */
export function textOfContent(content: Message['content']): string {
  if (typeof content === 'string') return content;
  return content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
}

/** A request and the moment the arrival process says it should start. */
export interface Offer {
  readonly at: Millis;
  readonly spec: RequestSpec;
  /** Not to be sent, and why in one word: a turn whose predecessor failed. It is offered, and ends as `unsent`. */
  readonly unsent?: string;
}

/** Why the turns after one that failed are not sent. */
export const PREDECESSOR_FAILED = 'predecessor-failed';

/**
 * What arrives when. Offers come in non-decreasing `at`; `ended` hands back the offers that the end of an operation
 * releases (the next turn of a session, the next request of a closed loop), none in a plain open loop.
 */
export interface Workload {
  next(): Offer | undefined;
  ended(operation: number, t: Millis, ok: boolean): readonly Offer[];
}
