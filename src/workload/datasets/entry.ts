/**
 * One entry of a dataset, from any of the shapes people keep prompts in: a text under one of several names, a conversation,
 * a request as it would be sent (`body` of OpenAI's batch files). docs/workloads.md has the table.
 */
import { InputError } from '../../base/errors.ts';
import { didYouMean } from '../../base/nearest.ts';
import type { Message, Prompt } from '../../core/request.ts';
import { type DatasetEntry, type DatasetTurn, estimateTokens } from '../dataset.ts';
import { MAX_LENGTH } from '../lengths.ts';
import { isMessage, isObject, type Json, type LeftOut, messageFrom, textOf, toolsFrom } from './messages.ts';

/** A text to ask, or (of some) messages. In this order. */
const PROMPT_KEYS = [
  'prompt',
  'text',
  'question',
  'instruction',
  'query',
  'input',
  'inputs',
  'text_input',
  'user_prompt',
  'texts',
  'input_text',
] as const;
/** A conversation. */
export const CONVERSATION_KEYS = [
  'messages',
  'conversations',
  'items',
  'conversation',
  'dialog',
  'dialogue',
  'chat',
  'turns',
];
/** Where a text stands that is said before all else. */
const SYSTEM_KEYS = ['system', 'system_prompt', 'system_message'];
/** An answer, which tells how long answers are. */
const ANSWER_KEYS = ['completion', 'response', 'answer', 'output', 'chosen'];
const INPUT_COUNTS = ['input_tokens', 'prompt_tokens', 'prompt_tokens_count', 'prompt_len'];
const OUTPUT_COUNTS = [
  'output_tokens',
  'max_completion_tokens',
  'max_tokens',
  'max_output_tokens',
  'max_new_tokens',
  'output_tokens_count',
  'expected_output_len',
  'output_len',
  'output_length',
];
/** What holds a request inside a line. */
const ENVELOPES = ['body', 'request', 'payload', 'data', 'row'];

export interface EntryOptions {
  /** Take each answer's length from the file. */
  readonly outputOfFile: boolean;
  readonly leftOut: LeftOut;
}

/** Is this an entry by its keys? */
export function looksLikeEntry(value: unknown): boolean {
  if (!isObject(value)) return false;
  return (
    PROMPT_KEYS.some((key) => typeof value[key] === 'string') ||
    CONVERSATION_KEYS.some((key) => Array.isArray(value[key])) ||
    ENVELOPES.some((key) => isObject(value[key]) && looksLikeEntry(value[key]))
  );
}

/** @returns undefined for an entry that asks nothing. @throws InputError saying what is missing or wrong. */
export function entryFrom(value: unknown, where: string, options: EntryOptions): DatasetEntry | undefined {
  if (typeof value === 'string') return value.trim() === '' ? undefined : plain(value);
  if (Array.isArray(value)) {
    if (value.length > 0 && value.every(isMessage)) return conversation({}, value, where, options);
    throw new InputError(`${where}: a list that is no list of messages`);
  }
  if (!isObject(value)) throw new InputError(`${where}: neither an object nor a text`);
  const inner = ENVELOPES.map((key) => value[key]).find((found) => isObject(found) && looksLikeEntry(found));
  if (inner !== undefined && !looksLikeEntry({ ...value, body: 0, request: 0, payload: 0, data: 0, row: 0 })) {
    return entryFrom(inner, where, options);
  }
  for (const key of CONVERSATION_KEYS) {
    const list = value[key];
    if (Array.isArray(list)) return conversation(value, list, `${where}: ${key}`, options);
  }
  for (const key of PROMPT_KEYS) {
    const found = value[key];
    if (Array.isArray(found) && found.length > 0 && found.every(isMessage)) {
      return conversation(value, found, `${where}: ${key}`, options);
    }
    const text = typeof found === 'string' ? found : texts(found);
    if (text === undefined) continue;
    return text.trim() === '' ? undefined : asked(value, key, text, where, options);
  }
  if (typeof value.input_length === 'number') {
    throw new InputError(`${where}: lengths without a text, as in a trace; replay it with --replay`);
  }
  const near = Object.keys(value)
    .map((key) => didYouMean(key, [...PROMPT_KEYS, 'messages']))
    .find(Boolean);
  throw new InputError(`${where}: no 'prompt' text and no 'messages' list${near ?? ''}`);
}

/** A list of texts is one prompt of several paragraphs; token ids are not text. */
function texts(value: unknown): string | undefined {
  return Array.isArray(value) && value.length > 0 && value.every((x) => typeof x === 'string')
    ? value.join('\n')
    : undefined;
}

const plain = (prompt: string): DatasetEntry => ({ prompt, estimatedTokens: estimateTokens(prompt) });

/** A single question, with what stands before it and beside it. */
function asked(json: Json, key: string, text: string, where: string, options: EntryOptions): DatasetEntry {
  // Alpaca: what to do, and on what.
  const on =
    key === 'instruction' && typeof json.input === 'string' && json.input.trim() !== '' ? json.input : undefined;
  const question = on === undefined ? text : `${text}\n\n${on}`;
  const system = SYSTEM_KEYS.map((name) => json[name]).find((s) => typeof s === 'string' && s.trim() !== '');
  const images = pictures(json, options.leftOut);
  let prompt: Prompt = question;
  if (system !== undefined || images.length > 0) {
    const content = images.length === 0 ? question : [{ type: 'text' as const, text: question }, ...images];
    prompt = [
      ...(system === undefined ? [] : [{ role: 'system', content: system as string } as const]),
      { role: 'user', content },
    ];
  }
  const answer = ANSWER_KEYS.map((name) => json[name]).find((x) => typeof x === 'string' && x.trim() !== '');
  return {
    ...facts(json, prompt, answer === undefined ? undefined : estimateTokens(answer as string), where, options),
    prompt,
  };
}

