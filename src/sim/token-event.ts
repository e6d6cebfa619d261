/** The stream events a simulated engine sends. Tokens all look alike, so one event a choice serves every stream. */
import type { RequestSpec } from '../core/request.ts';
import type { ServerTimes, StreamEvent } from '../core/stream.ts';

const TOKENS: StreamEvent[] = [];

/** One token of one choice. */
export function TOKEN(choice: number): StreamEvent {
  return (TOKENS[choice] ??= Object.freeze({
    outputs: Object.freeze([Object.freeze({ choice, kind: 'text', tokens: 1, text: ' token' })]),
  } as StreamEvent));
}

/** The last token of every choice, with its finish, usage and the server's own times. */
export function finalEvent(spec: RequestSpec, tokens: number, cached = 0, server?: ServerTimes): StreamEvent {
  const choices = Math.max(1, spec.choices);
  const reason = tokens >= spec.outputTokens ? 'length' : 'stop';
  const each = Array.from({ length: choices }, (_, choice) => choice);
  return {
    outputs: each.map((choice) => ({ choice, kind: 'text' as const, tokens: 1, text: ' token' })),
    finishes: each.map((choice) => ({ choice, reason })),
    usage: { input: spec.inputTokens, output: tokens * choices, ...(cached > 0 && { cachedInput: cached }) },
    ...(server && { server }),
  };
}
