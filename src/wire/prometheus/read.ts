/**
 * Reads Prometheus text 0.0.4 and OpenMetrics. What cannot be read is told with its line and never guessed at: a family
 * with a problem is left out whole, so that no number of it is wrong. Types come from `# TYPE`, never from a name's ending
 * (vLLM's `iteration_tokens_total` is a histogram); only `_bucket` with an `le` shows a histogram without one.
 */
import { InputError, oneLine } from '../../base/errors.ts';
import type { Exemplar, HistogramSeries, Labels, MetricFamily, MetricSample, MetricType } from './family.ts';
import { type LabelSet, LabelTable } from './labels.ts';
import { readSample, type SampleLine } from './line.ts';
import { LineError } from './line-error.ts';

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
export function parsePrometheus(text: string): readonly MetricFamily[] {
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
 * @param table what other texts' labels were read with: replicas of one service say the same ones.
 */
export function readPrometheus(text: string, table: LabelTable = new LabelTable()): ReadMetrics {
  const body = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  const wrong = notMetrics(body);
  if (wrong !== undefined) return { families: [], problems: [{ line: 1, message: wrong }] };
  table.prune();
  return new Reading(body, table).result();
}

/** Bodies that are something else altogether. */
function notMetrics(text: string): string | undefined {
  const start = text.trimStart();
  if (start.startsWith('"')) {
    return 'the body is one JSON string, not metrics (some llama.cpp builds serve /metrics so); upgrade the server';
  }
  if (start.startsWith('<')) return 'the body is HTML, not metrics: check the URL';
  if (/^\{\s*("[^"]*"\s*:|\})/.test(start) || start.startsWith('['))
    return 'the body is JSON, not metrics: check the URL';
  return undefined;
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

interface Draft {
  readonly name: string;
  type: MetricType;
  typed: boolean;
  help?: string;
  unit?: string;
  readonly samples: SampleLine[];
  /** Beside each sample. */
  readonly suffixes: string[];
  readonly lines: number[];
  readonly composites: { readonly set: LabelSet; readonly line: number; readonly series: HistogramSeries }[];
  histograms?: HistogramSeries[];
  broken: boolean;
}

interface Owner {
  readonly family: Draft;
  readonly suffix: string;
}

/** Problems told one by one; beyond them only their number, so that hostile text cannot fill the memory. */
const MOST_PROBLEMS = 1000;

class Reading {
  readonly #families = new Map<string, Draft>();
  readonly #problems: MetricProblem[] = [];
  #untold = 0;
  readonly #openMetrics: boolean;
  readonly #names = new Set<string>();
  readonly #table: LabelTable;
  /** Names of lines that could not be read; their families are left out. */
  readonly #broken = new Set<string>();

  constructor(text: string, table: LabelTable) {
    this.#table = table;
    this.#openMetrics = /(?:^|\n)# EOF\s*$/.test(text.slice(-64));
    const read: SampleLine[] = [];
    const lines: number[] = [];
    let ended = false;
    let line = 0;
    for (let from = 0; from < text.length; ) {
      const end = text.indexOf('\n', from);
      const stop = end < 0 ? text.length : end;
      line++;
      const first = text.charCodeAt(from);
      const content = text.slice(from, text.charCodeAt(stop - 1) === 13 && stop > from ? stop - 1 : stop);
      from = stop + 1;
      if (first !== 35 && content.trim() === '') continue;
      if (ended) this.#problem(line, 'a line stands after # EOF');
      else if (first === 35) ended = this.#comment(content, line);
      else if (end < 0) this.#cut(content, line);
      else {
        const sample = this.#sample(content.trimStart(), line);
        if (sample === undefined) continue;
        this.#names.add(sample.name);
        read.push(sample);
        lines.push(line);
      }
    }
    this.#place(read, lines);
    for (const family of this.#families.values()) this.#check(family);
  }

  result(): ReadMetrics {
    const families: ReadFamily[] = [];
    for (const f of this.#families.values()) {
      if (!f.broken && (f.samples.length > 0 || f.composites.length > 0)) families.push(this.#finished(f));
    }
    if (this.#untold > 0) {
      this.#problems.push({ line: 0, message: `${this.#untold} more problems of the same text are not told` });
    }
    return { families, problems: this.#problems };
  }

  #finished({ name, type, help, unit, samples, suffixes, lines, composites, histograms }: Draft): ReadFamily {
    const scale = this.#openMetrics ? 1000 : 1;
    let made: readonly MetricSample[] | undefined;
    return {
      name,
      type,
      ...(help !== undefined && { help }),
      ...(unit !== undefined && unit !== '' && { unit }),
      // Made when asked for: who wants the histograms needs no object a bucket.
      get samples() {
        made ??= samples.map((sample, i) => sampleOf(sample, suffixes[i]!, scale));
        return made;
      },
      line: lines[0] ?? composites[0]?.line ?? 0,
      ...(histograms !== undefined && { histograms }),
    };
  }

  #problem(line: number, message: string): void {
    if (this.#problems.length < MOST_PROBLEMS) this.#problems.push({ line, message: oneLine(message) });
    else this.#untold++;
  }

  #family(name: string): Draft {
    let family = this.#families.get(name);
    if (family === undefined) {
      family = {
        name,
        type: 'untyped',
        typed: false,
        samples: [],
        suffixes: [],
        lines: [],
        composites: [],
        broken: false,
      };
      this.#families.set(name, family);
    }
    return family;
  }

  /** True at `# EOF`. */
  #comment(content: string, line: number): boolean {
    const m = /^#[ \t]+(HELP|TYPE|UNIT|EOF)(?:[ \t]+("(?:[^"\\]|\\.)*"|\S+)(?:[ \t]+(.*))?)?\s*$/.exec(content);
    if (m === null) return false;
    const [, keyword, quoted, rest = ''] = m;
    if (keyword === 'EOF') return quoted === undefined;
    if (quoted === undefined) return false;
    const name = quoted.startsWith('"') ? quoted.slice(1, -1) : quoted;
    const family = this.#family(name);
    if (keyword === 'HELP') {
      family.help ??= rest.replace(/\\([\\n"])/g, (_, c: string) => (c === 'n' ? '\n' : c));
    } else if (keyword === 'UNIT') family.unit ??= rest.trim();
    else {
      const word = rest.trim().toLowerCase();
      const type = Object.hasOwn(TYPES, word) ? TYPES[word] : undefined;
      if (type === undefined) {
        family.broken = true;
        this.#problem(line, `'${rest}' is no type of a metric (${name})`);
      } else if (family.typed && family.type !== type) {
        family.broken = true;
        this.#problem(line, `${name} is given a second type, ${type} after ${family.type}`);
      } else if (family.typed) {
        // Said again, as where two engines' texts are joined: nothing changes.
      } else if (this.#names.has(name)) {
        family.broken = true;
        this.#problem(line, `the type of ${name} stands after its samples`);
      } else {
        family.type = type;
        family.typed = true;
      }
    }
    return false;
  }

  #sample(content: string, line: number): SampleLine | undefined {
    try {
      return readSample(content, this.#table);
    } catch (error) {
      if (!(error instanceof LineError)) throw error;
      this.#problem(line, error.message);
      this.#breaks(content);
      return undefined;
    }
  }

  #cut(content: string, line: number): void {
    this.#problem(line, 'the last line is not ended by a line feed: the body may have been cut inside a number');
    this.#breaks(content);
  }

  #breaks(content: string): void {
    const start = content.trimStart();
    const name = /^[a-zA-Z_:][\w:.]*/.exec(start)?.[0] ?? /^\{\s*"([^"\\]*)"/.exec(start)?.[1];
    if (name !== undefined) this.#broken.add(name);
  }

  /** Puts each sample in its family, by the types that were declared. */
  #place(read: readonly SampleLine[], lines: readonly number[]): void {
    const owners = new Map<string, Owner>();
    for (const { name, set } of read) {
      if (set.le === undefined || owners.has(name) || !name.endsWith('_bucket')) continue;
      if (this.#owner(name) === undefined) {
        const family = this.#family(name.slice(0, -'_bucket'.length));
        if (!family.typed) family.type = 'histogram';
      }
      owners.set(name, this.#owner(name) ?? { family: this.#family(name), suffix: '' });
    }
    read.forEach((sample, i) => {
      let owner = owners.get(sample.name);
      if (owner === undefined) {
        owner = this.#owner(sample.name) ?? { family: this.#family(sample.name), suffix: '' };
        owners.set(sample.name, owner);
      }
      add(owner, sample, lines[i]!);
    });
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

  #check(family: Draft): void {
    const before = this.#problems.length + this.#untold;
    const seen = new Map<number | string, number>();
    family.samples.forEach(({ set, timestamp }, i) => {
      const suffix = family.suffixes[i]!;
      if (suffix === '_bucket') return; // two of one bound are told below
      let key: number | string = set.series.id * 16 + CODES.indexOf(suffix) + 1;
      if (set.le !== undefined || timestamp !== undefined) key = JSON.stringify([key, set.le, timestamp]);
      const first = seen.get(key);
      if (first !== undefined) {
        const what = `${family.name}${suffix}`;
        this.#problem(family.lines[i]!, `${what} stands twice with the same labels, first in line ${first}`);
      } else seen.set(key, family.lines[i]!);
    });
    if (family.composites.length > 0 && !family.type.endsWith('histogram')) {
      this.#problem(family.composites[0]!.line, `${family.name} is a ${family.type}, but its value is a histogram`);
    }
    if (family.type === 'histogram' || family.type === 'gaugehistogram') this.#checkHistogram(family);
    if (family.type === 'counter') {
      const negative = family.samples.findIndex((s, i) => family.suffixes[i] !== '_created' && s.value < 0);
      if (negative >= 0) this.#problem(family.lines[negative]!, `the counter ${family.name} is negative`);
    }
    if (this.#problems.length + this.#untold > before) family.broken = true;
  }

  #checkHistogram(family: Draft): void {
    const all = new Map<number, Gathered>();
    for (let i = 0; i < family.samples.length; i++) {
      const { set, value } = family.samples[i]!;
      const suffix = family.suffixes[i]!;
      let s = all.get(set.series.id);
      if (s === undefined)
        all.set(set.series.id, (s = { labels: set.series.labels, bounds: [], counts: [], lines: [] }));
      if (suffix === '_bucket') {
        const bound = set.bound;
        if (bound === undefined || Number.isNaN(bound)) {
          const what = bound === undefined ? 'no le' : `the bound '${set.le}'`;
          this.#problem(family.lines[i]!, `a bucket of ${family.name} has ${what}`);
          return;
        }
        s.bounds.push(bound);
        s.counts.push(value);
        s.lines.push(family.lines[i]!);
      } else if (suffix === '_count' || suffix === '_gcount') {
        s.count = value;
        s.countLine = family.lines[i]!;
      } else if (suffix === '_sum' || suffix === '_gsum') s.sum = value;
    }
    const found: HistogramSeries[] = [];
    for (const series of all.values()) {
      if (series.bounds.length > 0) this.#checkSeries(family.name, series);
      if (series.bounds.length > 0 || series.count !== undefined || series.sum !== undefined)
        found.push(seriesOf(series));
    }
    for (const { set, line, series } of family.composites) {
      const own = all.get(set.series.id);
      if (own !== undefined && own.bounds.length > 0) {
        this.#problem(line, `${family.name} has buckets of its own and a histogram in one value`);
        continue;
      }
      this.#checkSeries(family.name, {
        labels: set.series.labels,
        bounds: [...series.bounds],
        counts: [...series.counts],
        lines: series.bounds.map(() => line),
        ...(series.count !== undefined && { count: series.count, countLine: line }),
      });
      const plain = found.findIndex((f) => f.labels === set.series.labels);
      if (plain >= 0) found.splice(plain, 1); // its _count and _sum beside it
      found.push(series);
    }
    family.histograms = found;
  }

  #checkSeries(name: string, series: Gathered): void {
    const { bounds, counts, lines } = series;
    if (bounds.length === 0) return;
    if (bounds.some((b, i) => i > 0 && b < bounds[i - 1]!)) {
      const order = bounds.map((_, i) => i).sort((a, b) => bounds[a]! - bounds[b]!);
      for (const list of [bounds, counts, lines]) list.splice(0, list.length, ...order.map((i) => list[i]!));
    }
    for (let i = 0; i < bounds.length; i++) {
      if (!(counts[i]! >= 0 && counts[i]! < Number.POSITIVE_INFINITY)) {
        this.#problem(lines[i]!, `a bucket of ${name} counts ${counts[i]}`);
        return;
      }
      if (i === 0) continue;
      if (bounds[i] === bounds[i - 1]) {
        this.#problem(lines[i]!, `${name} has two buckets of the bound ${label(bounds[i]!)}`);
        return;
      }
      if (counts[i]! < counts[i - 1]!) {
        const after = `${counts[i - 1]} at le=${label(bounds[i - 1]!)}`;
        this.#problem(
          lines[i]!,
          `the buckets of ${name} decrease: ${counts[i]} at le=${label(bounds[i]!)} after ${after}`,
        );
        return;
      }
    }
    const last = bounds.length - 1;
    if (bounds[last] !== Number.POSITIVE_INFINITY) {
      this.#problem(lines[last]!, `the +Inf bucket of ${name} is missing`);
    } else if (series.count !== undefined && series.count !== counts[last]) {
      this.#problem(series.countLine!, `${name}_count is ${series.count} but its +Inf bucket ${counts[last]}`);
    }
  }
}

