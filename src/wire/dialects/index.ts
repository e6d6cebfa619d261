/** The one table of dialects, and how the right one is found. */
import { InputError } from '../../base/errors.ts';
import { didYouMean } from '../../base/nearest.ts';
import type { RequestSpec } from '../../core/request.ts';
import { DIALECT_NAMES, type Dialect, type DialectName } from '../dialect.ts';
import { isObject, type Json, textOf } from '../json.ts';
import { askOf, laidOver, type RequestOptions } from '../request.ts';
import { anthropicMessages } from './anthropic.ts';
import { geminiStream } from './gemini.ts';
import { llamacppCompletion } from './llamacpp.ts';
import { ollamaChat, ollamaGenerate } from './ollama.ts';
import { openaiChat } from './openai-chat.ts';
import { openaiCompletions } from './openai-completions.ts';
import { openaiResponses } from './openai-responses.ts';
import { sglangGenerate } from './sglang.ts';
import { tgiGenerateStream } from './tgi.ts';
import { tritonGenerateStream } from './triton.ts';

export const DIALECTS: Readonly<Record<DialectName, Dialect>> = {
  'openai.chat': openaiChat,
  'openai.completions': openaiCompletions,
  'openai.responses': openaiResponses,
  'anthropic.messages': anthropicMessages,
  'gemini.stream': geminiStream,
  'ollama.chat': ollamaChat,
  'ollama.generate': ollamaGenerate,
  'llamacpp.completion': llamacppCompletion,
  'tgi.generate_stream': tgiGenerateStream,
  'sglang.generate': sglangGenerate,
  'triton.generate_stream': tritonGenerateStream,
};

/** Order in which a frame is offered: those that recognise by a mark of their own first. */
const BY_MARK: readonly Dialect[] = [
  openaiResponses,
  anthropicMessages,
  openaiCompletions,
  openaiChat,
  geminiStream,
  sglangGenerate,
  tgiGenerateStream,
  ollamaChat,
  ollamaGenerate,
  tritonGenerateStream,
  llamacppCompletion,
];

/** The name as given, checked. @throws InputError with the nearest name. */
export function dialectNamed(name: string): DialectName {
  if ((DIALECT_NAMES as readonly string[]).includes(name)) return name as DialectName;
  throw new InputError(
    `unknown dialect '${name}'${didYouMean(name, DIALECT_NAMES)}; one of: ${DIALECT_NAMES.join(', ')}`,
  );
}

/** The dialect whose endpoint this URL or path is, if it is one's. */
export function dialectOfPath(url: string): DialectName | undefined {
  const path = url.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '').replace(/[?#].*$/s, '');
  return DIALECT_NAMES.find((name) => DIALECTS[name].serves(path));
}

/** Where a dialect's streaming endpoint stands by default, with a query where one is needed. */
export function defaultPath(dialect: DialectName, model = 'default'): string {
  return DIALECTS[dialect].path(model);
}

/** The dialect a frame's JSON shows, if it shows one. Errors of unmistakable shape count. */
export function detectDialect(json: unknown, event?: string): DialectName | undefined {
  const first: unknown = Array.isArray(json) ? json[0] : json;
  return isObject(first) ? BY_MARK.find((dialect) => dialect.recognises(first, event))?.name : undefined;
}

/**
 * The dialect that a bare error most likely belongs to, when nothing else was seen: the OpenAI shape, unless its error is
 * a plain text, which Ollama sends as a line and Triton as an event.
 */
export function dialectOfError(json: Json, ndjson: boolean): DialectName | undefined {
  if (textOf(json.error) !== undefined) return ndjson ? 'ollama.chat' : 'triton.generate_stream';
  return json.error !== undefined || json.object === 'error' || json.detail !== undefined ? 'openai.chat' : undefined;
}

/** The body of a request, to be sent as JSON. @throws InputError when the dialect cannot ask for several choices. */
export function requestBody(dialect: DialectName | Dialect, spec: RequestSpec, options: RequestOptions): Json {
  const { name, body } = typeof dialect === 'string' ? DIALECTS[dialect] : dialect;
  if (spec.choices > 1 && !SEVERAL.has(name)) {
    throw new InputError(`${name} cannot ask for ${spec.choices} choices in one request; use n=1 or another dialect`);
  }
  const made = body(askOf(spec, options));
  return options.extra === undefined ? made : laidOver(made, options.extra);
}

const SEVERAL: ReadonlySet<DialectName> = new Set([
  'openai.chat',
  'openai.completions',
  'gemini.stream',
  'sglang.generate',
]);
