/** The headers of a request: the dialect's, the key in its place, then the user's own over them. */
import { validateHeaderName, validateHeaderValue } from 'node:http';
import { InputError, oneLine } from '../base/errors.ts';
import type { LiveOptions } from './options.ts';
import type { Target } from './target.ts';

/**
 * Lower-case names. `accept-encoding: identity`: a compressed stream holds tokens back until the compressor's block is
 * full, and would make us measure zlib.
 * @throws InputError for a name or value that HTTP does not allow.
 */
export function requestHeaders(target: Target, options: Pick<LiveOptions, 'headers' | 'key'>): Record<string, string> {
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    accept: 'text/event-stream, application/json',
    'accept-encoding': 'identity',
    'user-agent': 'goodput',
    ...authorization(target, options.key),
  };
  for (const [name, value] of Object.entries(options.headers ?? {})) {
    const lower = name.trim().toLowerCase();
    try {
      validateHeaderName(lower);
      validateHeaderValue(lower, value);
    } catch {
      throw new InputError(`--header: '${oneLine(name, 60)}' is not a header HTTP allows; write it like 'Name: value'`);
    }
    if (FORBIDDEN.has(lower)) {
      throw new InputError(`--header: ${lower} is set by the client itself; leave it out`);
    }
    headers[lower] = value;
  }
  return headers;
}

const FORBIDDEN = new Set(['content-length', 'transfer-encoding', 'connection', 'keep-alive', 'upgrade', 'expect']);

function authorization(target: Target, key: string | undefined): Record<string, string> {
  const { name } = target.dialect;
  const version: Record<string, string> = name === 'anthropic.messages' ? { 'anthropic-version': '2023-06-01' } : {};
  if (key !== undefined) {
    if (name === 'anthropic.messages') return { ...version, 'x-api-key': key };
    if (name === 'gemini.stream') return { 'x-goog-api-key': key };
    if (/\.azure\.com$/i.test(target.origin.hostname)) return { 'api-key': key, authorization: `Bearer ${key}` };
    return { authorization: `Bearer ${key}` };
  }
  if (target.user === undefined) return version;
  const basic = Buffer.from(`${target.user.name}:${target.user.password}`).toString('base64');
  return { ...version, authorization: `Basic ${basic}` };
}
