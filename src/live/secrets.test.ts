import { describe, expect, it } from 'vitest';
import { keyFromEnvironment, redactor, redactUrl, secretsOfHeaders, secretsOfUrl } from './secrets.ts';

describe('redactUrl', () => {
  it.each([
    ['http://127.0.0.1:8000/v1', 'http://127.0.0.1:8000/v1'],
    ['https://user:pw@api.example/v1', 'https://***@api.example/v1'],
    [
      'https://g.example/v1beta/models/m:streamGenerateContent?alt=sse&key=AIzaSecret',
      'https://g.example/v1beta/models/m:streamGenerateContent?alt=sse&key=***',
    ],
    ['https://az.example/x?api-version=2024-06-01&sig=abc', 'https://az.example/x?api-version=2024-06-01&sig=***'],
    ['user:pw@host:80/x?key=1', '***@host:80/x?***'],
  ])('%s', (url, shown) => {
    expect(redactUrl(url)).toBe(shown);
  });
});

describe('redactor', () => {
  const redact = redactor(['s3cret-key', 'pass word', 'abc']);

  it('hides known secrets wherever they stand, URL-encoded too', () => {
    expect(redact('key s3cret-key is wrong (s3cret-key)')).toBe('key *** is wrong (***)');
    expect(redact('/x?p=pass%20word')).toBe('/x?p=***');
  });

  it('hides what looks like a key, half masked by the server or not', () => {
    expect(redact('Incorrect API key provided: sk-abcd****wxyz.')).not.toContain('abcd');
    expect(redact('Authorization: Bearer eyJhbGciOi.J9')).toBe('Authorization: ***');
  });

  it('leaves words alone', () => {
    expect(redact('abc: the task is risk-free at 10 tokens')).toBe('abc: the task is risk-free at 10 tokens');
  });
});

it('finds the secrets of URLs and headers', () => {
  expect(secretsOfUrl(new URL('https://u:p%40w@h/x?api-version=1&token=tt'))).toEqual(['p@w', 'tt']);
  expect(secretsOfHeaders({ authorization: 'Bearer kk', 'x-api-key': 'aa', accept: 'x' })).toEqual([
    'Bearer kk',
    'kk',
    'aa',
    'aa',
  ]);
});

describe('keyFromEnvironment', () => {
  it('reads and trims', () => {
    expect(keyFromEnvironment({ K: ' sk-1\n' }, 'K')).toBe('sk-1');
  });
  it('names the variable, never the value', () => {
    expect(() => keyFromEnvironment({}, 'MY_KEY')).toThrow(/MY_KEY.*not set/);
    expect(() => keyFromEnvironment({ MY_KEY: 'a b\nc' }, 'MY_KEY')).toThrow(/^(?!.*a b).*MY_KEY.*$/s);
  });
});
