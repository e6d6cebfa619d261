/** Reads the body of `/v1/chat/completions`, `/v1/completions` and `/tokenize`, refusing what vLLM refuses. */
import { badRequest, invalidField, invalidJson, noModel, Problem, tooLong } from './problem.ts';
import { PromptScan } from './prompt-scan.ts';
import { splitTokens } from './words.ts';

/** Which API the request came by; it decides the frames. */
export type Api = 'chat' | 'completions';

/** A request that will be served. */
export interface Asked {
  readonly api: Api;
  readonly promptTokens: number;
  /** Tokens every choice will generate, the end token included where there is one. */
  readonly outputTokens: number;
  /** The last of them is an end token: counted, not shown. */
  readonly endToken: boolean;
  /** `max_tokens` as given, for the metrics. */
  readonly maxTokens: number | undefined;
  readonly choices: number;
  readonly stream: boolean;
  readonly includeUsage: boolean;
  readonly continuousUsage: boolean;
  readonly tokenIds: boolean;
  readonly ignoreEos: boolean;
  /** Hashes of the prompt's leading blocks, for the prefix cache. */
  readonly prefixBlocks: readonly number[];
}

/** What the served model can do. */
export interface ServedModel {
  readonly name: string;
  /** Prompt and output together. */
  readonly maxModelLen: number;
  /** Tokens of an answer whose length the request leaves open, its end token included. */
  readonly answerTokens: number;
}

const COMPLETIONS_DEFAULT_MAX_TOKENS = 16; // the API's own default
const MAX_CHOICES = 128;
type Fields = Readonly<Record<string, unknown>>;

export function parseJson(text: string): Fields {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const at = /position (\d+)/.exec(error instanceof Error ? error.message : '')?.[1];
    throw invalidJson(at === undefined ? 0 : Number(at));
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new Problem(
      400,
      'Bad Request',
      "[{'type': 'model_attributes_type', 'loc': ('body',), 'msg': 'Input should be a valid dictionary or object to extract fields from'}]",
    );
  }
  return value as Fields;
}

export function checkModel(body: Fields, served: ServedModel): void {
  const model = body.model;
  if (model === undefined || model === null || model === served.name) return;
  if (typeof model !== 'string') throw invalidField('string_type', 'model', 'Input should be a valid string');
  throw noModel(model);
}

/** @throws Problem */
export function parseAsked(api: Api, body: Fields, served: ServedModel): Asked {
  const prompt = new PromptScan();
  if (api === 'chat') scanMessages(body.messages, prompt);
  else scanPrompt(body.prompt, prompt);
  const promptTokens = prompt.tokens;
  checkModel(body, served);
  const stream = flag(body, 'stream');
  const options = body.stream_options;
  if (options !== undefined && options !== null) {
    if (typeof options !== 'object')
      throw invalidField('dict_type', 'stream_options', 'Input should be a valid dictionary');
    if (!stream) throw badRequest('Stream options can only be defined when `stream=True`.', 'stream_options');
  }
  const streamOptions = (options ?? {}) as Fields;
  const choices = integer(body, 'n') ?? 1;
  if (choices < 1) throw badRequest(`n must be at least 1, got ${choices}.`, 'n');
  if (choices > MAX_CHOICES) throw badRequest(`n must be at most ${MAX_CHOICES}, got ${choices}.`, 'n');

  const asked = (api === 'chat' ? integer(body, 'max_completion_tokens') : undefined) ?? integer(body, 'max_tokens');
  if (asked !== undefined && asked < 1) throw badRequest(`max_tokens must be at least 1, got ${asked}.`, 'max_tokens');
  const maxTokens = asked ?? (api === 'completions' ? COMPLETIONS_DEFAULT_MAX_TOKENS : undefined);
  const room = served.maxModelLen - promptTokens;
  if (room < 1 || (maxTokens ?? 1) > room)
    throw tooLong(served.maxModelLen, promptTokens, room < 1 ? undefined : maxTokens);

  const minTokens = integer(body, 'min_tokens') ?? 0;
  if (minTokens < 0) throw badRequest(`min_tokens must be greater than or equal to 0, got ${minTokens}.`, 'min_tokens');
  if (maxTokens !== undefined && minTokens > maxTokens) {
    throw badRequest(
      `min_tokens must be less than or equal to max_tokens=${maxTokens}, got ${minTokens}.`,
      'min_tokens',
    );
  }
  const includeUsage = flag(streamOptions, 'include_usage');
  const ignoreEos = flag(body, 'ignore_eos');
  // A length that was asked for is always used up. Only an answer left open ends by itself, unless it may not.
  const open = maxTokens === undefined && !ignoreEos;
  const answer = Math.max(served.answerTokens, minTokens);
  return {
    api,
    promptTokens,
    outputTokens: maxTokens ?? (ignoreEos ? room : Math.min(answer, room)),
    endToken: open && answer <= room,
    maxTokens,
    choices,
    stream,
    includeUsage,
    continuousUsage: flag(streamOptions, 'continuous_usage_stats') && includeUsage, // alone it does nothing
    tokenIds: flag(body, 'return_token_ids'),
    ignoreEos,
    prefixBlocks: prompt.blocks,
  };
}

