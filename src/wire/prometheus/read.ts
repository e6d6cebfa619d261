/**
 * Reads Prometheus text 0.0.4 and OpenMetrics. What cannot be read is told with its line and never guessed at: a family
 * with a problem is left out whole, so that no number of it is wrong. Types come from `# TYPE`, never from a name's ending
 * (vLLM's `iteration_tokens_total` is a histogram); only `_bucket` with an `le` shows a histogram without one.
 */
import { InputError, oneLine } from '../../base/errors.ts';
import { boundOf, labelKey, type MetricFamily, type MetricSample, type MetricType } from './family.ts';
import { LineError, readSample, type SampleLine } from './line.ts';

export interface MetricProblem {
  /** From 1. */
  readonly line: number;
  readonly message: string;
}

export interface ReadMetrics {
  readonly families: readonly MetricFamily[];
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

/** Reads what can be read and tells the rest. */
export function readPrometheus(text: string): ReadMetrics {
  const wrong = notMetrics(text);
  if (wrong !== undefined) return { families: [], problems: [{ line: 1, message: wrong }] };
  return new Reading(text).result();
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

interface Placed extends MetricSample {
  readonly line: number;
}

interface Draft {
  readonly name: string;
  type: MetricType;
  typed: boolean;
  help?: string;
  unit?: string;
  readonly samples: Placed[];
  broken: boolean;
}

class Reading {
  readonly #families = new Map<string, Draft>();
  readonly #problems: MetricProblem[] = [];
  readonly #openMetrics: boolean;
  readonly #names = new Set<string>();
  /** Lines that could not be read; their families are left out. */
  readonly #broken: string[] = [];

  constructor(text: string) {
    const lines = text.split('\n');
    const unended = lines.pop(); // what stands after the last line feed
    this.#openMetrics = /(^|\n)# EOF\s*$/.test(text);
    const read: { line: number; sample: SampleLine }[] = [];
    let ended = false;
    const take = (raw: string, line: number): void => {
      const content = raw.endsWith('\r') ? raw.slice(0, -1) : raw;
      if (content.trim() === '') return;
      if (ended) this.#problem(line, 'a line stands after # EOF');
      else if (content.startsWith('#')) ended = this.#comment(content, line);
      else {
        const sample = this.#sample(content.trimStart(), line);
        if (sample === undefined) return;
        this.#names.add(sample.name);
        read.push({ line, sample });
      }
    };
    lines.forEach((raw, i) => {
      take(raw, i + 1);
    });
    if (unended !== undefined && unended.trim() !== '') {
      if (unended.startsWith('#')) take(unended, lines.length + 1);
      else this.#cut(unended, lines.length + 1);
    }
    this.#place(read);
    for (const family of this.#families.values()) this.#check(family);
  }

  result(): ReadMetrics {
    const families = [...this.#families.values()].filter((f) => !f.broken && f.samples.length > 0);
    return { families: families.map((f) => this.#finished(f)), problems: this.#problems };
  }

  #problem(line: number, message: string): void {
    this.#problems.push({ line, message: oneLine(message) });
  }

  #family(name: string): Draft {
    let family = this.#families.get(name);
    if (family === undefined) {
      family = { name, type: 'untyped', typed: false, samples: [], broken: false };
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
      const type = TYPES[rest.trim().toLowerCase()];
      if (type === undefined) this.#problem(line, `'${rest}' is no type of a metric (${name})`);
      else if (family.typed && family.type !== type) {
        family.broken = true;
        this.#problem(line, `${name} is given a second type, ${type} after ${family.type}`);
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
      return readSample(content);
    } catch (error) {
      if (!(error instanceof LineError)) throw error;
      this.#problem(line, error.message);
      this.#broken.push(content);
      return undefined;
    }
  }

  #cut(content: string, line: number): void {
    this.#problem(line, 'the last line is not ended by a line feed: the body may have been cut inside a number');
    this.#broken.push(content);
  }

  /** Puts each sample in its family, by the types that were declared. */
  #place(read: readonly { line: number; sample: SampleLine }[]): void {
    for (const { sample } of read) {
      if (sample.name.endsWith('_bucket') && sample.labels.le !== undefined && this.#owner(sample.name) === undefined) {
        const family = this.#family(sample.name.slice(0, -'_bucket'.length));
        if (!family.typed) family.type = 'histogram';
      }
    }
    for (const { line, sample } of read) {
      const owner = this.#owner(sample.name) ?? { family: this.#family(sample.name), suffix: '' };
      const scale = this.#openMetrics ? 1000 : 1;
      owner.family.samples.push({
        line,
        ...(owner.suffix !== '' && { suffix: owner.suffix }),
        labels: sample.labels,
        value: sample.value,
        ...(sample.timestamp !== undefined && { timestamp: sample.timestamp * scale }),
        ...(sample.exemplar && { exemplar: inMillis(sample.exemplar) }),
      });
    }
    for (const content of this.#broken) {
      const name = /^[a-zA-Z_:][\w:.]*/.exec(content.trimStart())?.[0];
      if (name !== undefined) (this.#owner(name)?.family ?? this.#family(name)).broken = true;
    }
  }

  #owner(name: string): { family: Draft; suffix: string } | undefined {
    const own = this.#families.get(name);
    if (own?.typed && own.type !== 'histogram') return { family: own, suffix: '' };
    const at = name.lastIndexOf('_');
    const base = at < 0 ? undefined : this.#families.get(name.slice(0, at));
    const suffix = at < 0 ? '' : name.slice(at);
    if (base !== undefined && SUFFIXES[base.type].includes(suffix)) return { family: base, suffix };
    return own === undefined ? undefined : { family: own, suffix: '' };
  }

  #check(family: Draft): void {
    const before = this.#problems.length;
    const seen = new Map<string, number>();
    for (const { suffix, labels, line, timestamp } of family.samples) {
      const key = `${suffix ?? ''} ${labelKey(labels)} ${timestamp ?? ''}`;
      const first = seen.get(key);
      if (first !== undefined) {
        this.#problem(line, `${family.name}${suffix ?? ''} stands twice with the same labels, first in line ${first}`);
      } else seen.set(key, line);
    }
    if (family.type === 'histogram' || family.type === 'gaugehistogram') this.#checkHistogram(family);
    if (family.type === 'counter') {
      const negative = family.samples.find((s) => s.suffix !== '_created' && s.value < 0);
      if (negative !== undefined) this.#problem(negative.line, `the counter ${family.name} is negative`);
    }
    if (this.#problems.length > before) family.broken = true;
  }

  #checkHistogram(family: Draft): void {
    const { name } = family;
    const series = new Map<string, { buckets: Placed[]; count?: Placed }>();
    for (const sample of family.samples) {
      const { le, ...labels } = sample.labels;
      const key = labelKey(labels);
      let s = series.get(key);
      if (s === undefined) series.set(key, (s = { buckets: [] }));
      if (sample.suffix === '_bucket') {
        if (le === undefined || Number.isNaN(boundOf(le))) {
          this.#problem(sample.line, `a bucket of ${name} has ${le === undefined ? 'no le' : `the bound '${le}'`}`);
          return;
        }
        s.buckets.push(sample);
      } else if (sample.suffix === '_count' || sample.suffix === '_gcount') s.count = sample;
    }
    for (const { buckets, count } of series.values()) this.#checkSeries(name, buckets, count);
  }

  #checkSeries(name: string, buckets: readonly Placed[], count: Placed | undefined): void {
    if (buckets.length === 0) return;
    const sorted = [...buckets].sort((a, b) => boundOf(a.labels.le!) - boundOf(b.labels.le!));
    for (const [i, bucket] of sorted.entries()) {
      const before = sorted[i - 1];
      if (!(bucket.value >= 0)) {
        this.#problem(bucket.line, `a bucket of ${name} counts ${bucket.value}`);
        return;
      }
      if (before !== undefined && bucket.value < before.value) {
        this.#problem(
          bucket.line,
          `the buckets of ${name} decrease: ${bucket.value} at le=${bucket.labels.le} after ${before.value} at le=${before.labels.le}`,
        );
        return;
      }
    }
    const last = sorted.at(-1)!;
    if (boundOf(last.labels.le!) !== Number.POSITIVE_INFINITY) {
      this.#problem(last.line, `the +Inf bucket of ${name} is missing`);
    } else if (count !== undefined && count.value !== last.value) {
      this.#problem(count.line, `${name}_count is ${count.value} but its +Inf bucket ${last.value}`);
    }
  }

  #finished({ name, type, help, unit, samples }: Draft): MetricFamily {
    return {
      name,
      type,
      ...(help !== undefined && { help }),
      ...(unit !== undefined && unit !== '' && { unit }),
      samples: samples.map(({ line: _, ...sample }) => sample),
    };
  }
}

function inMillis(exemplar: NonNullable<SampleLine['exemplar']>): NonNullable<SampleLine['exemplar']> {
  return exemplar.timestamp === undefined ? exemplar : { ...exemplar, timestamp: exemplar.timestamp * 1000 };
}
