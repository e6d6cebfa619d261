/** Which proxy stands between us and a URL, by the environment's conventions (as curl reads them). */
import { InputError } from '../base/errors.ts';
import { redactUrl } from './secrets.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** An HTTP proxy. `https:` targets are tunnelled through it by CONNECT, `http:` ones are asked for by their whole URL. */
export interface HttpProxy {
  readonly url: URL;
  /** Which variable named it, to say so in errors. */
  readonly variable: string;
  /** For `proxy-authorization`, where the URL holds a user. */
  readonly authorization?: string;
}

/**
 * The proxy for `target`, or undefined for a direct connection. Loopback is never proxied. `http_proxy` and
 * `https_proxy` win over their upper-case forms, `ALL_PROXY` comes last; `NO_PROXY` lists hosts, domains (with their
 * subdomains), `host:port` or `*`.
 * @throws InputError when the variable holds no HTTP proxy.
 */
export function proxyFor(target: URL, env: Environment): HttpProxy | undefined {
  if (isLoopback(target.hostname)) return undefined;
  if (isExcepted(target, env.no_proxy ?? env.NO_PROXY ?? '')) return undefined;
  const scheme = target.protocol === 'https:' ? 'https' : 'http';
  const names = [`${scheme}_proxy`, `${scheme.toUpperCase()}_PROXY`, 'all_proxy', 'ALL_PROXY'];
  const variable = names.find((name) => env[name]?.trim());
  if (variable === undefined) return undefined;
  const value = env[variable]!.trim();
  let url: URL;
  try {
    url = new URL(/^[a-z][a-z0-9+.-]*:\/\//i.test(value) ? value : `http://${value}`);
  } catch {
    throw new InputError(`${variable}: '${redactUrl(value)}' is not a URL; write it like http://proxy.example:3128`);
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new InputError(
      `${variable}: ${url.protocol}// proxies are not supported; name an http:// proxy, or unset it`,
    );
  }
  const user = decodeURIComponent(url.username);
  const password = decodeURIComponent(url.password);
  const authorization = user || password ? `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}` : undefined;
  return { url, variable, ...(authorization !== undefined && { authorization }) };
}

/** True for this machine's own addresses and names. */
export function isLoopback(hostname: string): boolean {
  const host = hostname.toLowerCase().replace(/^\[|\]$/g, '');
  return host === 'localhost' || host.endsWith('.localhost') || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}

function isExcepted(target: URL, noProxy: string): boolean {
  const host = target.hostname.toLowerCase();
  const port = target.port || (target.protocol === 'https:' ? '443' : '80');
  return noProxy
    .split(/[,\s]+/)
    .filter((entry) => entry !== '')
    .some((entry) => {
      if (entry === '*') return true;
      const [, name = entry, only] = /^(.+?)(?::(\d+))?$/.exec(entry) ?? [];
      if (only !== undefined && only !== port) return false;
      const domain = name.toLowerCase().replace(/^\*?\./, '');
      return host === domain || host.endsWith(`.${domain}`);
    });
}
