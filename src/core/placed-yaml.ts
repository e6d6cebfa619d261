/** YAML (or JSON, which is YAML) whose keys know their lines, so that an error can name them. Loads `yaml`: import it lazily. */
import { isNode, LineCounter, parseDocument } from 'yaml';
import { InputError, messageOf, oneLine } from '../base/errors.ts';

export interface PlacedYaml {
  readonly value: unknown;
  /** `FILE:LINE` of what stands at a path, or of one of its keys; the file alone where nothing stands there. */
  at(path: readonly PropertyKey[], key?: string): string;
}

/**
 * @param what the file's name, for errors. @param is what it should be, and what such a one begins with.
 * @throws InputError where it is too long, no YAML, or no mapping.
 */
export function placedYaml(
  text: string,
  what: string,
  is: { readonly kind: string; readonly like: string; readonly longest: number },
): PlacedYaml {
  if (text.length > is.longest) {
    throw new InputError(`${what}: longer than ${is.longest} characters, which is no ${is.kind}`);
  }
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: true });
  const broken = document.errors[0];
  if (broken) {
    const line = broken.linePos?.[0].line;
    throw new InputError(
      `${what}${line ? `:${line}` : ''}: not readable as YAML: ${oneLine(broken.message.split('\n')[0] ?? '')}`,
    );
  }
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: 100 });
  } catch (error) {
    throw new InputError(`${what}: not readable as YAML: ${messageOf(error)}`);
  }
  if (value === null || typeof value !== 'object' || Array.isArray(value)) {
    throw new InputError(`${what}: not a ${is.kind}: expected keys like ${is.like}`);
  }
  return {
    value,
    at(path, key) {
      const node = document.getIn(path, true);
      const offset = (key === undefined ? undefined : offsetOfKey(node, key)) ?? offsetOf(node);
      return offset === undefined ? what : `${what}:${lines.linePos(offset).line}`;
    },
  };
}

function offsetOf(node: unknown): number | undefined {
  return isNode(node) ? (node.range?.[0] ?? undefined) : undefined;
}

function offsetOfKey(node: unknown, key: string): number | undefined {
  const items = (node as { items?: readonly { key: unknown }[] } | null | undefined)?.items ?? [];
  const pair = items.find((item) => String((item.key as { value?: unknown } | null)?.value ?? item.key) === key);
  return offsetOf(pair?.key);
}