/** Images beside a prompt: addresses, or images themselves. */
function pictures(json: Json, leftOut: LeftOut): { type: 'image'; url: string }[] {
  const found = json.image ?? json.images ?? json.image_url ?? json.image_files;
  if (found === undefined || found === null) return [];
  const list = (Array.isArray(found) ? found : [found]).map((x) => (isObject(x) ? (x.url ?? x.image_url) : x));
  return list.flatMap((url) => {
    if (typeof url === 'string' && /^(https?:|data:image\/)/i.test(url)) return [{ type: 'image' as const, url }];
    leftOut('images on a disk');
    return [];
  });
}

/**
 * A conversation. By itself a request of `messages` is asked as far as its last question, and of a recorded conversation
 * the first question; as a session, turn by turn. Answers before the first question are left out, and so are empty
 * questions with their answers.
 */
function conversation(
  json: Json,
  list: readonly unknown[],
  where: string,
  options: EntryOptions,
): DatasetEntry | undefined {
  const messages: Message[] = [];
  const system = SYSTEM_KEYS.map((name) => json[name]).find((s) => typeof s === 'string' && s.trim() !== '');
  if (system !== undefined) messages.push({ role: 'system', content: system as string });
  const images = pictures(json, options.leftOut);
  list.forEach((item, i) => {
    // Turns as bare texts, or as texts with a delay, are all the user's.
    const text = typeof item === 'string' ? item : isObject(item) && !isMessage(item) ? item.text : undefined;
    const message =
      typeof text === 'string'
        ? { role: 'user' as const, content: text }
        : messageFrom(item, `${where}[${i}]`, options.leftOut);
    if (message) messages.push(message);
  });
  const turns = turnsOf(messages, images);
  if (turns.length === 0) return undefined;
  const asked = json.messages === list || list === json.prompt || list === json.input ? turns : turns.slice(0, 1);
  const messagesAsked = asked.flatMap(({ said, answer }, i) =>
    i < asked.length - 1 && answer ? [...said, answer] : said,
  );
  const [only] = messagesAsked;
  const isText = asked !== turns && messagesAsked.length === 1 && typeof only?.content === 'string';
  const prompt: Prompt = isText ? (only.content as string) : messagesAsked;
  return {
    ...facts(json, prompt, asked.at(-1)?.outputTokens, where, options),
    prompt,
    turns: options.outputOfFile ? turns : turns.map(({ outputTokens: _, ...turn }) => turn),
  };
}

function turnsOf(messages: readonly Message[], images: readonly { type: 'image'; url: string }[]): DatasetTurn[] {
  const turns: DatasetTurn[] = [];
  let said: Message[] = [];
  let answer: Message | undefined;
  let hasQuestion = false;
  const close = (): void => {
    if (hasQuestion) {
      const tokens = answer && !isEmpty(answer) ? estimateTokens([answer]) : undefined;
      turns.push({ said, ...(answer && { answer }), ...(tokens !== undefined && { outputTokens: tokens }) });
      said = [];
    } else said = said.filter((m) => m.role === 'system');
    answer = undefined;
    hasQuestion = false;
  };
  for (const message of messages) {
    if (message.role === 'assistant') {
      // Two answers in a row: the second goes on with the first.
      if (answer) answer = { ...message, content: [textOf(answer.content), textOf(message.content)].join('\n') };
      else answer = message;
      continue;
    }
    if (answer) close();
    said.push(message);
    if (message.role === 'tool' || (message.role === 'user' && !isEmpty(message))) hasQuestion = true;
  }
  close();
  const first = turns[0]?.said.findIndex((m) => m.role === 'user') ?? -1;
  if (images.length > 0 && turns[0] && first >= 0) {
    const opening = turns[0].said.map(
      (m, i): Message => (i === first ? { ...m, content: [{ type: 'text', text: textOf(m.content) }, ...images] } : m),
    );
    turns[0] = { ...turns[0], said: opening };
  }
  return turns.map((turn) => ({ ...turn, said: turn.said.filter((m) => m.role !== 'user' || !isEmpty(m)) }));
}

const isEmpty = ({ content, toolCalls }: Message): boolean =>
  !toolCalls?.length && (typeof content === 'string' ? content.trim() === '' : content.length === 0);

function facts(json: Json, prompt: Prompt, answer: number | undefined, where: string, options: EntryOptions) {
  const tools = toolsFrom(json.tools ?? json.functions, where);
  const input = tokens(json, INPUT_COUNTS, where);
  const parameters = isObject(json.parameters) ? json.parameters : {};
  const output = options.outputOfFile
    ? (tokens(json, OUTPUT_COUNTS, where) ?? tokens(parameters, OUTPUT_COUNTS, where) ?? answer)
    : undefined;
  return {
    estimatedTokens: input ?? estimateTokens(prompt),
    ...(input !== undefined && { inputTokens: input }),
    ...(output !== undefined && { outputTokens: output }),
    ...(tools && { tools }),
  };
}

/** The first of the keys that holds a count. Nothing, 0 and −1 mean "not told". */
function tokens(json: Json, keys: readonly string[], where: string): number | undefined {
  for (const key of keys) {
    const value = json[key];
    if (value === undefined || value === null || value === 0 || value === -1) continue;
    if (Number.isInteger(value) && (value as number) >= 1 && (value as number) <= MAX_LENGTH) return value as number;
    throw new InputError(`${where}: ${key} is not a whole number from 1 to ${MAX_LENGTH}`);
  }
  return undefined;
}