/** The pieces of the prompt or messages of a `/tokenize` body. */
export function parseTokenize(body: Fields, served: ServedModel): string[] {
  checkModel(body, served);
  if (body.messages !== undefined) return messageTexts(body.messages).flatMap(splitTokens);
  if (typeof body.prompt !== 'string') throw invalidField('missing', 'prompt', 'Field required');
  return splitTokens(body.prompt);
}

export function parseDetokenize(body: Fields, served: ServedModel): number[] {
  checkModel(body, served);
  const tokens = body.tokens;
  if (!isTokenIds(tokens)) throw invalidField('list_type', 'tokens', 'Input should be a valid list of integers');
  return tokens;
}

function scanMessages(messages: unknown, into: PromptScan): void {
  for (const text of messageTexts(messages)) into.text(text);
}

function messageTexts(messages: unknown): string[] {
  if (messages === undefined) throw invalidField('missing', 'messages', 'Field required');
  if (!Array.isArray(messages)) throw invalidField('list_type', 'messages', 'Input should be a valid list');
  if (messages.length === 0) throw badRequest('messages must not be empty', 'messages');
  const texts: string[] = [];
  for (const message of messages as readonly Fields[]) {
    if (typeof message !== 'object' || message === null || typeof message.role !== 'string') {
      throw invalidField('missing', 'messages.role', 'Field required');
    }
    const content = message.content;
    if (typeof content === 'string') texts.push(content);
    else if (Array.isArray(content)) {
      for (const part of content as readonly Fields[]) if (typeof part?.text === 'string') texts.push(part.text);
    }
  }
  return texts;
}

function scanPrompt(given: unknown, into: PromptScan): void {
  if (given === undefined || given === null) throw invalidField('missing', 'prompt', 'Field required');
  const list = Array.isArray(given) && !isTokenIds(given);
  if (list && given.length > 1) throw badRequest('The emulator takes one prompt a request.', 'prompt');
  const prompt: unknown = list ? given[0] : given;
  if (typeof prompt === 'string') into.text(prompt);
  else if (isTokenIds(prompt)) into.ids(prompt);
  else throw invalidField('string_type', 'prompt', 'Input should be a valid string');
}

function isTokenIds(value: unknown): value is number[] {
  return Array.isArray(value) && value.length > 0 && value.every((x) => Number.isInteger(x));
}

function integer(body: Fields, field: string): number | undefined {
  const value = body[field];
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'number' && Number.isSafeInteger(value)) return value;
  throw invalidField('int_parsing', field, 'Input should be a valid integer');
}

function flag(body: Fields, field: string): boolean {
  const value = body[field];
  if (value === undefined || value === null) return false;
  if (typeof value === 'boolean') return value;
  throw invalidField('bool_parsing', field, 'Input should be a valid boolean');
}
