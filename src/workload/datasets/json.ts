/**
 * One JSON document: ShareGPT's array of conversations, an array of any entries, an object that holds such arrays or entries
 * (`{ "data": […] }`, `{ "id1": {…} }`), a lone entry; also JSON lines under the name `.json`. Streamed: one entry is held at a
 * time.
 */
import type { Dataset } from '../dataset.ts';
import { eachItem } from '../json-items.ts';
import type { JsonKey } from '../json-stream.ts';
import type { Chunks } from '../lines.ts';
import { Collector } from './collect.ts';
import { CONVERSATION_KEYS, looksLikeEntry } from './entry.ts';
import { isMessage, isObject } from './messages.ts';
import { type DatasetOptions, MAX_PROMPT } from './options.ts';

/** Lists that belong to an entry, not lists of entries. */
const OWN: ReadonlySet<JsonKey> = new Set([...CONVERSATION_KEYS, 'tools', 'functions', 'content', 'input', 'prompt']);

/** Below the top: an element of the top array or of an array in the top object, or an entry in the top object. */
function isItem(path: readonly JsonKey[], value: unknown): boolean {
  if (path.length === 1) return typeof path[0] === 'number' ? true : looksLikeEntry(value);
  if (path.length !== 2 || typeof path[0] !== 'string' || typeof path[1] !== 'number') return false;
  if (!OWN.has(path[0])) return looksLikeEntry(value) || (typeof value === 'string' && path[0] !== 'stop');
  // `conversations` may hold conversations.
  return isObject(value) && !isMessage(value) && CONVERSATION_KEYS.some((key) => Array.isArray(value[key]));
}

export async function readDocument(chunks: Chunks, what: string, options: DatasetOptions): Promise<Dataset> {
  const found = new Collector(what, options);
  let inside = 0;
  await eachItem(
    chunks,
    what,
    isItem,
    ({ value, line, tooLarge }, path) => {
      if (tooLarge) {
        found.tooLong();
        return;
      }
      const where = `${what}:${line}`;
      if (path.length > 0) {
        inside++;
        found.add(value, where);
        return;
      }
      // The top itself: an entry of its own, or what is left of the list it was.
      const isLone = typeof value === 'string' || (isObject(value) && (inside === 0 || looksLikeEntry(value)));
      if (isLone) found.add(value, where);
      inside = 0;
    },
    MAX_PROMPT,
  );
  return found.finish();
}
