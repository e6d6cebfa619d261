/**
 * Messages of a conversation in the forms people keep them: OpenAI's chat and responses, Anthropic's parts, ShareGPT's
 * `from` and `value`. What cannot be sent (audio, a picture on a disk) is left out and named.
 */
import { InputError, oneLine } from '../../base/errors.ts';
import type { ContentPart, Message, ToolCall, ToolDefinition } from '../../core/request.ts';

export type Json = Readonly<Record<string, unknown>>;

export const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Who speaks, by any of the names in use. */
const ROLES: Readonly<Record<string, Message['role']>> = {
  system: 'system',
  developer: 'system',
  human: 'user',
  user: 'user',
  prompter: 'user',
  customer: 'user',
  gpt: 'assistant',
  assistant: 'assistant',
  chatgpt: 'assistant',
  'gpt-4': 'assistant',
  gpt4: 'assistant',
  bing: 'assistant',
  bard: 'assistant',
  claude: 'assistant',
  model: 'assistant',
  ai: 'assistant',
  bot: 'assistant',
  function_call: 'assistant',
  tool: 'tool',
  function: 'tool',
  function_response: 'tool',
  observation: 'tool',
  ipython: 'tool',
};

/** Told of what was left out, in a word: `audio`. */
export type LeftOut = (what: string) => void;

/** What makes a value a message: someone who speaks, and what. */
export const isMessage = (value: unknown): boolean =>
  isObject(value) &&
  (typeof value.role === 'string' || typeof value.from === 'string' || value.type === 'function_call_output');

/**
 * @returns undefined for a speaker nobody can be asked as.
 * @throws InputError for what is no message.
 */
export function messageFrom(value: unknown, where: string, leftOut: LeftOut): Message | undefined {
  if (!isObject(value)) throw new InputError(`${where}: not an object`);
  const { role, from } = value;
  const name = role ?? from;
  if (value.type === 'function_call_output') {
    return { role: 'tool', content: textOf(value.output), toolCallId: String(value.call_id ?? '') };
  }
  if (typeof name !== 'string') {
    throw new InputError(`${where}: a message without a role; expected system, user, assistant or tool`);
  }
  const speaker = name.trim().toLowerCase();
  const known = Object.hasOwn(ROLES, speaker) ? ROLES[speaker] : undefined;
  if (known === undefined) {
    if (role === undefined) {
      leftOut(`messages from '${oneLine(name, 20)}'`);
      return undefined;
    }
    throw new InputError(
      `${where}: role is '${oneLine(name, 20)}', not one of system, developer, user, assistant, tool, function`,
    );
  }
  const calls = callsOf(value, where);
  const id = value.tool_call_id ?? value.call_id ?? (known === 'tool' ? value.name : undefined);
  return {
    role: known,
    content: contentFrom(value.content ?? value.value ?? value.text, where, leftOut),
    ...(calls.length > 0 && { toolCalls: calls }),
    ...(known === 'tool' && { toolCallId: typeof id === 'string' ? id : '' }),
  };
}

/** Text, or parts of text and images. */
function contentFrom(content: unknown, where: string, leftOut: LeftOut): Message['content'] {
  if (typeof content === 'string') return content;
  if (content === null || content === undefined) return '';
  if (typeof content === 'number' || typeof content === 'boolean') return String(content);
  const parts = Array.isArray(content) ? content : [content];
  const out: ContentPart[] = [];
  for (const part of parts) {
    const found = partFrom(part, leftOut);
    if (found === null) throw new InputError(`${where}: content is neither a text nor a list of parts`);
    if (found) out.push(found);
  }
  if (out.every((part) => part.type === 'text')) return out.map((part) => (part as { text: string }).text).join('\n');
  return out;
}

