/** Who may ask: the host a request names, the token where the server is not on loopback, and the headers of every answer. */
import { timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';

export const HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
};

const COOKIE = 'goodput_token';

export const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host);

export interface Door {
  /** Why a request is turned away: status and a line; undefined when it may come in. */
  refuse(req: IncomingMessage, url: URL): { readonly status: number; readonly why: string } | undefined;
  /** The cookie to set where the token came in the address. */
  cookie(url: URL): string | undefined;
}

/**
 * @param host the name or address listened on. A page of another origin whose name was pointed here (DNS rebinding) names
 * its own host, and is refused; on all addresses any literal address will do, since the token guards those.
 */
export function door(host: string, token: string | undefined): Door {
  const known = new Set(isLoopback(host) ? ['localhost', '127.0.0.1', '::1', host] : [host]);
  const any = host === '0.0.0.0' || host === '::';
  const named = (value: string | undefined): boolean => {
    if (value === undefined) return false;
    const name = /^\[([^\]]+)\](?::\d+)?$/.exec(value)?.[1] ?? value.replace(/:\d+$/, '');
    return known.has(name.toLowerCase()) || (any && (isIP(name) !== 0 || name === 'localhost'));
  };
  const matches = (given: string | undefined): boolean => {
    if (token === undefined) return true;
    if (given === undefined) return false;
    const [a, b] = [Buffer.from(given), Buffer.from(token)];
    return a.length === b.length && timingSafeEqual(a, b);
  };
  return {
    refuse: (req, url) => {
      if (!named(req.headers.host)) return { status: 403, why: 'the Host header is not this server' };
      const { origin } = req.headers;
      if (origin !== undefined && origin !== `http://${req.headers.host}`) {
        return { status: 403, why: 'asked for by a page of another origin' };
      }
      const bearer = /^Bearer (.+)$/.exec(req.headers.authorization ?? '')?.[1];
      const given = [bearer, cookieOf(req.headers.cookie), url.searchParams.get('token') ?? undefined];
      if (token !== undefined && !given.some((g) => matches(g)))
        return { status: 401, why: 'a token is needed: open the address that goodput ui printed' };
      return undefined;
    },
    cookie: (url) =>
      token !== undefined && url.searchParams.has('token')
        ? `${COOKIE}=${token}; HttpOnly; SameSite=Strict; Path=/`
        : undefined,
  };
}

function cookieOf(header: string | undefined): string | undefined {
  for (const part of (header ?? '').split(';')) {
    const [name, value] = part.trim().split('=');
    if (name === COOKIE) return value;
  }
  return undefined;
}
