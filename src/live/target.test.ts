import { describe, expect, it } from 'vitest';
import { requestHeaders } from './headers.ts';
import { targetOf } from './target.ts';

describe('targetOf', () => {
  it.each([
    ['http://h:8000', undefined, 'http://h:8000', '/v1/chat/completions', 'openai.chat'],
    ['http://h:8000/', undefined, 'http://h:8000', '/v1/chat/completions', 'openai.chat'],
    ['http://h:8000/v1', undefined, 'http://h:8000', '/v1/chat/completions', 'openai.chat'],
    ['https://h/openai/v1/', undefined, 'https://h', '/openai/v1/chat/completions', 'openai.chat'],
    ['localhost:8000', undefined, 'http://localhost:8000', '/v1/chat/completions', 'openai.chat'],
    ['127.0.0.1', undefined, 'http://127.0.0.1', '/v1/chat/completions', 'openai.chat'],
    ['api.example', undefined, 'https://api.example', '/v1/chat/completions', 'openai.chat'],
    ['http://h/v1/completions', undefined, 'http://h', '/v1/completions', 'openai.completions'],
    ['http://h/v1', 'anthropic.messages', 'http://h', '/v1/messages', 'anthropic.messages'],
    ['http://h/api', 'ollama.generate', 'http://h', '/api/generate', 'ollama.generate'],
    ['http://h/team/llm', 'openai.chat', 'http://h', '/team/llm', 'openai.chat'],
    ['http://h/api/chat', undefined, 'http://h', '/api/chat', 'ollama.chat'],
    [
      'https://x.azure.com/openai/deployments/d/chat/completions?api-version=1',
      undefined,
      'https://x.azure.com',
      '/openai/deployments/d/chat/completions?api-version=1',
      'openai.chat',
    ],
  ])('%s as %s', (url, named, origin, path, dialect) => {
    const target = targetOf(url, named);
    expect(target.origin.origin).toBe(origin);
    expect(target.path('m', true)).toBe(path);
    expect(target.dialect.name).toBe(dialect);
  });

  it('puts the model and the query into Gemini’s path, and has another path without streaming', () => {
    const target = targetOf('https://g.example?key=K', 'gemini.stream');
    expect(target.path('gem', true)).toBe('/v1beta/models/gem:streamGenerateContent?alt=sse&key=K');
    expect(target.path('gem', false)).toBe('/v1beta/models/gem:generateContent?key=K');
    expect(target.shown).not.toContain('key=K');
    expect(targetOf('http://h/generate_stream').path('', false)).toBe('/generate');
  });

  it('refuses what says nothing', () => {
    expect(() => targetOf('http://h/talk/to/me')).toThrow(/--dialect \(one of .*openai\.chat/);
  });
});

describe('requestHeaders', () => {
  const headers = (url: string, key?: string, own?: Record<string, string>, dialect?: string) =>
    requestHeaders(targetOf(url, dialect), { ...(key !== undefined && { key }), ...(own && { headers: own }) });

  it('puts the key where the dialect has it', () => {
    expect(headers('http://h', 'K').authorization).toBe('Bearer K');
    expect(headers('http://h', 'K', {}, 'anthropic.messages')).toMatchObject({
      'x-api-key': 'K',
      'anthropic-version': '2023-06-01',
    });
    expect(headers('http://h', 'K', {}, 'gemini.stream')['x-goog-api-key']).toBe('K');
    expect(headers('https://x.openai.azure.com', 'K')['api-key']).toBe('K');
    expect(headers('http://u:p@h').authorization).toBe(`Basic ${Buffer.from('u:p').toString('base64')}`);
  });

  it('lets the user’s own win, and refuses what HTTP does', () => {
    expect(headers('http://h', 'K', { Authorization: 'Token T' }).authorization).toBe('Token T');
    expect(() => headers('http://h', undefined, { 'a b': 'x' })).toThrow(/--header/);
    expect(() => headers('http://h', undefined, { a: 'x\ny' })).toThrow(/--header/);
    expect(() => headers('http://h', undefined, { 'Content-Length': '1' })).toThrow(/leave it out/);
  });
});
