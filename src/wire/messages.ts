/** Messages, images and tools of a request in the words of each API. */
import { InputError } from '../base/errors.ts';
import {
  type ContentPart,
  type Message,
  type RequestSpec,
  type ToolDefinition,
  textOfContent,
} from '../core/request.ts';
import type { Json } from './json.ts';

type Image = Extract<ContentPart, { type: 'image' }>;

/** An image that is in the request itself. */
interface InlineImage {
  readonly mime: string;
  readonly base64: string;
}

const imagesOf = (content: Message['content']): readonly Image[] =>
  typeof content === 'string' ? [] : content.filter((part) => part.type === 'image');

/** True when some message holds an image. */
export function hasImages(spec: RequestSpec): boolean {
  const { prompt } = spec;
  return Array.isArray(prompt) && (prompt as readonly Message[]).some((m) => imagesOf(m.content).length > 0);
}

/** @throws InputError for a request whose images or tools a text-only API cannot take. */
export function refuseParts(spec: RequestSpec): void {
  const what = hasImages(spec) ? 'images' : spec.tools?.length ? 'tool definitions' : undefined;
  if (what === undefined) return;
  throw new InputError(
    `the workload has ${what}, which an API of plain text does not take; use a chat endpoint (…/v1/chat/completions)`,
  );
}

function inlineOf(url: string): InlineImage | undefined {
  const m = /^data:([^;,]+);base64,/.exec(url);
  return m ? { mime: m[1] as string, base64: url.slice(m[0].length) } : undefined;
}

/** @throws InputError for an image that is only named by its address. */
function mustInline(url: string, dialect: string): InlineImage {
  const inline = inlineOf(url);
  if (inline) return inline;
  throw new InputError(
    `the workload names an image by its address, which ${dialect} does not take; give it as a base64 data: URL`,
  );
}

// OpenAI chat ------------------------------------------------------------------------------------------------------

export function openaiMessages(messages: readonly Message[]): readonly Json[] {
  return messages.map(({ role, content, toolCalls, toolCallId }) => ({
    role,
    content: typeof content === 'string' ? content : content.map(openaiPart),
    ...(toolCalls?.length && {
      tool_calls: toolCalls.map((call) => ({
        id: call.id,
        type: 'function',
        function: { name: call.name, arguments: call.arguments },
      })),
    }),
    ...(toolCallId !== undefined && { tool_call_id: toolCallId }),
  }));
}

const openaiPart = (part: ContentPart): Json =>
  part.type === 'text' ? { type: 'text', text: part.text } : { type: 'image_url', image_url: { url: part.url } };

export function openaiTools(tools: readonly ToolDefinition[] | undefined): Json {
  if (!tools?.length) return {};
  return {
    tools: tools.map(({ name, description, parameters }) => ({
      type: 'function',
      function: { name, ...(description !== undefined && { description }), parameters: parameters ?? NO_ARGUMENTS },
    })),
  };
}

const NO_ARGUMENTS: Json = { type: 'object', properties: {} };

// OpenAI responses -------------------------------------------------------------------------------------------------

export function responsesInput(messages: readonly Message[]): readonly Json[] {
  return messages.flatMap(({ role, content, toolCalls, toolCallId }): Json[] => {
    if (role === 'tool') {
      return [{ type: 'function_call_output', call_id: toolCallId ?? '', output: textOfContent(content) }];
    }
    const said: Json = {
      role,
      content: typeof content === 'string' ? content : content.map((part) => responsesPart(part, role)),
    };
    const calls = (toolCalls ?? []).map(
      (call): Json => ({ type: 'function_call', call_id: call.id, name: call.name, arguments: call.arguments }),
    );
    return calls.length > 0 && content.length === 0 ? calls : [said, ...calls];
  });
}

function responsesPart(part: ContentPart, role: Message['role']): Json {
  if (part.type === 'image') return { type: 'input_image', image_url: part.url };
  return { type: role === 'assistant' ? 'output_text' : 'input_text', text: part.text };
}

