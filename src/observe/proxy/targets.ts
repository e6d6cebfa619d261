/** Upstreams as the user writes them. */
import { InputError, oneLine } from '../../base/errors.ts';
import { readPem } from './identity.ts';
import type { UpstreamTarget } from './upstream.ts';

export interface TlsTrust {
  /** A PEM file of authorities to trust instead of the built-in ones. */
  readonly cacert?: string;
  /** Accept any certificate. */
  readonly insecure?: boolean;
}

/** @throws InputError for what is no http(s) URL, for a user or query in it, and for a URL given twice. */
export function upstreamTargets(list: string, trust: TlsTrust = {}): UpstreamTarget[] {
  const ca = trust.cacert === undefined ? undefined : readAuthorities(trust.cacert);
  const targets = list
    .split(',')
    .map((text) => text.trim())
    .filter((text) => text !== '')
    .map((text) => target(text, ca, trust.insecure ?? false));
  if (targets.length === 0) throw new InputError('--upstream: name at least one URL, like http://127.0.0.1:8000');
  const seen = new Set<string>();
  for (const { url, prefix } of targets) {
    if (seen.has(url + prefix)) throw new InputError(`--upstream: ${url}${prefix} is named twice`);
    seen.add(url + prefix);
  }
  return targets;
}

function target(text: string, ca: Buffer | undefined, insecure: boolean): UpstreamTarget {
  const shown = oneLine(text.replace(/\/\/[^/@]*@/, '//***@'), 120);
  const withScheme = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`;
  if (!URL.canParse(withScheme))
    throw new InputError(`--upstream: '${shown}' is not a URL, like http://127.0.0.1:8000`);
  const url = new URL(withScheme);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new InputError(`--upstream: '${shown}' is neither http:// nor https://`);
  }
  if (url.username !== '' || url.password !== '') {
    throw new InputError(`--upstream: leave user and password out of '${shown}'; callers' own keys are passed on`);
  }
  if (url.search !== '' || url.hash !== '') {
    throw new InputError(`--upstream: leave the query out of '${shown}'; each request brings its own`);
  }
  const tls = url.protocol === 'https:';
  const host = url.hostname.replace(/^\[|\]$/g, '');
  return {
    url: url.origin,
    authority: url.host,
    prefix: url.pathname.replace(/\/+$/, ''),
    host,
    port: Number(url.port) || (tls ? 443 : 80),
    tls,
    ...(tls && !/^[\d.]+$|:/.test(host) && { servername: host }),
    ...(ca && { ca }),
    ...(insecure && { rejectUnauthorized: false }),
  };
}

function readAuthorities(file: string): Buffer {
  return readPem(file, '--cacert', /-----BEGIN CERTIFICATE-----/, 'certificate');
}
