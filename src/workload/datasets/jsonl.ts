/** JSON lines: an entry a line (`entry.ts`), or a bare text in quotes. Plain text files: a prompt a line. */
import { InputError, messageOf } from '../../base/errors.ts';
import type { Dataset } from '../dataset.ts';
import { type Chunks, eachLine } from '../lines.ts';
import { Collector } from './collect.ts';
import type { DatasetOptions } from './options.ts';

export async function readJsonl(chunks: Chunks, what: string, options: DatasetOptions): Promise<Dataset> {
  const found = new Collector(what, options);
  await eachLine(chunks, what, (line, number) => {
    if (line.trim() === '') return;
    const where = `${what}:${number}`;
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch (error) {
      throw new InputError(
        `${where}: not JSON: ${messageOf(error)}${number === 1 && /^\s*[[{]\s*$/.test(line) ? "; of one document over many lines say 'format: json'" : ''}`,
      );
    }
    found.add(value, where);
  });
  return found.finish();
}

export async function readText(chunks: Chunks, what: string, options: DatasetOptions): Promise<Dataset> {
  const found = new Collector(what, options);
  await eachLine(chunks, what, (line, number) => {
    if (line.trim() !== '') found.add(line, `${what}:${number}`);
  });
  return found.finish();
}
