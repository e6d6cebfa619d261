/** A body as UTF-8 bytes, and bodies that are something else altogether. */

const DECODER = new TextDecoder();
const ENCODER = new TextEncoder();
/** Bytes that are looked at to tell what a body is. */
const HEAD = 512;

export interface Body {
  readonly bytes: Uint8Array;
  /** Why it is no metrics. */
  readonly wrong?: string;
}

/** A byte order mark is passed over; UTF-16, as some shells write files, is read as what it says. */
export function bodyOf(text: string | Uint8Array): Body {
  const given = typeof text === 'string' ? ENCODER.encode(text) : text;
  const bytes =
    given[0] === 0xff && given[1] === 0xfe
      ? ENCODER.encode(new TextDecoder('utf-16le').decode(given))
      : given[0] === 0xfe && given[1] === 0xff
        ? ENCODER.encode(new TextDecoder('utf-16be').decode(given))
        : given[0] === 0xef && given[1] === 0xbb && given[2] === 0xbf
          ? given.subarray(3)
          : given;
  const wrong = notMetrics(bytes);
  return wrong === undefined ? { bytes } : { bytes, wrong };
}

function notMetrics(bytes: Uint8Array): string | undefined {
  let from = 0;
  while (from < bytes.length && isBlank(bytes[from]!)) from++;
  const end = Math.min(bytes.length, from + HEAD);
  // Metrics begin with a name or a comment; `{` may begin a quoted name.
  switch (bytes[from]) {
    case 34:
      return 'the body is one JSON string, not metrics (some llama.cpp builds serve /metrics so); upgrade the server';
    case 60:
      return 'the body is HTML, not metrics: check the URL';
    case 91:
      return JSON_BODY;
    case 123:
      if (/^\{\s*("[^"]*"\s*:|\})/.test(DECODER.decode(bytes.subarray(from, end)))) return JSON_BODY;
  }
  let controls = 0;
  for (let at = from; at < end; at++) if (bytes[at]! < 32 && !isBlank(bytes[at]!)) controls++;
  if (controls * 10 > end - from) {
    return 'the body is binary, not text: ask the server for text/plain, or unpack the file';
  }
  return undefined;
}

const JSON_BODY = 'the body is JSON, not metrics: check the URL';

function isBlank(c: number): boolean {
  return c === 32 || (c >= 9 && c <= 13);
}
