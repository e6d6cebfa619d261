/**
 * Reads Prometheus text 0.0.4 and OpenMetrics. What cannot be read is told with its line and never guessed at: a family
 * with a problem is left out whole, so that no number of it is wrong. Types come from `# TYPE`, never from a name's ending
 * (vLLM's `iteration_tokens_total` is a histogram); only `_bucket` with an `le` shows a histogram without one.
 */
import { assert, InputError, oneLine } from '../../base/errors.ts';
import { bodyOf } from './body.ts';
import { type Checked, checkFamily, type Draft } from './check.ts';
import { type Comment, commentOf } from './comment.ts';
import type { Exemplar, HistogramSeries, MetricFamily, MetricSample, MetricType } from './family.ts';
import { LabelTable } from './labels.ts';
import { LineError } from './line-error.ts';
import { Scan } from './scan.ts';

export interface MetricProblem {
  /** From 1. */
  readonly line: number;
  readonly message: string;
}

/** A family as it was read: the series of a histogram put together. */
export interface ReadFamily extends MetricFamily {
  /** Of a histogram, also those of which only `_count` and `_sum` are told: then without bounds. */
  readonly histograms?: readonly HistogramSeries[];
  /** The line of its first sample, from 1. */
  readonly line: number;
}

export interface ReadMetrics {
  readonly families: readonly ReadFamily[];
  readonly problems: readonly MetricProblem[];
}

/** @throws InputError at the first problem, naming its line. */
export function parsePrometheus(text: string | Uint8Array): readonly MetricFamily[] {
  const { families, problems } = readPrometheus(text);
  const first = problems.reduce<MetricProblem | undefined>(
    (a, b) => (a === undefined || b.line < a.line ? b : a),
    undefined,
  );
  if (first !== undefined) throw new InputError(`metrics, line ${first.line}: ${first.message}`);
  return families;
}

/**
 * Reads what can be read and tells the rest.
 * @param text a string, or its bytes.
 * @param table what other texts' labels were read with: replicas of one service say the same ones. The samples of a text are
 * to be taken before the next is read with it.
 */
export function readPrometheus(text: string | Uint8Array, table: LabelTable = new LabelTable()): ReadMetrics {
  const { bytes, wrong } = bodyOf(text);
  if (wrong !== undefined) return { families: [], problems: [{ line: 1, message: wrong }] };
  table.prune();
  return new Reading(bytes, table).result();
}

const TYPES: Readonly<Record<string, MetricType>> = {
  counter: 'counter',
  gauge: 'gauge',
  histogram: 'histogram',
  gaugehistogram: 'gaugehistogram',
  summary: 'summary',
  info: 'info',
  stateset: 'stateset',
  untyped: 'untyped',
  unknown: 'untyped',
};

/** Suffixes by which samples of a typed family are named. */
const SUFFIXES: Readonly<Record<MetricType, readonly string[]>> = {
  counter: ['_total', '_created'],
  gauge: [],
  histogram: ['_bucket', '_sum', '_count', '_created'],
  gaugehistogram: ['_bucket', '_gsum', '_gcount'],
  summary: ['_sum', '_count', '_created'],
  info: ['_info'],
  stateset: [],
  untyped: [],
};

interface Owner {
  readonly family: Draft;
  readonly suffix: string;
}

/** Problems told one by one; beyond them only their number, so that hostile text cannot fill the memory. */
const MOST_PROBLEMS = 1000;

const LF = 10;
const HASH = 35;
const DECODER = new TextDecoder();
const NO_ROWS = new Int32Array(0);

class Reading {
  readonly #bytes: Uint8Array;
  readonly #table: LabelTable;
  readonly #scan: Scan;
  readonly #families = new Map<string, Draft>();
  readonly #problems: MetricProblem[] = [];
  #untold = 0;
  #isOpenMetrics = false;
  /** Names of lines that could not be read; their families are left out. */
  readonly #broken = new Set<string>();
  /** By the scan's number of a name. */
  readonly #owners: Owner[] = [];

