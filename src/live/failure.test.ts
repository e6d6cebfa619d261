import { describe, expect, it } from 'vitest';
import { ConnectionFailure, type FailurePlace, failureOf } from './failure.ts';

const place: FailurePlace = { host: 'api.example:443', secure: true, phase: 'waiting', untouchedReuse: false };
const coded = (code: string, message = 'boom'): Error => Object.assign(new Error(message), { code });
const reason = (error: unknown, at: Partial<FailurePlace> = {}): string =>
  failureOf(error, { ...place, ...at }, (text) => text).reason;

describe('failureOf', () => {
  it.each([
    ['ENOTFOUND', 'dns'],
    ['EAI_AGAIN', 'dns'],
    ['ECONNREFUSED', 'connect'],
    ['UND_ERR_CONNECT_TIMEOUT', 'connect'],
    ['EMFILE', 'client-limit'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'tls'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'tls'],
    ['CERT_HAS_EXPIRED', 'tls'],
    ['EPROTO', 'tls'],
    ['ECONNRESET', 'reset'],
    ['UND_ERR_SOCKET', 'reset'],
    ['UND_ERR_RES_CONTENT_LENGTH_MISMATCH', 'reset'],
    ['UND_ERR_RES_EXCEEDED_MAX_SIZE', 'too-large'],
    ['UND_ERR_DESTROYED', 'engine'],
    ['SOMETHING_NEW', 'engine'],
  ])('%s is %s', (code, expected) => {
    expect(reason(coded(code))).toBe(expected);
  });

  it("tells a response cut short from one that is no HTTP, by the parser's reason", () => {
    const parser = (why: string): Error =>
      Object.assign(new Error(`Response does not match the HTTP/1.1 protocol (${why})`), { name: 'HTTPParserError' });
    expect(reason(parser('Invalid EOF state'))).toBe('reset');
    expect(reason(parser('Expected HTTP/'))).toBe('protocol');
  });

  it('reads the first of several addresses tried, and causes', () => {
    expect(reason(new AggregateError([coded('ECONNREFUSED'), coded('EHOSTUNREACH')]))).toBe('connect');
    expect(reason(new Error('wrapped', { cause: coded('ENOTFOUND') }))).toBe('dns');
  });

  it('calls a reset while connecting a connection failure, and one of an untouched reused socket stale', () => {
    expect(reason(coded('ECONNRESET'), { phase: 'connecting' })).toBe('connect');
    const stale = failureOf(coded('ECONNRESET'), { ...place, untouchedReuse: true }, (t) => t);
    expect(stale).toMatchObject({ reason: 'reset', stale: true });
    expect(failureOf(coded('ECONNRESET'), place, (t) => t)).not.toHaveProperty('stale');
  });

  it('says what to do', () => {
    const detail = (e: Error): string => failureOf(e, place, (t) => t).detail;
    expect(detail(coded('DEPTH_ZERO_SELF_SIGNED_CERT'))).toMatch(/--cacert FILE.*--insecure/);
    expect(detail(coded('EMFILE'))).toContain('ulimit -n');
    expect(detail(coded('ERR_SSL_WRONG_VERSION_NUMBER'))).toContain('http://');
    expect(detail(coded('ECONNREFUSED'))).toContain('api.example:443');
  });

  it('redacts every detail', () => {
    const ending = failureOf(new ConnectionFailure('connect', 'key K1'), place, (t) => t.replace('K1', '***'));
    expect(ending.detail).toBe('key ***');
  });
});
