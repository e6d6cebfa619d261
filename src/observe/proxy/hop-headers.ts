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
    const name = raw[i] as string;
    if (name.length !== 10 || name.toLowerCase() !== 'connection') continue;
    for (const name of (raw[i + 1] as string).split(',')) (names ??= new Set()).add(name.trim().toLowerCase());
  }
  return names;
}

/** `raw` without what belongs to the hop; `Trailer` stays, since the trailers go on too. */
export function endToEnd(raw: readonly string[]): string[] {
  const also = named(raw);
  const kept: string[] = [];
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] as string;
    const lower = name.toLowerCase();
    if ((HOP.has(lower) && lower !== 'trailer') || also?.has(lower)) continue;
    kept.push(name, raw[i + 1] as string);
  }
  return kept;
}

/** How a request's body is framed towards the upstream. */
export type RequestFraming =
  | { readonly kind: 'length'; readonly bytes: number }
  | { readonly kind: 'chunked' }
  | undefined;

/** A request's headers, sorted out once. */
export interface RequestHeaders {
  /** `name: value` lines that go on as they came, each with its line end. */
  readonly lines: string;
  /** All of `Via`, joined. */
  readonly via: string;
  readonly host: string;
  readonly framing: RequestFraming;
  /** Why it cannot be passed on without guessing, with the status that says so. */
  readonly refusal?: { readonly status: 400 | 501; readonly why: string };
}

/** @param raw name, value, …: only what node's parser accepted, so that no value can hold a line break. */
export function requestHeaders(raw: readonly string[]): RequestHeaders {
  const also = named(raw);
  let lines = '';
  let via = '';
  let host: string | undefined;
  let hosts = 0;
  let coding: string | undefined;
  let length: string | undefined;
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] as string;
    const value = raw[i + 1] as string;
    const lower = name.toLowerCase();
    switch (lower) {
      case 'host':
        hosts++;
        host = value;
        continue;
      case 'via':
        via += `${via && ', '}${value}`;
        continue;
      case 'content-length':
        length = value;
        continue;
      case 'transfer-encoding':
        coding = coding === undefined ? value : `${coding}, ${value}`;
        continue;
    }
    if ((HOP.has(lower) && lower !== 'trailer') || also?.has(lower)) continue;
    lines += `${name}: ${value}\r\n`;
  }
  const refusal =
    hosts > 1
      ? ({ status: 400, why: 'more than one Host' } as const)
      : coding !== undefined && coding.trim().toLowerCase() !== 'chunked'
        ? ({ status: 501, why: 'a transfer coding other than chunked' } as const)
        : undefined;
  return {
    lines,
    via,
    host: host ?? '',
    framing:
      coding !== undefined
        ? { kind: 'chunked' }
        : length === undefined
          ? undefined
          : { kind: 'length', bytes: Number(length) },
    ...(refusal && { refusal }),
  };
}

export interface RequestHead {
  readonly method: string;
  /** Path and query, as it came. */
  readonly target: string;
  readonly headers: RequestHeaders;
  /** `HTTP/1.x` the client spoke. */
  readonly http: string;
}

/** The head to send upstream, in latin1: what came, under the upstream's own host (or the caller's, `host` undefined). */
export function upstreamHead({ method, target, headers, http }: RequestHead, host: string | undefined): string {
  const { framing, via } = headers;
  const body =
    framing === undefined
      ? ''
      : framing.kind === 'chunked'
        ? 'transfer-encoding: chunked\r\n'
        : `content-length: ${framing.bytes}\r\n`;
  return `${method} ${target} HTTP/1.1\r\nhost: ${host ?? headers.host}\r\n${headers.lines}${body}via: ${via}${via && ', '}${http} ${VIA}\r\n\r\n`;
}

/** Fields of a trailer that say how a message is framed or routed; a server that merged them could be misled. */
const NO_TRAILER: ReadonlySet<string> = new Set(['host', 'content-length', 'content-encoding', 'content-type', 'via']);

export function trailerLines(raw: readonly string[]): string {
  let lines = '';
  const kept = endToEnd(raw);
  for (let i = 0; i < kept.length; i += 2) {
    if (!NO_TRAILER.has((kept[i] as string).toLowerCase())) lines += `${kept[i]}: ${kept[i + 1]}\r\n`;
  }
  return lines;
}

/** Our name in `Via`. */
export const VIA = 'goodput';

/** True when the request has been through a proxy like this one so often that it must be going in circles. */
export function isLooping(via: string): boolean {
  if (via === '') return false;
  return via.split(',').filter((hop) => hop.trim().split(/\s+/)[1] === VIA).length >= 4;
}
