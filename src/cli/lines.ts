/** Bytes to lines, with a bound on how long one may be. */
import { InputError } from '../base/errors.ts';

/** A line longer than this is no record of ours. */
const MAX_LINE = 64 * 1024 * 1024;

/** Lines without their ends (LF or CRLF) and without a byte order mark. @throws InputError on an endless line. */
export async function* linesOf(bytes: AsyncIterable<Uint8Array | string>): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8');
  let pieces: string[] = [];
  let pending = 0;
  let number = 1;
  const whole = (tail: string): string => {
    let line = pieces.length === 0 ? tail : pieces.join('') + tail;
    if (number === 1 && line.startsWith('\uFEFF')) line = line.slice(1);
    pieces = [];
    pending = 0;
    number++;
    return line.endsWith('\r') ? line.slice(0, -1) : line;
  };
  for await (const chunk of bytes) {
    const text = typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true });
    let from = 0;
    for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', from)) {
      yield whole(text.slice(from, at));
      from = at + 1;
    }
    if (from < text.length) {
      pieces.push(text.slice(from));
      pending += text.length - from;
      if (pending > MAX_LINE)
        throw new InputError(`line ${number}: longer than ${MAX_LINE} characters, which is no record`);
    }
  }
  const rest = decoder.decode();
  if (pending > 0 || rest !== '') yield whole(rest);
}
