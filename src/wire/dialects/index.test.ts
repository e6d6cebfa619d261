import { describe, expect, it } from 'vitest';
import { InputError } from '../../base/errors.ts';
import type { RequestSpec } from '../../core/request.ts';
import { DIALECT_NAMES } from '../dialect.ts';
import { DIALECTS, defaultPath, detectDialect, dialectNamed, dialectOfPath, requestBody } from './index.ts';

describe('recognition', () => {
  it('is not fooled by what is no frame of any', () => {
    for (const x of [{}, [], null, 1, 'x', { type: 'ping' }, { foo: 'bar' }]) expect(detectDialect(x)).toBeUndefined();
  });
});

describe('names and paths', () => {
  it('the table is complete and keyed by name', () => {
    expect(Object.keys(DIALECTS)).toEqual([...DIALECT_NAMES]);
    for (const name of DIALECT_NAMES) expect(DIALECTS[name].name).toBe(name);
  });
  it('a name is checked, and the nearest one named', () => {
    expect(dialectNamed('openai.chat')).toBe('openai.chat');
    expect(() => dialectNamed('openai.chatt')).toThrow(/did you mean 'openai.chat'/);
    expect(() => dialectNamed('x')).toThrow(InputError);
  });
  it("a dialect's default path is its own, for any model", () => {
    for (const name of DIALECT_NAMES) expect(dialectOfPath(defaultPath(name, 'meta-llama/Llama 3'))).toBe(name);
  });
  it.each([
    ['http://h:8000/v1/chat/completions', 'openai.chat'],
    ['https://h/openai/deployments/d/chat/completions?api-version=2024-10-21', 'openai.chat'],
    ['/v1/completions/', 'openai.completions'],
    ['/completion', 'llamacpp.completion'],
    ['https://h/v1/responses', 'openai.responses'],
    ['https://h/v1/messages#x', 'anthropic.messages'],
    ['/v1beta/models/gemini-2.5-flash:streamGenerateContent', 'gemini.stream'],
    ['/api/chat', 'ollama.chat'],
    ['/api/generate', 'ollama.generate'],
    ['/generate', 'sglang.generate'],
    ['/generate_stream', 'tgi.generate_stream'],
    ['/v2/models/ensemble/versions/1/generate_stream', 'triton.generate_stream'],
    ['/v2/models/ensemble/generate', 'triton.generate_stream'],
    ['/health', undefined],
    ['http://h', undefined],
  ])('%s is %s', (url, name) => {
    expect(dialectOfPath(url)).toBe(name);
  });
});

describe('request bodies', () => {
  const spec: RequestSpec = {
    operation: 1,
    attempt: 0,
    class: 'default',
    inputTokens: 3,
    outputTokens: 64,
    choices: 1,
    stream: true,
    ignoreEos: false,
    prompt: 'Say hi',
  };
  const chat = [
    { role: 'system', content: 'Be brief' },
    { role: 'user', content: 'Hi' },
    { role: 'assistant', content: 'Hello' },
    { role: 'user', content: 'Bye' },
  ] as const;
  const body = (name: Parameters<typeof requestBody>[0], change: Partial<RequestSpec> = {}, options = {}) =>
    requestBody(name, { ...spec, ...change }, { model: 'm', ...options });

  it('OpenAI chat asks for usage, and for counts on every chunk only when told', () => {
    expect(body('openai.chat')).toEqual({
      model: 'm',
      messages: [{ role: 'user', content: 'Say hi' }],
      max_tokens: 64,
      stream: true,
      stream_options: { include_usage: true },
    });
    expect(
      body(
        'openai.chat',
        { ignoreEos: true, choices: 2 },
        { continuousUsage: true, minTokens: true, maxTokensName: 'max_completion_tokens' },
      ),
    ).toEqual({
      model: 'm',
      messages: [{ role: 'user', content: 'Say hi' }],
      max_completion_tokens: 64,
      n: 2,
      ignore_eos: true,
      min_tokens: 64,
      stream: true,
      stream_options: { include_usage: true, continuous_usage_stats: true },
    });
    expect(body('openai.chat', {}, { usage: false })).not.toHaveProperty('stream_options');
    expect(body('openai.chat', { stream: false })).toMatchObject({ stream: false });
    expect(body('openai.chat', { stream: false })).not.toHaveProperty('stream_options');
  });
  it('each names the limit, the stream and the prompt in its own words', () => {
    expect(body('openai.completions')).toMatchObject({ prompt: 'Say hi', max_tokens: 64, stream: true });
    expect(body('openai.responses', { prompt: chat })).toEqual({
      model: 'm',
      instructions: 'Be brief',
      input: chat.slice(1),
      max_output_tokens: 64,
      stream: true,
    });
    expect(body('anthropic.messages', { prompt: chat })).toEqual({
      model: 'm',
      max_tokens: 64,
      system: 'Be brief',
      messages: chat.slice(1),
      stream: true,
    });
    expect(body('gemini.stream', { prompt: chat, choices: 2 })).toEqual({
      systemInstruction: { parts: [{ text: 'Be brief' }] },
      contents: [
        { role: 'user', parts: [{ text: 'Hi' }] },
        { role: 'model', parts: [{ text: 'Hello' }] },
        { role: 'user', parts: [{ text: 'Bye' }] },
      ],
      generationConfig: { maxOutputTokens: 64, candidateCount: 2 },
    });
    expect(body('ollama.chat')).toMatchObject({
      messages: [{ role: 'user' }],
      options: { num_predict: 64 },
      stream: true,
    });
    expect(body('ollama.generate')).toMatchObject({ prompt: 'Say hi', options: { num_predict: 64 }, stream: true });
    expect(body('llamacpp.completion', { ignoreEos: true })).toMatchObject({ n_predict: 64, ignore_eos: true });
    expect(body('tgi.generate_stream')).toEqual({
      inputs: 'Say hi',
      parameters: { max_new_tokens: 64, details: true },
    });
    expect(body('sglang.generate', { ignoreEos: true, choices: 2 })).toEqual({
      text: 'Say hi',
      sampling_params: { max_new_tokens: 64, ignore_eos: true, n: 2 },
      stream: true,
    });
    expect(body('triton.generate_stream')).toEqual({ text_input: 'Say hi', max_tokens: 64, stream: true });
  });
  it('several messages become one text under their roles, where a text is wanted', () => {
    expect(body('openai.completions', { prompt: chat })).toMatchObject({
      prompt: 'system: Be brief\n\nuser: Hi\n\nassistant: Hello\n\nuser: Bye',
    });
  });
  it('further fields are laid over: objects merged, null removing', () => {
    expect(
      body('gemini.stream', {}, { extra: { generationConfig: { temperature: 0 }, safetySettings: [] } }),
    ).toMatchObject({ generationConfig: { maxOutputTokens: 64, temperature: 0 }, safetySettings: [] });
    expect(body('openai.chat', {}, { extra: { stream_options: null } })).not.toHaveProperty('stream_options');
  });
  it('several choices are refused where they cannot be asked for', () => {
    expect(() => body('anthropic.messages', { choices: 2 })).toThrow(InputError);
  });
});