  constructor(bytes: Uint8Array, table: LabelTable) {
    this.#bytes = bytes;
    this.#table = table;
    this.#scan = new Scan(bytes, table);
    this.#lines();
    this.#place();
    const checked: Checked = {
      scan: this.#scan,
      table,
      suffix: (row) => this.#suffix(row),
      problem: (line, message) => this.#problem(line, message),
    };
    for (const family of this.#families.values()) {
      const before = this.#problems.length + this.#untold;
      checkFamily(family, checked);
      if (this.#problems.length + this.#untold > before) family.broken = true;
    }
  }

  result(): ReadMetrics {
    const families: ReadFamily[] = [];
    for (const f of this.#families.values()) {
      if (!f.broken && (f.rows.length > 0 || f.composites.length > 0)) families.push(this.#finished(f));
    }
    if (this.#untold > 0) {
      this.#problems.push({ line: 0, message: `${this.#untold} more problems of the same text are not told` });
    }
    return { families, problems: this.#problems };
  }

  #lines(): void {
    const bytes = this.#bytes;
    const scan = this.#scan;
    const last = bytes.lastIndexOf(LF);
    let line = 0;
    let from = 0;
    while (from <= last) {
      line++;
      if (bytes[from] !== HASH && !this.#isOpenMetrics) {
        const next = scan.plain(from, line);
        if (next >= 0) {
          const read = scan.rows;
          from = scan.buckets(next, line + 1);
          line += scan.rows - read;
          continue;
        }
      }
      const end = bytes.indexOf(LF, from);
      this.#odd(from, end, line, true);
      from = end + 1;
    }
    if (from < bytes.length) this.#odd(from, bytes.length, line + 1, false);
  }

  /** A line that is no plain sample, [from, to). */
  #odd(from: number, to: number, line: number, isWhole: boolean): void {
    const comment = this.#bytes[from] === HASH ? commentOf(this.#bytes, from, to, this.#table.names) : undefined;
    if (comment !== undefined && !this.#isOpenMetrics) {
      this.#comment(comment, line);
      return;
    }
    const text = DECODER.decode(this.#bytes.subarray(from, to)).trim();
    if (text === '') return;
    if (this.#isOpenMetrics) this.#problem(line, 'a line stands after # EOF');
    else if (text.startsWith('#')) {
      if (/^#[ \t]+EOF$/.test(text)) this.#isOpenMetrics = true;
    } else if (!isWhole) {
      this.#problem(line, 'the last line is not ended by a line feed: the body may have been cut inside a number');
      this.#breaks(text);
    } else {
      try {
        this.#scan.odd(text, line);
      } catch (error) {
        if (!(error instanceof LineError)) throw error;
        this.#problem(line, error.message);
        this.#breaks(text);
      }
    }
  }

  #comment({ keyword, name, rest }: Comment, line: number): void {
    const family = this.#family(name);
    if (keyword === 'HELP')
      family.help ??= () => rest().replace(/\\([\\n"])/g, (_, c: string) => (c === 'n' ? '\n' : c));
    else if (keyword === 'UNIT') family.unit ??= rest().trim();
    else this.#type(family, rest().trim(), line);
  }

  #type(family: Draft, word: string, line: number): void {
    const lower = word.toLowerCase();
    const type = Object.hasOwn(TYPES, lower) ? TYPES[lower] : undefined;
    const wrong =
      type === undefined
        ? `'${word}' is no type of a metric (${family.name})`
        : family.typed && family.type !== type
          ? `${family.name} is given a second type, ${type} after ${family.type}`
          : !family.typed && this.#scan.hasSeen(family.name)
            ? `the type of ${family.name} stands after its samples`
            : undefined;
    if (wrong !== undefined) {
      family.broken = true;
      this.#problem(line, wrong);
    } else if (!family.typed) {
      // Said again, as where two engines' texts are joined, it changes nothing.
      family.type = type!;
      family.typed = true;
    }
  }

  #finished({ name, type, help, unit, rows, composites, histograms }: Draft): ReadFamily {
    const scan = this.#scan;
    const sample = (row: number): MetricSample => this.#sample(row);
    const table = this.#table;
    const { texts } = table;
    let made: readonly MetricSample[] | undefined;
    return {
      name,
      type,
      ...(help !== undefined && { help: help() }),
      ...(unit !== undefined && unit !== '' && { unit }),
      // Made when asked for: who wants the histograms needs no object a bucket.
      get samples() {
        if (made === undefined) assert(texts === table.texts, 'samples are asked for after another text was read');
        return (made ??= Array.from(rows, sample));
      },
      line: rows.length > 0 ? scan.line(rows[0]!) : (composites[0]?.line ?? 0),
      ...(histograms !== undefined && { histograms }),
    };
  }

  #sample(row: number): MetricSample {
    const scan = this.#scan;
    const suffix = this.#suffix(row);
    const le = scan.le(row);
    const labels = this.#table.labels(scan.series(row));
    const extra = scan.extra(row);
    const exemplar = extra?.exemplar;
    const timestamp = extra?.timestamp;
    return {
      ...(suffix !== '' && { suffix }),
      labels: le === undefined ? labels : { ...labels, le },
      value: scan.value(row),
      ...(timestamp !== undefined && { timestamp: this.#isOpenMetrics ? timestamp * 1000 : timestamp }),
      ...(exemplar !== undefined && { exemplar: inMillis(exemplar) }),
    };
  }

  #suffix(row: number): string {
    return this.#owners[this.#scan.name(row)]!.suffix;
  }

  #problem(line: number, message: string): void {
    if (this.#problems.length < MOST_PROBLEMS) this.#problems.push({ line, message: oneLine(message) });
    else this.#untold++;
  }

  #family(name: string): Draft {
    let family = this.#families.get(name);
    if (family === undefined) {
      family = { name, type: 'untyped', typed: false, rows: NO_ROWS, composites: [], broken: false };
      this.#families.set(name, family);
    }
    return family;
  }

  #breaks(text: string): void {
    const name = /^[a-zA-Z_:][\w:.]*/.exec(text)?.[0] ?? /^\{\s*"([^"\\]*)"/.exec(text)?.[1];
    if (name !== undefined) this.#broken.add(name);
  }

  /** Puts each sample in its family, by the types that were declared. */
  #place(): void {
    const scan = this.#scan;
    for (const { text, hasBound } of scan.names) {
      if (!hasBound || !text.endsWith('_bucket') || this.#owner(text) !== undefined) continue;
      const family = this.#family(text.slice(0, -'_bucket'.length));
      if (!family.typed) family.type = 'histogram';
    }
    for (const { text } of scan.names) {
      this.#owners.push(this.#owner(text) ?? { family: this.#family(text), suffix: '' });
    }
    // Counted, then put: a family's samples stand together in one list, in the order of their lines.
    const drafts = new Map<Draft, number>();
    const place = Int32Array.from(this.#owners, ({ family }) => {
      const known = drafts.get(family);
      if (known === undefined) drafts.set(family, drafts.size);
      return known ?? drafts.size - 1;
    });
    const ends = new Int32Array(drafts.size + 1);
    for (let row = 0; row < scan.rows; row++) ends[place[scan.name(row)]! + 1]!++;
    for (let i = 1; i < ends.length; i++) ends[i]! += ends[i - 1]!;
    const rows = new Int32Array(scan.rows);
    const next = ends.slice(0, -1);
    for (let row = 0; row < scan.rows; row++) rows[next[place[scan.name(row)]!]!++] = row;
    for (const [family, i] of drafts) family.rows = rows.subarray(ends[i]!, ends[i + 1]!);
    for (const composite of scan.composites) {
      this.#owners[composite.name]!.family.composites.push(composite);
    }
    for (const name of this.#broken) (this.#owner(name)?.family ?? this.#family(name)).broken = true;
  }

  #owner(name: string): Owner | undefined {
    const own = this.#families.get(name);
    if (own?.typed && own.type !== 'histogram') return { family: own, suffix: '' };
    const at = name.lastIndexOf('_');
    const base = at < 0 ? undefined : this.#families.get(name.slice(0, at));
    const suffix = at < 0 ? '' : name.slice(at);
    if (base !== undefined && SUFFIXES[base.type].includes(suffix)) return { family: base, suffix };
    return own === undefined ? undefined : { family: own, suffix: '' };
  }
}

function inMillis(exemplar: Exemplar): Exemplar {
  return exemplar.timestamp === undefined ? exemplar : { ...exemplar, timestamp: exemplar.timestamp * 1000 };
}
