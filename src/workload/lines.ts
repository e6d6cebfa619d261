/** Lines of a streamed text, whatever its pieces. A byte order mark and the line ends (LF or CRLF) are taken off. */
import { InputError } from '../base/errors.ts';

/** Text in pieces, as a file or a download gives it. */
export type Chunks = AsyncIterable<string> | Iterable<string>;

/** A longer line than this is not one of the formats read here. */
const MAX_LINE = 64 << 20;

/** @param each told of each line and its number, from 1; `false` ends the reading. @throws InputError naming the line. */
export async function eachLine(
  chunks: Chunks,
  what: string,
  each: (line: string, number: number) => unknown,
): Promise<void> {
  let rest = '';
  let number = 0;
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf('\n'); end >= 0; end = chunk.indexOf('\n', from)) {
      const piece = chunk.slice(from, end);
      from = end + 1;
      const line = rest === '' ? piece : rest + piece;
      rest = '';
      number++;
      if (each(plain(line, number), number) === false) return;
    }
    rest += from === 0 ? chunk : chunk.slice(from);
    if (rest.length > MAX_LINE)
      throw new InputError(`${what}:${number + 1}: a line of more than ${MAX_LINE} characters`);
  }
  if (rest !== '') each(plain(rest, number + 1), number + 1);
}

function plain(line: string, number: number): string {
  const end = line.endsWith('\r') ? line.length - 1 : line.length;
  const start = number === 1 && line.charCodeAt(0) === 0xfeff ? 1 : 0;
  return start === 0 && end === line.length ? line : line.slice(start, end);
}
