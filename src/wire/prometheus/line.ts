/** One sample line of Prometheus text or OpenMetrics, read character by character: quoted values may hold anything. */
import type { Exemplar, Labels } from './family.ts';
import { numberOf } from './family.ts';

export interface SampleLine {
  readonly name: string;
  readonly labels: Labels;
  readonly value: number;
  /** As written: milliseconds in Prometheus text, seconds in OpenMetrics. */
  readonly timestamp?: number;
  /** Its timestamp as written: seconds. */
  readonly exemplar?: Exemplar;
}

/** Why a line cannot be read. */
export class LineError extends Error {}

/** @throws LineError */
export function readSample(line: string): SampleLine {
  const reader = new Reader(line);
  let name = reader.name();
  let apart = reader.blank();
  const { labels, quotedName } = reader.at('{') ? reader.labels() : { labels: {}, quotedName: undefined };
  if (name === '' && quotedName !== undefined) name = quotedName;
  if (name === '') throw new LineError('it does not begin with a metric name');
  apart = reader.blank() || apart;
  if (!apart && reader.peek() !== '') {
    throw new LineError(`'${reader.rest(20)}' stands where a blank and a value should`);
  }
  const value = reader.number('the value');
  let timestamp: number | undefined;
  if (reader.blank() && reader.peek() !== '#' && reader.peek() !== '') timestamp = reader.number('the timestamp');
  reader.blank();
  let exemplar: Exemplar | undefined;
  if (reader.at('#')) {
    reader.skip('#');
    reader.blank();
    if (!reader.at('{')) throw new LineError('an exemplar has no labels');
    const own = reader.labels().labels;
    reader.blank();
    const seen = reader.number("the exemplar's value");
    const at = reader.blank() && reader.peek() !== '' ? reader.number("the exemplar's timestamp") : undefined;
    exemplar = { labels: own, value: seen, ...(at !== undefined && { timestamp: at }) };
    reader.blank();
  }
  if (reader.peek() !== '') throw new LineError(`'${reader.rest(20)}' stands after the value`);
  return { name, labels, value, ...(timestamp !== undefined && { timestamp }), ...(exemplar && { exemplar }) };
}

const NAME = /[a-zA-Z_:][a-zA-Z0-9_:.]*/y;

class Reader {
  readonly #text: string;
  #pos = 0;

  constructor(text: string) {
    this.#text = text;
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
    const from = this.#pos;
    while (this.peek() !== '' && !this.at(' ') && !this.at('\t')) this.#pos++;
    const text = this.#text.slice(from, this.#pos);
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
        value += c;
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
