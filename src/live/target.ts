/** Where requests go and which API is spoken there, from what the user wrote. */
import { InputError } from '../base/errors.ts';
import { DIALECT_NAMES, DIALECTS, type Dialect, dialectNamed, dialectOfPath } from '../wire/index.ts';
import { isLoopback } from './proxy.ts';
import { redactUrl } from './secrets.ts';

export interface Target {
  /** Scheme, host and port; nothing else of the URL. */
  readonly origin: URL;
  /** Path and query of requests; `stream: false` may have another. */
  path(model: string, stream: boolean): string;
  readonly dialect: Dialect;
  /** Why this dialect, in a few words for the user. */
  readonly why: string;
  /** True when the path was filled in by us, so that a probe may know better. */
  readonly assumed: boolean;
  /** What stood before `@` in the URL. */
  readonly user?: { readonly name: string; readonly password: string };
  /** The whole, fit to be shown. */
  readonly shown: string;
}

/** Paths that are the root of an API, not an endpoint: `/v1`, `/openai/v1`, `/api`. */
const BASE = /^(?:\/[\w.~-]+)*?\/(?:v\d\w*|api|openai)$/i;

/**
 * @param url a whole URL (`http://h:8000/v1/chat/completions`), an API's base (`https://h/v1`) or a bare host.
 * @param named the dialect, when the user named one.
 * @throws InputError when the URL is none, or its path says nothing and no dialect is named.
 */
export function targetOf(url: string, named?: string): Target {
  const parsed = parseUrl(url);
  const given = named === undefined ? undefined : dialectNamed(named);
  const path = parsed.pathname.replace(/\/+$/, '');
  const served = dialectOfPath(path);
  const query = parsed.search;
  const common = {
    origin: new URL(parsed.origin),
    ...((parsed.username || parsed.password) && {
      user: { name: decodeURIComponent(parsed.username), password: decodeURIComponent(parsed.password) },
    }),
    shown: redactUrl(parsed.href).replace(/\/$/, ''),
  };
  const whole = (dialect: Dialect, why: string): Target => ({
    ...common,
    dialect,
    why,
    assumed: false,
    path: (_, stream) => joinQuery(stream ? path : unstreamed(path), query),
  });

  if (given !== undefined && (served !== undefined || (path !== '' && !BASE.test(path)))) {
    return whole(DIALECTS[given], 'as --dialect says');
  }
  if (served !== undefined) return whole(DIALECTS[served], `the path ${path} is its endpoint`);
  if (path !== '' && !BASE.test(path)) {
    throw new InputError(
      `${common.shown}: the path ${path} does not say which API is spoken there; add --dialect (one of ${DIALECT_NAMES.join(', ')}), or write an API's whole URL, like ${common.origin.origin}/v1/chat/completions`,
    );
  }
  const name = given ?? 'openai.chat';
  const dialect = DIALECTS[name];
  return {
    ...common,
    dialect,
    why: given === undefined ? 'the URL names no endpoint, and this is the usual one' : 'as --dialect says',
    assumed: given === undefined,
    path(model, stream) {
      const own = dialect.path(model);
      const joined = joinPath(path, own);
      return joinQuery(stream ? joined : unstreamed(joined), query);
    },
  };
}

/** Without a scheme: `http://` for loopback, an address or a host with a port, else `https://`. */
function parseUrl(text: string): URL {
  const trimmed = text.trim();
  const withScheme = /^[a-z][a-z0-9+.-]*:\/\//i.test(trimmed) ? trimmed : `${schemeFor(trimmed)}://${trimmed}`;
  if (!URL.canParse(withScheme)) {
    throw new InputError(
      `'${redactUrl(trimmed)}' is not a URL; write it like http://localhost:8000 or https://api.example/v1/chat/completions`,
    );
  }
  const url = new URL(withScheme);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new InputError(`${redactUrl(trimmed)}: ${url.protocol}// is not supported; use http:// or https://`);
  }
  return url;
}

function schemeFor(text: string): 'http' | 'https' {
  const host = /^(?:[^/@]*@)?(\[[^\]]*\]|[^/:?#]*)(:\d+)?/.exec(text);
  const name = host?.[1] ?? '';
  return host?.[2] !== undefined || isLoopback(name) || /^[\d.]+$/.test(name) || name.startsWith('[')
    ? 'http'
    : 'https';
}

/** `base` + `own`, without saying `/v1` or `/api` twice. */
function joinPath(base: string, own: string): string {
  const last = base.slice(base.lastIndexOf('/'));
  return last !== '' && own.startsWith(`${last}/`) ? base + own.slice(last.length) : base + own;
}

/** A dialect's path may bring a query of its own (`?alt=sse`); the user's comes after it. */
function joinQuery(path: string, query: string): string {
  if (query === '') return path;
  return path.includes('?') ? `${path}&${query.slice(1)}` : path + query;
}

/** Where the same is asked for without streaming, in the dialects that have two endpoints for it. */
function unstreamed(path: string): string {
  return path
    .replace(/:streamGenerateContent(\?alt=sse)?$/, ':generateContent')
    .replace(/\/generate_stream$/, '/generate');
}