export function responsesTools(tools: readonly ToolDefinition[] | undefined): Json {
  if (!tools?.length) return {};
  return {
    tools: tools.map(({ name, description, parameters }) => ({
      type: 'function',
      name,
      ...(description !== undefined && { description }),
      parameters: parameters ?? NO_ARGUMENTS,
    })),
  };
}

// Anthropic --------------------------------------------------------------------------------------------------------

/** Tool answers are a user's there, and calls are blocks of the assistant's message. System messages are left out. */
export function anthropicTurns(messages: readonly Message[]): readonly Json[] {
  return messages
    .filter((m) => m.role !== 'system')
    .map(({ role, content, toolCalls, toolCallId }) => {
      if (role === 'tool') {
        const result = { type: 'tool_result', tool_use_id: toolCallId ?? '', content: textOfContent(content) };
        return { role: 'user', content: [result] };
      }
      const parts = typeof content === 'string' ? content : content.map(anthropicPart);
      if (!toolCalls?.length) return { role, content: parts };
      const text = typeof parts !== 'string' ? parts : parts === '' ? [] : [{ type: 'text', text: parts }];
      const calls = toolCalls.map((call) => ({
        type: 'tool_use',
        id: call.id,
        name: call.name,
        input: parsedArguments(call.arguments),
      }));
      return { role, content: [...text, ...calls] };
    });
}

function anthropicPart(part: ContentPart): Json {
  if (part.type === 'text') return { type: 'text', text: part.text };
  const inline = inlineOf(part.url);
  return {
    type: 'image',
    source: inline ? { type: 'base64', media_type: inline.mime, data: inline.base64 } : { type: 'url', url: part.url },
  };
}

export function anthropicTools(tools: readonly ToolDefinition[] | undefined): Json {
  if (!tools?.length) return {};
  return {
    tools: tools.map(({ name, description, parameters }) => ({
      name,
      ...(description !== undefined && { description }),
      input_schema: parameters ?? NO_ARGUMENTS,
    })),
  };
}

// Gemini -----------------------------------------------------------------------------------------------------------

export function geminiContents(messages: readonly Message[]): readonly Json[] {
  return messages
    .filter((m) => m.role !== 'system')
    .map(({ role, content, toolCalls, toolCallId }) => {
      if (role === 'tool') {
        const response = { name: toolCallId ?? '', response: { result: textOfContent(content) } };
        return { role: 'user', parts: [{ functionResponse: response }] };
      }
      const parts = typeof content === 'string' ? [{ text: content }] : content.map(geminiPart);
      const calls = (toolCalls ?? []).map((call) => ({
        functionCall: { name: call.name, args: parsedArguments(call.arguments) },
      }));
      return { role: role === 'assistant' ? 'model' : 'user', parts: [...parts, ...calls] };
    });
}

function geminiPart(part: ContentPart): Json {
  if (part.type === 'text') return { text: part.text };
  const inline = inlineOf(part.url);
  return inline ? { inlineData: { mimeType: inline.mime, data: inline.base64 } } : { fileData: { fileUri: part.url } };
}

export function geminiTools(tools: readonly ToolDefinition[] | undefined): Json {
  if (!tools?.length) return {};
  return {
    tools: [
      {
        functionDeclarations: tools.map(({ name, description, parameters }) => ({
          name,
          ...(description !== undefined && { description }),
          ...(parameters !== undefined && { parameters }),
        })),
      },
    ],
  };
}

// Ollama -----------------------------------------------------------------------------------------------------------

export function ollamaMessages(messages: readonly Message[]): readonly Json[] {
  return messages.map(({ role, content, toolCalls }) => {
    const images = imagesOf(content).map((part) => mustInline(part.url, 'ollama.chat').base64);
    return {
      role,
      content: textOfContent(content),
      ...(images.length > 0 && { images }),
      ...(toolCalls?.length && {
        tool_calls: toolCalls.map((call) => ({
          function: { name: call.name, arguments: parsedArguments(call.arguments) },
        })),
      }),
    };
  });
}

/** Arguments as the object some APIs want; text that is not JSON is kept under a name of its own. */
function parsedArguments(text: string): unknown {
  try {
    return text === '' ? {} : (JSON.parse(text) as unknown);
  } catch {
    return { arguments: text };
  }
}
