/** What a request body is made from. The bodies themselves are the dialects' to write. */
import { type Message, type RequestSpec, textOfContent } from '../core/request.ts';
import { isObject, type Json } from './json.ts';
import { refuseParts } from './messages.ts';

export interface RequestOptions extends BodyOptions {
  readonly model: string;
}

export interface BodyOptions {
  /** Ask for the final usage where it must be asked for. Default true. */
  readonly usage?: boolean;
  /** Ask for cumulative counts on every chunk (vLLM, SGLang), or per-chunk timings (llama.cpp). Default false. */
  readonly continuousUsage?: boolean;
  /** Also ask for at least as many tokens as at most (`min_tokens`), for servers that do not know `ignore_eos`. */
  readonly minTokens?: boolean;
  /** The name of the output limit in OpenAI chat; newer OpenAI models accept only the second. Default `max_tokens`. */
  readonly maxTokensName?: 'max_tokens' | 'max_completion_tokens';
  /** Further fields, laid over the body last; objects are merged, anything else replaces, `null` removes the field. */
  readonly extra?: Json;
}

/** What a dialect is asked to write down. */
export interface Ask {
  readonly spec: RequestSpec;
  readonly model: string;
  readonly usage: boolean;
  readonly continuousUsage: boolean;
  readonly minTokens: boolean;
  readonly maxTokensName: 'max_tokens' | 'max_completion_tokens';
}

export function askOf(spec: RequestSpec, options: RequestOptions): Ask {
  return {
    spec,
    model: options.model,
    usage: options.usage ?? true,
    continuousUsage: options.continuousUsage ?? false,
    minTokens: options.minTokens ?? false,
    maxTokensName: options.maxTokensName ?? 'max_tokens',
  };
}

/** The prompt as chat messages. @throws when the spec has none (a simulation's has not). */
export function messagesOf(spec: RequestSpec): readonly Message[] {
  const { prompt } = spec;
  if (prompt === undefined) throw new Error(`internal: operation ${spec.operation} has no prompt to send`);
  return typeof prompt === 'string' ? [{ role: 'user', content: prompt }] : prompt;
}

/**
 * The prompt as one text; several messages are set one under another, each under its role.
 * @throws InputError for images and tools, which have no place in it.
 */
export function textPromptOf(spec: RequestSpec): string {
  const { prompt } = spec;
  refuseParts(spec);
  if (typeof prompt === 'string') return prompt;
  const messages = messagesOf(spec);
  if (messages.length === 1) return textOfContent(messages[0]!.content);
  return messages.map((m) => `${m.role}: ${textOfContent(m.content)}`).join('\n\n');
}

/** `extra` laid over `body`, as `RequestOptions.extra` says. */
export function laidOver(body: Json, extra: Json): Json {
  const out: Record<string, unknown> = { ...body };
  for (const [key, value] of Object.entries(extra)) {
    const old = out[key];
    if (value === null) delete out[key];
    else out[key] = isObject(old) && isObject(value) ? laidOver(old, value) : value;
  }
  return out;
}
