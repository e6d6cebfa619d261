/**
 * What a request asks for, as far as a record needs it: read from the body's top level without building it. Prompts are
 * skipped over, never kept.
 */
import type { DialectName } from '../../wire/index.ts';

export interface RequestFacts {
  readonly stream: boolean;
  readonly choices: number;
  /** Tokens at most; 0 where the request leaves it open. */
  readonly outputTokens: number;
}

/** Dialects that stream unless told not to, and those whose path alone decides. */
const STREAMS_BY_DEFAULT: ReadonlySet<DialectName> = new Set(['ollama.chat', 'ollama.generate']);
const STREAMS_BY_PATH: Readonly<Partial<Record<DialectName, RegExp>>> = {
  'gemini.stream': /:streamGenerateContent/,
  'tgi.generate_stream': /generate_stream/,
  'triton.generate_stream': /generate_stream/,
};
const LIMITS: ReadonlySet<string> = new Set([
  'max_completion_tokens',
  'max_tokens',
  'max_output_tokens',
  'max_new_tokens',
  'n_predict',
  'num_predict',
  'maxOutputTokens',
]);
const CHOICES: ReadonlySet<string> = new Set(['n', 'candidateCount', 'num_return_sequences']);
/** Objects whose own fields count as the request's. */
const OPTIONS: ReadonlySet<string> = new Set([
  'options',
  'generationConfig',
  'parameters',
  'sampling_params',
  'extra_body',
]);

export function requestFacts(dialect: DialectName, path: string, body: Buffer | undefined): RequestFacts {
  const found = { stream: STREAMS_BY_DEFAULT.has(dialect), choices: 1, outputTokens: 0 };
  if (body !== undefined) scan(body, found);
  const byPath = STREAMS_BY_PATH[dialect];
  return byPath === undefined ? found : { ...found, stream: byPath.test(path) };
}

const QUOTE = 34;
const BACKSLASH = 92;

/** One pass over the bytes; a long text is skipped from quote to quote. Anything malformed ends the scan. */
function scan(b: Buffer, found: { stream: boolean; choices: number; outputTokens: number }): void {
  let depth = 0;
  /** The depth up to which keys count: 1, or 2 inside an options object. */
  let open = 1;
  let key = '';
  let expectKey = false;
  for (let i = 0; i < b.length; i++) {
    switch (b[i]) {
      case 123: // {
        depth++;
        expectKey = true;
        if (depth === 2 && OPTIONS.has(key)) open = 2;
        break;
      case 91: // [
        depth++;
        expectKey = false;
        break;
      case 125: // }
      case 93: // ]
        depth--;
        if (depth === 1) open = 1;
        expectKey = false;
        break;
      case 44: // ,
        expectKey = true;
        break;
      case QUOTE: {
        const end = closingQuote(b, i + 1);
        if (end < 0) return;
        if (expectKey && depth <= open) {
          key = end - i <= 64 ? b.toString('latin1', i + 1, end) : '';
          expectKey = false;
        }
        i = end;
        break;
      }
      case 58: // :
        if (depth <= open && depth > 0) value(b, i + 1, key, found);
        break;
    }
  }
}

function value(
  b: Buffer,
  from: number,
  key: string,
  found: { stream: boolean; choices: number; outputTokens: number },
): void {
  const isStream = key === 'stream';
  if (!isStream && !LIMITS.has(key) && !CHOICES.has(key)) return;
  const m = /^\s*(true|false|\d{1,9})\s*[,}\]]/.exec(b.toString('latin1', from, from + 40));
  if (!m) return;
  const text = m[1] as string;
  if (isStream) {
    if (text === 'true' || text === 'false') found.stream = text === 'true';
  } else if (LIMITS.has(key)) found.outputTokens = Math.max(found.outputTokens, Number(text) || 0);
  else found.choices = Math.min(Math.max(1, Number(text) || 1), 65_535);
}

/** Where the string that began before `from` ends, or −1. */
function closingQuote(b: Buffer, from: number): number {
  for (let at = b.indexOf(QUOTE, from); at >= 0; at = b.indexOf(QUOTE, at + 1)) {
    let slashes = 0;
    while (b[at - 1 - slashes] === BACKSLASH && at - 1 - slashes >= from) slashes++;
    if (slashes % 2 === 0) return at;
  }
  return -1;
}
