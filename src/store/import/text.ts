/** Result files as text: what they begin with, their lines, and JSON as Python writes it. */
import { closeSync, createReadStream, openSync, readFileSync, readSync, statSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { InputError, messageOf, oneLine } from '../../base/errors.ts';

/** A JSON text must fit one string of the JavaScript engine. */
const LARGEST = 500 * 2 ** 20;
/** A line of a result file beyond this is no request. */
const LONGEST_LINE = 200 * 2 ** 20;

export function headOf(path: string, where: string): string {
  try {
    const size = statSync(path).size;
    if (size === 0) throw new InputError(`${where}: is empty`);
    const file = openSync(path, 'r');
    try {
      const buffer = Buffer.alloc(Math.min(size, 256 * 1024));
      return buffer.toString('utf8', 0, readSync(file, buffer, 0, buffer.length, 0)).replace(/^\ufeff/, '');
    } finally {
      closeSync(file);
    }
  } catch (error) {
    if (error instanceof InputError) throw error;
    throw new InputError(`${where}: cannot be read (${messageOf(error)})`, { cause: error });
  }
}

export function wholeText(path: string, where: string): string {
  const { size } = statSync(path);
  if (size > LARGEST) {
    throw new InputError(
      `${where}: is ${Math.round(size / 2 ** 20)} MB of one value, more than can be read; keep fewer runs in a file`,
    );
  }
  return readFileSync(path, 'utf8').replace(/^\ufeff/, '');
}

export const wholeFile = (path: string, where: string): unknown => parsed(wholeText(path, where), where);

export async function wholeYaml(path: string, where: string): Promise<unknown> {
  const { parse } = await import('yaml');
  try {
    return parse(wholeText(path, where), { maxAliasCount: 10_000 });
  } catch (error) {
    const line = (error as { linePos?: readonly { line: number }[] }).linePos?.[0]?.line;
    throw new InputError(
      `${where}${line === undefined ? '' : ` line ${line}`}: is not YAML (${oneLine(messageOf(error).split('\n')[0] ?? '', 120)}); is the file whole?`,
      { cause: error },
    );
  }
}

export function parsed(text: string, where: string, line?: number): unknown {
  try {
    return parseJson(text);
  } catch (error) {
    const position = Number(/position (\d+)/.exec(messageOf(error))?.[1] ?? text.length);
    const at = line ?? text.slice(0, position).split('\n').length;
    throw new InputError(`${where} line ${at}: is not JSON (${oneLine(messageOf(error), 120)}); is the file whole?`, {
      cause: error,
    });
  }
}

const BARE = /"(?:[^"\\]|\\[\s\S])*"|-?\b(?:NaN|Infinity)\b/g;

/** Python writes NaN and Infinity into its JSON (an unlimited request rate is one): they are read as nothing. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (!/\b(NaN|Infinity)\b/.test(text)) throw error;
    return JSON.parse(text.replace(BARE, (found) => (found.startsWith('"') ? found : 'null')));
  }
}

export async function* linesOf(path: string, where: string): AsyncGenerator<{ value: unknown; line: number }> {
  const lines = createInterface({ input: createReadStream(path, 'utf8'), crlfDelay: Number.POSITIVE_INFINITY });
  let line = 0;
  for await (const text of lines) {
    line++;
    if (text.length > LONGEST_LINE) throw new InputError(`${where} line ${line}: is too long for a request`);
    const bare = line === 1 ? text.replace(/^\ufeff/, '') : text;
    if (bare.trim() !== '') yield { value: parsed(bare, where, line), line };
  }
}

export function tryParse(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}
