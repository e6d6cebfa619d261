/** Small JSON files, replaced whole: a reader sees the old one or the new one, never half of either. */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { InputError, messageOf } from '../base/errors.ts';

export function writeJson(folder: string, file: string, value: unknown): void {
  const path = join(folder, file);
  writeFileSync(`${path}.tmp`, `${JSON.stringify(value, undefined, 2)}\n`);
  renameSync(`${path}.tmp`, path);
}

/** The object in a JSON file; undefined when there is no such file. @throws InputError when it holds anything else. */
export function readJson(folder: string, file: string): Record<string, unknown> | undefined {
  const path = join(folder, file);
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT' || (error as NodeJS.ErrnoException).code === 'ENOTDIR') {
      return undefined;
    }
    throw new InputError(`${path}: cannot be read (${messageOf(error)}); check its permissions`, { cause: error });
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new InputError(
      `${path}: is not valid JSON (${messageOf(error)}); restore it from a copy, the rows beside it are untouched`,
      { cause: error },
    );
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new InputError(`${path}: holds no JSON object; restore it from a copy, the rows beside it are untouched`);
  }
  return value as Record<string, unknown>;
}

/** A string literal of SQL. */
export function quote(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