interface Gathered {
  readonly labels: Labels;
  readonly bounds: number[];
  readonly counts: number[];
  readonly lines: number[];
  count?: number;
  countLine?: number;
  sum?: number;
}

/** Suffixes, by the number that stands for them in a key. */
const CODES = ['_bucket', '_sum', '_count', '_created', '_total', '_gsum', '_gcount', '_info'];

function label(bound: number): string {
  return bound === Number.POSITIVE_INFINITY ? '+Inf' : String(bound);
}

function seriesOf({ labels, bounds, counts, count, sum }: Gathered): HistogramSeries {
  return { labels, bounds, counts, ...(count !== undefined && { count }), ...(sum !== undefined && { sum }) };
}

function add({ family, suffix }: Owner, sample: SampleLine, line: number): void {
  const { set, composite } = sample;
  if (composite !== undefined) {
    const { bounds, counts, count, sum } = composite;
    const series = { labels: set.series.labels, bounds, counts, count, ...(sum !== undefined && { sum }) };
    family.composites.push({ set, line, series });
    return;
  }
  family.samples.push(sample);
  family.suffixes.push(suffix);
  family.lines.push(line);
}

/** @param scale of its timestamps to milliseconds. */
function sampleOf({ set, value, timestamp, exemplar }: SampleLine, suffix: string, scale: number): MetricSample {
  const { series, le } = set;
  return {
    ...(suffix !== '' && { suffix }),
    labels: le === undefined ? series.labels : { ...series.labels, le },
    value,
    ...(timestamp !== undefined && { timestamp: timestamp * scale }),
    ...(exemplar !== undefined && { exemplar: inMillis(exemplar) }),
  };
}

function inMillis(exemplar: Exemplar): Exemplar {
  return exemplar.timestamp === undefined ? exemplar : { ...exemplar, timestamp: exemplar.timestamp * 1000 };
}
