/** What may stand before the body in a capture: a `#wire {json}` line that describes it, the HTTP head that `curl -i` prints. */
import { decodeUtf8 } from '../framing/bytes.ts';
import { isObject, textOf } from '../json.ts';

/** What a `#wire` line says of the capture, as far as it is used. */
export interface Header {
  readonly format?: string;
  readonly framing?: string;
}

export interface Capture {
  readonly header: Header;
  /** Of the response, where its head was captured too. */
  readonly http?: { readonly status: number; readonly contentType?: string };
  readonly body: Uint8Array;
}

const MARK = [...'#wire'].map((c) => c.charCodeAt(0));
const HTTP = [...'HTTP/'].map((c) => c.charCodeAt(0));
/** Longer heads are none. */
const LONGEST_HEAD = 64 * 1024;
/** Redirects, proxies and `100 Continue` together. */
const MOST_HEADS = 20;

export function openCapture(bytes: Uint8Array): Capture {
  const { header, body } = afterMark(bytes);
  return { header, ...afterHead(body) };
}

/** The body is every byte after the line feed of the `#wire` line. */
function afterMark(bytes: Uint8Array): { header: Header; body: Uint8Array } {
  if (!startsWith(bytes, MARK)) return { header: {}, body: bytes };
  const lf = bytes.indexOf(10);
  const end = lf < 0 ? bytes.length : lf;
  return {
    header: headerOf(decodeUtf8(bytes, MARK.length, end)),
    body: bytes.subarray(Math.min(end + 1, bytes.length)),
  };
}

function headerOf(text: string): Header {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return {};
  }
  if (!isObject(json)) return {};
  const format = textOf(json.format);
  const framing = textOf(json.framing);
  return { ...(format && { format }), ...(framing && { framing }) };
}

/** Skips HTTP heads, of which there are several after a proxy's or a `100 Continue`; the last one is the response's. */
function afterHead(bytes: Uint8Array): Pick<Capture, 'http' | 'body'> {
  let body = bytes;
  let last: RegExpExecArray | undefined;
  for (let heads = 0; heads < MOST_HEADS && startsWith(body, HTTP); heads++) {
    const text = decodeUtf8(body, 0, Math.min(body.length, LONGEST_HEAD));
    const head = /^HTTP\/[\d.]+ (\d{3})[^\n]*\n(?:[^\r\n][^\n]*\n)*\r?\n/.exec(text);
    if (head === null) break;
    last = head;
    body = body.subarray(new TextEncoder().encode(head[0]).length);
  }
  if (last === undefined) return { body };
  const contentType = /^content-type:[ \t]*([^\r\n]+)/im.exec(last[0])?.[1];
  return { http: { status: Number(last[1]), ...(contentType !== undefined && { contentType }) }, body };
}

function startsWith(bytes: Uint8Array, mark: readonly number[]): boolean {
  return mark.every((c, i) => bytes[i] === c);
}