/** @returns undefined where it was left out, null where it is no part at all. */
function partFrom(part: unknown, leftOut: LeftOut): ContentPart | undefined | null {
  if (typeof part === 'string') return { type: 'text', text: part };
  if (!isObject(part)) return null;
  const { type } = part;
  for (const key of ['text', 'input_text', 'output_text', 'refusal', 'thinking']) {
    if ((type === undefined || type === key || type === 'text') && typeof part[key] === 'string')
      return { type: 'text', text: part[key] };
  }
  if ((type === 'input_text' || type === 'output_text') && typeof part.text === 'string')
    return { type: 'text', text: part.text };
  if (type === 'tool_result') return { type: 'text', text: textOf(part.content) };
  const url = imageOf(part);
  if (url !== undefined) {
    if (/^(https?:|data:image\/)/i.test(url)) return { type: 'image', url };
    leftOut('images on a disk');
    return undefined;
  }
  if (typeof type !== 'string') return null;
  if (type !== 'tool_use') leftOut(`parts of type ${oneLine(type, 20)}`);
  return undefined;
}

/** The address of an image, or the image itself, in OpenAI's forms and Anthropic's. */
function imageOf(part: Json): string | undefined {
  const { type, source } = part;
  if (isObject(source) && type === 'image') {
    if (typeof source.url === 'string') return source.url;
    if (typeof source.data === 'string')
      return `data:${String(source.media_type ?? 'image/png')};base64,${source.data}`;
  }
  if (type !== undefined && type !== 'image_url' && type !== 'input_image' && type !== 'image') return undefined;
  const image = part.image_url ?? part.url ?? part.image;
  if (typeof image === 'string') return image;
  return isObject(image) && typeof image.url === 'string' ? image.url : undefined;
}

export function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  if (value === null || value === undefined) return '';
  if (Array.isArray(value)) return value.map((part) => (isObject(part) ? textOf(part.text) : textOf(part))).join('\n');
  return isObject(value) && typeof value.text === 'string' ? value.text : JSON.stringify(value);
}

/** `tool_calls`, the older `function_call`, Anthropic's `tool_use` parts. */
function callsOf(message: Json, where: string): ToolCall[] {
  const calls: unknown[] = Array.isArray(message.tool_calls) ? [...message.tool_calls] : [];
  if (isObject(message.function_call)) calls.push({ function: message.function_call });
  if (Array.isArray(message.content)) {
    for (const part of message.content) {
      if (isObject(part) && part.type === 'tool_use')
        calls.push({ id: part.id, function: { name: part.name, arguments: part.input } });
    }
  }
  return calls.map((call) => {
    const { id, function: inner, ...rest } = isObject(call) ? call : ({} as Json);
    const { name, arguments: args } = (isObject(inner) ? inner : rest) as Json;
    if (typeof name !== 'string') throw new InputError(`${where}: a tool call without function.name`);
    return {
      id: typeof id === 'string' ? id : '',
      name,
      arguments: typeof args === 'string' ? args : JSON.stringify(args ?? {}),
    };
  });
}

/** `tools`, the older `functions`, either as JSON in a text; OpenAI's form or Anthropic's. @throws InputError */
export function toolsFrom(value: unknown, where: string): readonly ToolDefinition[] | undefined {
  let list = value;
  if (typeof list === 'string') {
    if (list.trim() === '') return undefined;
    try {
      list = JSON.parse(list);
    } catch {
      throw new InputError(`${where}: tools is a text that is not JSON`);
    }
  }
  if (!Array.isArray(list) || list.length === 0) return undefined;
  return list.map((tool: unknown) => {
    const outer = isObject(tool) ? tool : ({} as Json);
    const { name, description, parameters, input_schema } = isObject(outer.function) ? outer.function : outer;
    if (typeof name !== 'string') throw new InputError(`${where}: a tool without function.name`);
    const schema = parameters ?? input_schema;
    return {
      name,
      ...(typeof description === 'string' && { description }),
      ...(isObject(schema) && { parameters: schema }),
    };
  });
}
