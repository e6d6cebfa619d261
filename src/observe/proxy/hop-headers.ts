/** Which headers go on and which belong to one hop alone (RFC 9110, 7.6.1). */

const HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
]);

/** Names that this message's own `Connection` header says belong to the hop. */
function named(raw: readonly string[]): ReadonlySet<string> | undefined {
  let names: Set<string> | undefined;
  for (let i = 0; i < raw.length; i += 2) {
    if ((raw[i] as string).toLowerCase() !== 'connection') continue;
    for (const name of (raw[i + 1] as string).split(',')) (names ??= new Set()).add(name.trim().toLowerCase());
  }
  return names;
}

/** `raw` without what belongs to the hop; `Trailer` stays, since the trailers go on too. */
export function endToEnd(raw: readonly string[], drop?: ReadonlySet<string>): string[] {
  const also = named(raw);
  const kept: string[] = [];
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] as string;
    const lower = name.toLowerCase();
    if ((HOP.has(lower) && lower !== 'trailer') || also?.has(lower) || drop?.has(lower)) continue;
    kept.push(name, raw[i + 1] as string);
  }
  return kept;
}

export interface RequestHead {
  readonly method: string;
  /** Path and query, as it came. */
  readonly target: string;
  readonly raw: readonly string[];
  /** `HTTP/1.x` the client spoke. */
  readonly http: string;
}

const REPLACED: ReadonlySet<string> = new Set(['host', 'content-length', 'via']);

/** How the request's body is framed towards the upstream. */
export type RequestFraming =
  | { readonly kind: 'length'; readonly bytes: number }
  | { readonly kind: 'chunked' }
  | undefined;

/**
 * The head to send upstream, as bytes in latin1: what came, end to end, under the upstream's own host (or the caller's,
 * `host` undefined). Only names and values that node's parser accepted are in it, so it cannot hold a line break.
 */
export function upstreamHead(
  head: RequestHead,
  host: string | undefined,
  framing: RequestFraming,
  extra: readonly string[],
): string {
  let via = '';
  let ownHost = '';
  for (let i = 0; i < head.raw.length; i += 2) {
    const lower = (head.raw[i] as string).toLowerCase();
    if (lower === 'via') via += `${via && ', '}${head.raw[i + 1]}`;
    else if (lower === 'host') ownHost = head.raw[i + 1] as string;
  }
  let text = `${head.method} ${head.target} HTTP/1.1\r\nhost: ${host ?? ownHost}\r\n`;
  const kept = endToEnd(head.raw, REPLACED);
  for (let i = 0; i < kept.length; i += 2) text += `${kept[i]}: ${kept[i + 1]}\r\n`;
  if (framing?.kind === 'length') text += `content-length: ${framing.bytes}\r\n`;
  else if (framing?.kind === 'chunked') text += 'transfer-encoding: chunked\r\n';
  text += `via: ${via}${via && ', '}${head.http} ${VIA}\r\n`;
  for (let i = 0; i < extra.length; i += 2) text += `${extra[i]}: ${extra[i + 1]}\r\n`;
  return `${text}\r\n`;
}

/** Our name in `Via`. */
export const VIA = 'goodput';

/** True when the request has been through a proxy like this one so often that it must be going in circles. */
export function isLooping(via: string | undefined): boolean {
  if (via === undefined) return false;
  return via.split(',').filter((hop) => hop.trim().split(/\s+/)[1] === VIA).length >= 4;
}
