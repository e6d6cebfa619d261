/** The head of an upstream's response, read from bytes (RFC 9112). What it says of the body's length is settled here. */

/** A head longer than this is refused. */
export const MAX_HEAD_BYTES = 64 * 1024;

export interface ResponseHead {
  /** `1.0` or `1.1`. */
  readonly http: '1.0' | '1.1';
  readonly status: number;
  readonly reason: string;
  /** Name, value, name, value, … as they came. */
  readonly raw: readonly string[];
}

/** How the body ends. */
export type BodyLength =
  | { readonly kind: 'none' }
  | { readonly kind: 'length'; readonly bytes: number }
  | { readonly kind: 'chunked' }
  | { readonly kind: 'close' };

/** Thrown for a response that cannot be passed on without guessing. */
export class BadResponse extends Error {}

/** Where the head ends (behind its blank line), or −1. A line may end in a bare LF. */
export function headEnd(bytes: Uint8Array, from: number, to: number): number {
  for (let i = from; i < to; i++) {
    if (bytes[i] !== 10) continue;
    if (bytes[i + 1] === 10 && i + 1 < to) return i + 2;
    if (bytes[i + 1] === 13 && bytes[i + 2] === 10 && i + 2 < to) return i + 3;
  }
  return -1;
}

const STATUS = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: (.*))?$/;
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** Control characters in a value could split the head we write. */
const UNSAFE = /[\u0000-\u0008\u000a-\u001f\u007f]/;

/** @param text the head as latin1, its blank line included or not. @throws BadResponse */
export function parseHead(text: string): ResponseHead {
  const lines = text.split(/\r?\n/);
  const first = STATUS.exec(lines[0] ?? '');
  if (!first || UNSAFE.test(first[2] ?? '') || UNSAFE.test(first[3] ?? '')) {
    throw new BadResponse('it did not answer in HTTP/1');
  }
  const raw: string[] = [];
  for (let i = 1; i < lines.length; i++) {
    const line = lines[i] as string;
    if (line === '') continue;
    const colon = line.indexOf(':');
    const name = line.slice(0, colon);
    // A folded line or a space before the colon reads differently in different parsers.
    if (colon < 1 || !NAME.test(name)) throw new BadResponse('a header line is malformed');
    const value = line.slice(colon + 1).trim();
    if (UNSAFE.test(value)) throw new BadResponse('a header holds control characters');
    raw.push(name, value);
  }
  return { http: first[1] === '0' ? '1.0' : '1.1', status: Number(first[2]), reason: first[3] ?? '', raw };
}

/** The values of a header by its lower-case name, joined by commas; undefined without one. */
export function headerOf(raw: readonly string[], name: string): string | undefined {
  let value: string | undefined;
  for (let i = 0; i < raw.length; i += 2) {
    const is = raw[i] as string;
    if (is.length !== name.length || is.toLowerCase() !== name) continue;
    value = value === undefined ? (raw[i + 1] as string) : `${value}, ${raw[i + 1]}`;
  }
  return value;
}

/** RFC 9112, 6.3. @throws BadResponse where two readings are possible. */
export function bodyLength(head: ResponseHead, method: string): BodyLength {
  const { status, raw } = head;
  if (method === 'HEAD' || status < 200 || status === 204 || status === 304) return { kind: 'none' };
  const coding = headerOf(raw, 'transfer-encoding');
  const length = headerOf(raw, 'content-length');
  if (coding !== undefined) {
    if (coding.trim().toLowerCase() !== 'chunked') throw new BadResponse('its transfer coding is not chunked alone');
    if (length !== undefined) throw new BadResponse('it gives both a length and a transfer coding');
    return { kind: 'chunked' };
  }
  if (length === undefined) return { kind: 'close' };
  const all = new Set(length.split(',').map((part) => part.trim()));
  const [only] = all;
  if (all.size !== 1 || !/^\d{1,15}$/.test(only ?? '')) throw new BadResponse('its content-length is not one number');
  return { kind: 'length', bytes: Number(only) };
}

/** True where the upstream keeps the connection open after this response. */
export function keepsAlive(head: ResponseHead): boolean {
  const said = (headerOf(head.raw, 'connection') ?? '').toLowerCase();
  if (/\bclose\b/.test(said)) return false;
  return head.http === '1.1' || /\bkeep-alive\b/.test(said);
}
