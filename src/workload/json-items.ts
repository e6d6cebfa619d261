/**
 * The values of one big JSON text, one at a time: the elements of its array, or what an object holds; several documents one
 * after another (JSON lines under another name) are taken in turn. Nothing but the value under way is held.
 */
import { InputError } from '../base/errors.ts';
import { type JsonKey, type JsonScalar, readJson } from './json-stream.ts';
import type { Chunks } from './lines.ts';

export interface JsonItem {
  readonly value: unknown;
  readonly line: number;
  /** It had more text than is kept, and is not whole. */
  readonly tooLarge: boolean;
}

/** Which values are handed out by themselves instead of being kept in what holds them. */
export type IsItem = (path: readonly JsonKey[], value: unknown) => boolean;

/**
 * @param isItem asked of each value below the top as it is complete, with its path; what is not an item stays in its parent.
 * @param item told of each item, and at last of each top-level value with what was left in it.
 * @param limit characters of text kept of one value.
 */
export async function eachItem(
  chunks: Chunks,
  what: string,
  isItem: IsItem,
  item: (item: JsonItem, path: readonly JsonKey[]) => void,
  limit: number,
): Promise<void> {
  interface Open {
    readonly value: Record<string, unknown> | unknown[];
    readonly line: number;
    text: number;
  }
  const open: Open[] = [];
  const done = (path: readonly JsonKey[], value: unknown, line: number, text: number): void => {
    const parent = open.at(-1);
    const tooLarge = text > limit;
    if (!parent) item({ value, line, tooLarge }, path);
    else if (isItem(path, value)) item({ value, line, tooLarge }, path);
    else {
      parent.text += text;
      if (parent.text > limit) return; // not whole any more: nothing more is kept of it
      if (Array.isArray(parent.value)) parent.value.push(value);
      else {
        const key = String(path.at(-1));
        // A plain property, whatever its name.
        Object.defineProperty(parent.value, key, { value, enumerable: true, configurable: true, writable: true });
      }
    }
  };
  await readJson(
    chunks,
    what,
    {
      scalar(path, value: JsonScalar, line) {
        done(path, value, line, typeof value === 'string' ? value.length + 8 : 8);
      },
      opened(_path, kind, line) {
        open.push({ value: kind === '[' ? [] : {}, line, text: 16 });
      },
      closed(path) {
        const { value, line, text } = open.pop() as Open;
        done(path, value, line, text);
      },
    },
    limit + 1,
    true,
  );
  if (open.length > 0) throw new InputError(`${what}: ends early`);
}
