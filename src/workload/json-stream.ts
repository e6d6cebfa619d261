/**
 * A streamed reader of one big JSON document: tells each scalar with the path it stands at, and each object and array as it
 * opens and closes, without ever holding the document. Values longer than a limit are cut, since nothing read here needs
 * them. Syntax is checked as far as a reader needs: what is not JSON is refused with its line.
 */
import { InputError, oneLine } from '../base/errors.ts';
import type { Chunks } from './lines.ts';

export type JsonKey = string | number;
export type JsonScalar = string | number | boolean | null;

/** Told what is found. `path` is valid during the call only. */
export interface JsonVisitor {
  scalar?(path: readonly JsonKey[], value: JsonScalar, line: number): void;
  opened?(path: readonly JsonKey[], kind: '{' | '[', line: number): void;
  closed?(path: readonly JsonKey[], kind: '{' | '[', line: number): void;
}

const MAX_DEPTH = 100;

/**
 * @param maxString longest text kept of a string value; the rest of it is passed over.
 * @param many further documents may follow the first. @throws InputError
 */
export async function readJson(
  chunks: Chunks,
  what: string,
  visitor: JsonVisitor,
  maxString = 1 << 20,
  many = false,
): Promise<void> {
  const reader = new Reader(what, visitor, maxString, many);
  for await (const chunk of chunks) reader.feed(chunk);
  reader.end();
}

type State = 'value' | 'first-value' | 'key' | 'first-key' | 'colon' | 'after' | 'string' | 'literal' | 'done';

class Reader {
  readonly #what: string;
  readonly #visitor: JsonVisitor;
  readonly #maxString: number;
  readonly #many: boolean;
  readonly #path: JsonKey[] = [];
  readonly #kinds: ('{' | '[')[] = [];
  #state: State = 'value';
  #line = 1;
  #text = '';
  #escaped = false;
  #hasEscape = false;
  #isKey = false;
  #first = true;

  constructor(what: string, visitor: JsonVisitor, maxString: number, many: boolean) {
    this.#what = what;
    this.#visitor = visitor;
    this.#maxString = maxString;
    this.#many = many;
  }

