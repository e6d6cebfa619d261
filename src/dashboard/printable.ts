/** Text of others on its way to a page. */
import { oneLine } from '../base/errors.ts';

/** Longer texts are cut: a page shows a line, and a megabyte of it would only stop the browser. */
const MOST = 4000;
/** Names that must come back as they are, to be looked up again. */
const EXACT: ReadonlySet<string> = new Set(['id', 'parent']);

/**
 * For `JSON.stringify`: texts without control characters or marks that turn the direction of writing, so that what is read
 * is what is there. That they are no markup is the page's part: it only ever makes them text.
 */
export function printable(key: string, value: unknown): unknown {
  return typeof value === 'string' && !EXACT.has(key) ? oneLine(value, MOST) : value;
}
