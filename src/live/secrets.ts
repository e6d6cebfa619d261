/**
 * What must not be seen: API keys, passwords and tokens in headers, URLs and in what servers echo back. Every text that
 * leaves this room (error details, engine names, evidence) has been through a `Redactor`.
 */
import { InputError } from '../base/errors.ts';

/** Replaces every known secret, and what looks like a key, by `***`. */
export type Redactor = (text: string) => string;

const HIDDEN = '***';
/** Header names whose values are secrets. */
const SECRET_HEADER = /auth|key|token|cookie|secret|credential|password/i;
/** Query parameters that say nothing secret; every other value in a URL is hidden. */
const HARMLESS_QUERY = new Set(['api-version', 'alt', 'version', 'model', 'stream', 'beta']);
/** Keys of known issuers, also when the server has masked their middle (`sk-ab***yz`). */
const KEY_LIKE =
  /\b(?:sk|pk|rk|gsk|hf|xai|nvapi|pplx|r8)[-_][\w*.•…-]{6,}|\bAIza[\w*-]{10,}|\bBearer\s+[\w*.~+/=-]{8,}/g;

/**
 * `url` fit to be shown and stored: no user or password, and no query value but the few that are known to be harmless.
 * Text that is no URL is given back with its query and user part cut.
 */
export function redactUrl(url: string): string {
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url)) {
    return url.replace(/\?.*$/s, `?${HIDDEN}`).replace(/^([a-z]+:\/\/)?[^/@\s]*@/i, `$1${HIDDEN}@`);
  }
  const parsed = new URL(url);
  const user = parsed.username || parsed.password ? `${HIDDEN}@` : '';
  const query = [...parsed.searchParams]
    .map(
      ([name, value]) => `${encodeURIComponent(name)}=${HARMLESS_QUERY.has(name) ? encodeURIComponent(value) : HIDDEN}`,
    )
    .join('&');
  return `${parsed.protocol}//${user}${parsed.host}${parsed.pathname}${query && `?${query}`}`.replace(KEY_LIKE, HIDDEN);
}

/** A redactor that knows these secrets literally, and their URL-encoded forms. */
export function redactor(secrets: readonly string[]): Redactor {
  const literal = [...new Set(secrets.flatMap((s) => [s, encodeURIComponent(s)]))]
    .filter((s) => s.length >= 4) // shorter ones would redact ordinary words
    .sort((a, b) => b.length - a.length);
  return (text) => {
    let clean = text;
    for (const secret of literal) clean = clean.replaceAll(secret, HIDDEN);
    return clean.replace(KEY_LIKE, HIDDEN);
  };
}

/** The secrets in a URL: its password and the query values that are not known to be harmless. */
export function secretsOfUrl(url: URL): string[] {
  const query = [...url.searchParams].filter(([name]) => !HARMLESS_QUERY.has(name)).map(([, value]) => value);
  return [decodeURIComponent(url.password), ...query].filter((s) => s !== '');
}

/** The secrets in headers, by name; of `Bearer x` and `Basic x` also the bare `x`. */
export function secretsOfHeaders(headers: Readonly<Record<string, string>>): string[] {
  return Object.entries(headers)
    .filter(([name]) => SECRET_HEADER.test(name))
    .flatMap(([, value]) => [value, value.replace(/^\S+\s+/, '')]);
}

/**
 * The API key in the environment variable `name`, which is all a user ever names.
 * @throws InputError when it is not set or cannot stand in a header.
 */
export function keyFromEnvironment(env: Readonly<Record<string, string | undefined>>, name: string): string {
  const key = env[name]?.trim();
  if (!key) {
    throw new InputError(
      `the environment variable ${name} that should hold the API key is not set; export ${name}=… first`,
    );
  }
  if (!/^[\x21-\x7e]+$/.test(key)) {
    throw new InputError(
      `the API key in ${name} holds characters that no HTTP header may; set it anew without spaces or line breaks`,
    );
  }
  return key;
}