  feed(chunk: string): void {
    let i = this.#first && chunk.charCodeAt(0) === 0xfeff ? 1 : 0;
    if (chunk.length > 0) this.#first = false;
    while (i < chunk.length) {
      if (this.#state === 'string') i = this.#inString(chunk, i);
      else if (this.#state === 'literal') i = this.#inLiteral(chunk, i);
      else {
        const c = chunk.charCodeAt(i);
        if (c === 10) this.#line++;
        if (c !== 32 && c !== 10 && c !== 13 && c !== 9) this.#token(chunk[i] as string);
        if ((this.#state as State) !== 'literal') i++; // a literal is read again from its first character
      }
    }
  }

  end(): void {
    if (this.#state === 'literal' && this.#kinds.length === 0) this.#literalDone();
    if (this.#state !== 'done') throw this.#bad('the document ends early; it is cut off');
  }

  #token(c: string): void {
    switch (this.#state) {
      case 'first-value':
        if (c === ']') this.#close('[');
        else this.#value(c);
        break;
      case 'value':
        this.#value(c);
        break;
      case 'first-key':
        if (c === '}') this.#close('{');
        else this.#key(c);
        break;
      case 'key':
        this.#key(c);
        break;
      case 'colon':
        if (c !== ':') throw this.#bad(`'${oneLine(c)}' where ':' belongs`);
        this.#state = 'value';
        break;
      case 'after':
        this.#after(c);
        break;
      default:
        if (!this.#many) throw this.#bad(`'${oneLine(c)}' after the end of the document`);
        this.#value(c);
    }
  }

  #after(c: string): void {
    const kind = this.#kinds.at(-1) as '{' | '[';
    if (c === ',') {
      if (kind === '[') (this.#path[this.#path.length - 1] as number) += 1;
      this.#state = kind === '[' ? 'value' : 'key';
    } else if (c === (kind === '[' ? ']' : '}')) this.#close(kind);
    else throw this.#bad(`'${oneLine(c)}' where ',' or the end belongs`);
  }

  #value(c: string): void {
    if (c === '{' || c === '[') {
      if (this.#kinds.length >= MAX_DEPTH) throw this.#bad(`nested deeper than ${MAX_DEPTH}`);
      this.#visitor.opened?.(this.#path, c, this.#line);
      this.#kinds.push(c);
      this.#path.push(c === '[' ? 0 : '');
      this.#state = c === '[' ? 'first-value' : 'first-key';
    } else if (c === '"') this.#begin(false);
    else {
      this.#text = '';
      this.#state = 'literal';
    }
  }

  #key(c: string): void {
    if (c !== '"') throw this.#bad(`'${oneLine(c)}' where a key belongs`);
    this.#begin(true);
  }

  #begin(isKey: boolean): void {
    this.#isKey = isKey;
    this.#text = '';
    this.#escaped = false;
    this.#hasEscape = false;
    this.#state = 'string';
  }

  /** @returns where reading goes on. */
  #inString(chunk: string, from: number): number {
    let i = from;
    for (; i < chunk.length; i++) {
      if (this.#escaped) {
        this.#escaped = false;
        continue;
      }
      const c = chunk.charCodeAt(i);
      if (c === 92) {
        this.#escaped = true;
        this.#hasEscape = true;
      } else if (c === 34) break;
      else if (c === 10) throw this.#bad('a string that does not end on its line');
    }
    if (this.#text.length < this.#maxString) this.#text += chunk.slice(from, i);
    if (i === chunk.length) return i;
    this.#stringDone();
    return i + 1;
  }

  #stringDone(): void {
    let text = this.#text;
    if (this.#hasEscape) {
      try {
        text = JSON.parse(`"${text}"`) as string;
      } catch {
        // Cut in the middle of an escape, or a bad one: what a reader wants of it is not in it.
        if (text.length < this.#maxString) throw this.#bad(`an escape in a string is not JSON's`);
      }
    }
    if (this.#isKey) {
      this.#path[this.#path.length - 1] = text;
      this.#state = 'colon';
      return;
    }
    this.#visitor.scalar?.(this.#path, text, this.#line);
    this.#valueDone();
  }

  #inLiteral(chunk: string, from: number): number {
    let i = from;
    while (i < chunk.length && LITERAL.has(chunk.charCodeAt(i))) i++;
    this.#text += chunk.slice(from, i);
    if (this.#text.length > 400) throw this.#bad(`'${oneLine(this.#text, 20)}' is no value`);
    if (i < chunk.length) this.#literalDone();
    return i;
  }

  #literalDone(): void {
    const text = this.#text;
    let value: JsonScalar;
    if (text === 'null') value = null;
    else if (text === 'true' || text === 'false') value = text === 'true';
    // Python writes these; they are not JSON, and no reader here needs their value.
    else if (text === 'NaN' || text === 'Infinity' || text === '-Infinity') value = null;
    else if (NUMBER.test(text)) value = Number(text);
    else throw this.#bad(`'${oneLine(text, 20)}' is no value`);
    this.#visitor.scalar?.(this.#path, value, this.#line);
    this.#valueDone();
  }

  #close(kind: '{' | '['): void {
    this.#kinds.pop();
    this.#path.pop();
    this.#visitor.closed?.(this.#path, kind, this.#line);
    this.#valueDone();
  }

  #valueDone(): void {
    this.#state = this.#kinds.length === 0 ? 'done' : 'after';
  }

  #bad(why: string): InputError {
    return new InputError(`${this.#what}:${this.#line}: not JSON: ${why}`);
  }
}

const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
/** Characters of numbers, `true`, `false`, `null`, `NaN`, `Infinity`. */
const LITERAL: ReadonlySet<number> = new Set(
  Array.from('+-.0123456789abcdefghijklmnopqrstuvwxyzEINT', (c) => c.charCodeAt(0)),
);
