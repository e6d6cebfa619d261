/**
 * One sample line of Prometheus text or OpenMetrics, read character by character: quoted values may hold anything. It decides
 * what is right and wrong; `scan` reads the plain lines, which are nearly all, without it.
 */
import type { CompositeValue } from './composite.ts';
import { readComposite } from './composite.ts';
import type { Exemplar, Labels } from './family.ts';
import { numberOf } from './family.ts';
import { LineError } from './line-error.ts';

export interface SampleLine {
  readonly name: string;
  readonly labels: Labels;
  /** NaN beside a composite. */
  readonly value: number;
  /** A whole histogram in one line (OpenMetrics 2). */
  readonly composite?: CompositeValue;
  /** As written: milliseconds in Prometheus text, seconds in OpenMetrics. */
  readonly timestamp?: number;
  /** Its timestamp as written: seconds. */
  readonly exemplar?: Exemplar;
}

const COMPOSITE = /\{\s*[a-z_]+:/y;

/** @throws LineError */
export function readSample(line: string): SampleLine {
  const reader = new Reader(line);
  let name = reader.name();
  let apart = reader.blank();
  const hasLabels = reader.at('{') && !reader.matches(COMPOSITE);
  const { labels, quotedName } = hasLabels ? reader.labels() : { labels: {}, quotedName: undefined };
  if (name === '' && quotedName !== undefined) name = quotedName;
  if (name === '') throw new LineError('it does not begin with a metric name');
  apart = reader.blank() || apart;
  if (!apart && reader.peek() !== '') {
    throw new LineError(`'${reader.rest(20)}' stands where a blank and a value should`);
  }
  const composite = reader.at('{') ? readComposite(reader.through('}')) : undefined;
  const value = composite === undefined ? reader.number('the value') : Number.NaN;
  let timestamp: number | undefined;
  if (reader.blank() && !reader.startsWith('st@') && reader.peek() !== '#' && reader.peek() !== '') {
    timestamp = reader.number('the timestamp');
  }
  reader.blank();
  if (reader.startsWith('st@')) {
    reader.token(); // OpenMetrics 2: when the series began
    reader.blank();
  }
  let exemplar: Exemplar | undefined;
  while (reader.at('#')) {
    reader.skip('#');
    reader.blank();
    if (!reader.at('{')) throw new LineError('an exemplar has no labels');
    const own = reader.labels().labels;
    reader.blank();
    const seen = reader.number("the exemplar's value");
    const at = reader.blank() && reader.peek() !== '' ? reader.number("the exemplar's timestamp") : undefined;
    exemplar ??= { labels: own, value: seen, ...(at !== undefined && { timestamp: at }) };
    reader.blank();
  }
  if (reader.peek() !== '') throw new LineError(`'${reader.rest(20)}' stands after the value`);
  return {
    name,
    labels,
    value,
    ...(composite !== undefined && { composite }),
    ...(timestamp !== undefined && { timestamp }),
    ...(exemplar && { exemplar }),
  };
}

/** Labels as they stand between braces: `a="b",c="d"`. @throws LineError */
export function readLabels(text: string): Labels {
  return new Reader(`{${text}}`).labels().labels;
}

const RUN = /[^"\\]+/y;
const NAME = /[a-zA-Z_:][a-zA-Z0-9_:.]*/y;

class Reader {
  readonly #text: string;
  #pos = 0;

  constructor(text: string) {
    this.#text = text;
  }

  matches(pattern: RegExp): boolean {
    pattern.lastIndex = this.#pos;
    return pattern.test(this.#text);
  }
  startsWith(text: string): boolean {
    return this.#text.startsWith(text, this.#pos);
  }
  /** What stands up to and with `end`. */
  through(end: string): string {
    const at = this.#text.indexOf(end, this.#pos);
    if (at < 0) throw new LineError(`'${end}' is missing after '${this.rest(20)}'`);
    const text = this.#text.slice(this.#pos, at + 1);
    this.#pos = at + 1;
    return text;
  }
  /** What stands up to the next blank. */
  token(): string {
    const from = this.#pos;
    while (this.peek() !== '' && !this.at(' ') && !this.at('\t')) this.#pos++;
    return this.#text.slice(from, this.#pos);
  }
  peek(): string {
    return this.#text.charAt(this.#pos);
  }
  at(c: string): boolean {
    return this.peek() === c;
  }
  rest(max: number): string {
    return this.#text.slice(this.#pos, this.#pos + max);
  }
  skip(c: string): void {
    if (!this.at(c)) throw new LineError(`'${c}' is missing before '${this.rest(20)}'`);
    this.#pos++;
  }
  /** Skips blanks; true when there were any. */
  blank(): boolean {
    const from = this.#pos;
    while (this.at(' ') || this.at('\t')) this.#pos++;
    return this.#pos > from;
  }
  name(): string {
    NAME.lastIndex = this.#pos;
    const name = NAME.exec(this.#text)?.[0] ?? '';
    this.#pos += name.length;
    return name;
  }
  number(what: string): number {
    const text = this.token();
    const value = numberOf(text);
    if (value === undefined) {
      throw new LineError(text === '' ? `${what} is missing` : `${what} '${text.slice(0, 40)}' is no number`);
    }
    return value;
  }

  /** From `{` to `}`. A quoted text alone is the metric's name (Prometheus 3). */
  labels(): { labels: Labels; quotedName: string | undefined } {
    const labels: Record<string, string> = {};
    let quotedName: string | undefined;
    this.skip('{');
    for (;;) {
      this.blank();
      if (this.at('}')) break;
      const quoted = this.at('"');
      const name = quoted ? this.#quoted() : this.name();
      if (name === '') throw new LineError(`a label has no name at '${this.rest(20)}'`);
      this.blank();
      if (quoted && !this.at('=')) {
        if (quotedName !== undefined) throw new LineError('it has two names');
        quotedName = name;
      } else {
        this.skip('=');
        this.blank();
        if (Object.hasOwn(labels, name)) throw new LineError(`the label ${name} stands twice`);
        labels[name] = this.#quoted();
      }
      this.blank();
      if (this.at(',')) this.#pos++;
      else if (!this.at('}')) throw new LineError(`',' or '}' is missing before '${this.rest(20)}'`);
    }
    this.skip('}');
    return { labels, quotedName };
  }

  #quoted(): string {
    this.skip('"');
    let value = '';
    for (;;) {
      const c = this.peek();
      if (c === '') throw new LineError('a label value is not closed');
      this.#pos++;
      if (c === '"') return value;
      if (c !== '\\') {
        RUN.lastIndex = this.#pos - 1;
        const run = RUN.exec(this.#text)?.[0] ?? c;
        value += run;
        this.#pos += run.length - 1;
        continue;
      }
      const e = this.peek();
      this.#pos++;
      if (e === 'n') value += '\n';
      else if (e === '\\' || e === '"') value += e;
      else throw new LineError(`'\\${e}' is no escape of the format`);
    }
  }
}
