/** Small files a diagnosis reads whole: changes, told figures, metrics texts. */
import { readFileSync, statSync } from 'node:fs';
import { parse as parseYaml } from 'yaml';
import { InputError, messageOf, oneLine } from '../base/errors.ts';
import { type Changes, readChanges, readTold, type Told } from '../diagnose/index.ts';

const LARGEST = 64 * 1024 * 1024;

export function readText(path: string, flag: string): string {
  const shown = oneLine(path);
  try {
    if (statSync(path).size > LARGEST)
      throw new InputError(`${flag}: ${shown} is larger than 64 MB; give the scrape itself`);
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof InputError) throw error;
    throw new InputError(`${flag}: ${shown} cannot be read (${messageOf(error)})`);
  }
}

function readStructured(path: string, flag: string): unknown {
  const text = readText(path, flag);
  try {
    // JSON is YAML; aliases are bounded by the parser.
    return parseYaml(text, { maxAliasCount: 50 });
  } catch (error) {
    throw new InputError(`${flag}: ${oneLine(path)} is neither YAML nor JSON (${messageOf(error)})`);
  }
}

export function readChangesFile(path: string): Changes {
  return readChanges(readStructured(path, '--changes'), oneLine(path));
}

export function readToldFile(path: string, flag: string): Told {
  return readTold(readStructured(path, flag), oneLine(path));
}
