import { describe, expect, it } from 'vitest';
import { isLoopback, proxyFor } from './proxy.ts';

const to = (url: string): URL => new URL(url);

describe('proxyFor', () => {
  it('chooses by scheme, lower case first, ALL_PROXY last', () => {
    const env = { HTTP_PROXY: 'http://a:1', https_proxy: 'http://b:2', HTTPS_PROXY: 'http://c:3' };
    expect(proxyFor(to('http://x.example'), env)?.url.host).toBe('a:1');
    expect(proxyFor(to('https://x.example'), env)).toMatchObject({ variable: 'https_proxy' });
    expect(proxyFor(to('https://x.example'), { ALL_PROXY: 'p:9' })?.url.host).toBe('p:9');
    expect(proxyFor(to('https://x.example'), {})).toBeUndefined();
  });

  it('never proxies loopback', () => {
    const env = { HTTP_PROXY: 'http://a:1', ALL_PROXY: 'http://a:1' };
    for (const host of ['localhost', '127.0.0.1', '127.8.9.1', '[::1]', 'a.localhost']) {
      expect(proxyFor(to(`http://${host}:8000/v1`), env)).toBeUndefined();
    }
    expect(isLoopback('128.0.0.1')).toBe(false);
  });

  it('excepts hosts, domains and ports of NO_PROXY', () => {
    const env = { HTTP_PROXY: 'http://a:1', NO_PROXY: 'corp.example, .inner.example:8000 *.star.example,10.0.0.5' };
    const direct = (url: string): boolean => proxyFor(to(url), env) === undefined;
    expect(direct('http://corp.example')).toBe(true);
    expect(direct('http://a.corp.example')).toBe(true);
    expect(direct('http://notcorp.example')).toBe(false);
    expect(direct('http://x.inner.example:8000')).toBe(true);
    expect(direct('http://x.inner.example')).toBe(false);
    expect(direct('http://y.star.example')).toBe(true);
    expect(direct('http://10.0.0.5')).toBe(true);
    expect(proxyFor(to('http://z.example'), { ...env, no_proxy: '*' })).toBeUndefined();
  });

  it('turns a user into an authorization', () => {
    const proxy = proxyFor(to('https://x.example'), { HTTPS_PROXY: 'http://me:p%40ss@a:1' });
    expect(proxy?.authorization).toBe(`Basic ${Buffer.from('me:p@ss').toString('base64')}`);
  });

  it('refuses what is no HTTP proxy, hiding its password', () => {
    expect(() => proxyFor(to('http://x.example'), { http_proxy: 'socks5://u:pw@h:1' })).toThrow(/http_proxy: socks5:/);
    expect(() => proxyFor(to('http://x.example'), { http_proxy: 'http://u:pw@bad host' })).toThrow(/^(?!.*pw@).*$/);
  });
});
