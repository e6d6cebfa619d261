/** Making a run folder, and the errors of the file system in the words of whoever asked for it. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { InputError, messageOf, oneLine } from '../base/errors.ts';
import type { Millis } from '../base/units.ts';

/** `dir/20261129T140510Z-name`, made; `-2`, `-3`, … where that is taken. */
export function makeFolder(dir: string, name: string, epochWall: Millis): string {
  const base = `${timeName(epochWall)}-${safeName(name)}`;
  try {
    mkdirSync(dir, { recursive: true });
    for (let i = 1; ; i++) {
      const folder = join(dir, i === 1 ? base : `${base}-${i}`);
      try {
        mkdirSync(folder);
        return folder;
      } catch (error) {
        if (codeOf(error) !== 'EEXIST' || i === 1000) throw error;
      }
    }
  } catch (error) {
    throw new InputError(
      `${oneLine(dir)}: the run folder cannot be made (${why(error)}); choose another with --out DIR`,
      {
        cause: error,
      },
    );
  }
}

function timeName(wall: Millis): string {
  return new Date(wall).toISOString().replace(/[-:]/g, '').replace(/\.\d+/, '');
}

/** Letters, digits, `.`, `_` and `-`: a folder name anywhere, and never a path. */
function safeName(name: string): string {
  const safe = name
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/^[-.]+|[-.]+$/g, '')
    .slice(0, 80);
  return safe || 'run';
}

const WORDS: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'read-only file system',
  ENOSPC: 'disk full',
  EDQUOT: 'disk quota exceeded',
  EFBIG: 'file size limit reached',
  ENOENT: 'no such folder',
  ENOTDIR: 'part of the path is not a folder',
  EEXIST: 'a file of that name is in the way',
  EMFILE: 'too many open files',
  ENAMETOOLONG: 'the name is too long',
};

/** Why the file system, or DuckDB on top of it, refused: in words where we have them, else its own first line. */
export function why(error: unknown): string {
  const word = WORDS[codeOf(error) ?? ''];
  if (word) return word;
  const first = (error instanceof Error ? error.message : String(error)).split('\n')[0] ?? '';
  if (/no space left/i.test(first)) return 'disk full';
  return oneLine(first.replace(/^[A-Za-z ]+ Error: /, ''), 160) || messageOf(error);
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException | undefined)?.code;
}
