import { describe, expect, it } from 'vitest';
import type { Message, RequestSpec } from '../core/request.ts';
import { type DialectName, requestBody } from './index.ts';

const PIXEL = 'data:image/png;base64,iVBORw0KGgo=';
const CONVERSATION: readonly Message[] = [
  { role: 'system', content: 'Be short.' },
  {
    role: 'user',
    content: [
      { type: 'text', text: 'What is this?' },
      { type: 'image', url: PIXEL },
    ],
  },
  { role: 'assistant', content: '', toolCalls: [{ id: 'c1', name: 'look', arguments: '{"at":"it"}' }] },
  { role: 'tool', content: 'a cat', toolCallId: 'c1' },
];
const SPEC: RequestSpec = {
  operation: 0,
  attempt: 0,
  class: 'default',
  inputTokens: 8,
  outputTokens: 4,
  choices: 1,
  stream: true,
  ignoreEos: false,
  prompt: CONVERSATION,
  tools: [
    { name: 'look', description: 'Looks', parameters: { type: 'object', properties: { at: { type: 'string' } } } },
  ],
};
const bodyOf = (dialect: DialectName, spec: RequestSpec = SPEC) => requestBody(dialect, spec, { model: 'm' });

describe('messages with images, tool calls and tools', () => {
  it('OpenAI chat: image_url parts, function tools, tool_calls and tool_call_id', () => {
    expect(bodyOf('openai.chat')).toMatchObject({
      messages: [
        { role: 'system', content: 'Be short.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is this?' },
            { type: 'image_url', image_url: { url: PIXEL } },
          ],
        },
        { role: 'assistant', tool_calls: [{ id: 'c1', type: 'function', function: { name: 'look' } }] },
        { role: 'tool', content: 'a cat', tool_call_id: 'c1' },
      ],
      tools: [{ type: 'function', function: { name: 'look', description: 'Looks' } }],
    });
  });

  it('Anthropic: base64 sources, tool_use and tool_result blocks, the system apart', () => {
    const body = bodyOf('anthropic.messages');
    expect(body.system).toBe('Be short.');
    expect(body.messages).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'What is this?' },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } },
        ],
      },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name: 'look', input: { at: 'it' } }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1', content: 'a cat' }] },
    ]);
    expect(body.tools).toMatchObject([{ name: 'look', input_schema: { type: 'object' } }]);
  });

  it('OpenAI responses, Gemini and Ollama in their own words', () => {
    expect(bodyOf('openai.responses').input).toMatchObject([
      { role: 'user', content: [{ type: 'input_text' }, { type: 'input_image', image_url: PIXEL }] },
      { type: 'function_call', call_id: 'c1', name: 'look' },
      { type: 'function_call_output', call_id: 'c1', output: 'a cat' },
    ]);
    expect(bodyOf('gemini.stream').contents).toMatchObject([
      { role: 'user', parts: [{ text: 'What is this?' }, { inlineData: { mimeType: 'image/png' } }] },
      { role: 'model' },
      { role: 'user', parts: [{ functionResponse: { response: { result: 'a cat' } } }] },
    ]);
    expect(bodyOf('ollama.chat').messages).toMatchObject([
      {},
      { role: 'user', content: 'What is this?', images: ['iVBORw0KGgo='] },
      {},
      {},
    ]);
  });

  it('keeps plain text plain', () => {
    expect(bodyOf('openai.chat', { ...SPEC, prompt: 'hi', tools: [] }).messages).toEqual([
      { role: 'user', content: 'hi' },
    ]);
    expect(bodyOf('openai.chat', { ...SPEC, prompt: 'hi', tools: [] })).not.toHaveProperty('tools');
  });

  it.each(['openai.completions', 'tgi.generate_stream', 'llamacpp.completion'] as const)(
    '%s refuses images and tools, saying where to go',
    (dialect) => {
      expect(() => bodyOf(dialect)).toThrow(/has images.*chat endpoint/);
      expect(() => bodyOf(dialect, { ...SPEC, prompt: 'hi' })).toThrow(/tool definitions/);
    },
  );
});
