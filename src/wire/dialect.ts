/** What an API dialect is: how its frames are read, where it is served, how it is asked and how it is recognised. */
import type { StreamEvent } from '../core/stream.ts';
import type { FramingName } from './framing/frame.ts';
import type { Json } from './json.ts';
import type { Ask } from './request.ts';

export const DIALECT_NAMES = [
  'openai.chat',
  'openai.completions',
  'openai.responses',
  'anthropic.messages',
  'gemini.stream',
  'ollama.chat',
  'ollama.generate',
  'llamacpp.completion',
  'tgi.generate_stream',
  'sglang.generate',
  'triton.generate_stream',
] as const;

export type DialectName = (typeof DIALECT_NAMES)[number];

/** Reads one response; holds what must be known of its earlier frames. */
export interface Decoder {
  /**
   * True where an event that is one text and nothing else changes nothing for what comes after it when it is repeated with
   * another text, so that the repetition need not be parsed.
   */
  readonly repeatable?: boolean;
  /** @param event the SSE event name, when one was given. */
  event(json: Json, event?: string): StreamEvent;
  /** The stream ended cleanly: what the end itself means, if anything. */
  end(): StreamEvent | undefined;
}

export interface Dialect {
  readonly name: DialectName;
  /** How its streams are framed when nothing says otherwise. */
  readonly framing: FramingName;
  /** Where its streaming endpoint stands by default. */
  path(model: string): string;
  /** True for a path that serves this dialect. */
  serves(path: string): boolean;
  /** True when a stream's frame can only, or most likely, be this dialect's. */
  recognises(json: Json, event?: string): boolean;
  decoder(): Decoder;
  /** A whole answer that was not streamed (`json` may be an array): outputs by choice, finishes, usage. */
  whole(json: unknown): StreamEvent;
  /** The body of a request. */
  body(ask: Ask): Json;
}
