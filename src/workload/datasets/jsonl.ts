/**
 * Prompts as JSON lines: `{"prompt": "…"}`, or `{"messages": […], "tools": […]}` in OpenAI's form (text and image parts,
 * tool calls), with `output_tokens` (or `max_tokens`) and `input_tokens` where known. A line may also be a bare string.
 */
import { InputError, messageOf } from '../../base/errors.ts';
import { didYouMean } from '../../base/nearest.ts';
import type { ContentPart, Message, Prompt, ToolCall, ToolDefinition } from '../../core/request.ts';
import { type Dataset, type DatasetEntry, estimateTokens, Reservoir } from '../dataset.ts';
import { MAX_LENGTH } from '../lengths.ts';
import { type Chunks, eachLine } from '../lines.ts';
import { type DatasetOptions, MAX_PROMPT } from './options.ts';

type Json = Readonly<Record<string, unknown>>;
const ROLES = ['system', 'user', 'assistant', 'tool'] as const;
const PROMPT_KEYS = ['prompt', 'messages', 'text', 'question', 'instruction'];

export async function readJsonl(chunks: Chunks, what: string, options: DatasetOptions): Promise<Dataset> {
  const sample = new Reservoir<DatasetEntry>(options.sample, options.seed);
  let skipped = 0;
  await eachLine(chunks, what, (line, number) => {
    if (line.trim() === '') return;
    const entry = entryOf(line, `${what}:${number}`, options);
    if (entry === undefined || estimateTokens(entry.prompt) * 4 >= MAX_PROMPT) skipped++;
    else sample.add(entry);
  });
  if (sample.seen === 0) throw new InputError(`${what}: holds no prompt; nothing to ask`);
  return { name: what, entries: sample.items, available: sample.seen, skipped };
}

/** @returns undefined for an empty prompt. */
function entryOf(line: string, where: string, options: DatasetOptions): DatasetEntry | undefined {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (error) {
    throw new InputError(`${where}: not JSON: ${messageOf(error)}`);
  }
  if (typeof value === 'string') return value.trim() === '' ? undefined : plain(value);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new InputError(`${where}: neither an object nor a text`);
  }
  const json = value as Json;
  const prompt = promptOf(json, where);
  if (prompt.length === 0) return undefined;
  const tools = toolsOf(json.tools, where);
  const input = tokens(json.input_tokens ?? json.prompt_tokens, 'input_tokens', where);
  const output = options.outputOfFile
    ? tokens(json.output_tokens ?? json.max_completion_tokens ?? json.max_tokens, 'output_tokens', where)
    : undefined;
  return {
    prompt,
    estimatedTokens: input ?? estimateTokens(prompt),
    ...(input !== undefined && { inputTokens: input }),
    ...(output !== undefined && { outputTokens: output }),
    ...(tools && { tools }),
  };
}

const plain = (prompt: string): DatasetEntry => ({ prompt, estimatedTokens: estimateTokens(prompt) });

function promptOf(json: Json, where: string): Prompt {
  if (Array.isArray(json.messages)) return json.messages.map((m, i) => messageOf1(m, `${where}: messages[${i}]`));
  for (const key of ['prompt', 'text', 'question', 'instruction']) {
    const text = json[key];
    if (typeof text === 'string') return text.trim() === '' ? '' : text;
  }
  const key = Object.keys(json)[0] ?? '';
  throw new InputError(`${where}: no 'prompt' text and no 'messages' list${didYouMean(key, PROMPT_KEYS)}`);
}

function messageOf1(value: unknown, where: string): Message {
  if (typeof value !== 'object' || value === null) throw new InputError(`${where}: not an object`);
  const { role, content, tool_calls, tool_call_id } = value as Json;
  const known = role === 'developer' ? 'system' : ROLES.find((r) => r === role);
  if (!known) throw new InputError(`${where}: role is not one of ${ROLES.join(', ')}`);
  const calls = Array.isArray(tool_calls) ? tool_calls.map((call) => callOf(call, where)) : undefined;
  return {
    role: known,
    content: contentOf(content, where),
    ...(calls && { toolCalls: calls }),
    ...(typeof tool_call_id === 'string' && { toolCallId: tool_call_id }),
  };
}

function contentOf(content: unknown, where: string): Message['content'] {
  if (typeof content === 'string') return content;
  if (content === null || content === undefined) return '';
  if (!Array.isArray(content)) throw new InputError(`${where}: content is neither a text nor a list of parts`);
  return content.map((part: Json): ContentPart => {
    if (part?.type === 'text' && typeof part.text === 'string') return { type: 'text', text: part.text };
    const image = part?.image_url;
    const url = typeof image === 'string' ? image : (image as Json | undefined)?.url;
    if (part?.type === 'image_url' && typeof url === 'string') return { type: 'image', url };
    throw new InputError(`${where}: a part that is neither text nor image_url`);
  });
}

function callOf(call: unknown, where: string): ToolCall {
  const { id, function: f } = (call ?? {}) as Json;
  const { name, arguments: args } = (f ?? {}) as Json;
  if (typeof name !== 'string') throw new InputError(`${where}: a tool call without function.name`);
  return {
    id: typeof id === 'string' ? id : '',
    name,
    arguments: typeof args === 'string' ? args : JSON.stringify(args ?? {}),
  };
}

function toolsOf(tools: unknown, where: string): readonly ToolDefinition[] | undefined {
  if (!Array.isArray(tools) || tools.length === 0) return undefined;
  return tools.map((tool: Json) => {
    const { name, description, parameters } = (tool?.function ?? tool ?? {}) as Json;
    if (typeof name !== 'string') throw new InputError(`${where}: a tool without function.name`);
    return {
      name,
      ...(typeof description === 'string' && { description }),
      ...(typeof parameters === 'object' && parameters !== null && { parameters: parameters as Json }),
    };
  });
}

function tokens(value: unknown, key: string, where: string): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (Number.isInteger(value) && (value as number) >= 1 && (value as number) <= MAX_LENGTH) return value as number;
  throw new InputError(`${where}: ${key} is not a whole number from 1 to ${MAX_LENGTH}`);
}
