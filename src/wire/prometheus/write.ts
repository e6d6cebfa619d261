/** Prometheus' text format 0.0.4. Families and samples are written in the order given. */
import type { Labels, MetricFamily, MetricSample } from './family.ts';

export const PROMETHEUS_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

export interface WriteOptions {
  /** Write whole numbers as `1.0`, as Python's client does. */
  readonly python?: boolean;
}

/** @throws a defect on a name or label name the format does not allow, and on two families of one name. */
export function prometheusText(families: Iterable<MetricFamily>, options: WriteOptions = {}): string {
  const number = options.python ? pythonNumber : numberText;
  const written = new Set<string>();
  let text = '';
  for (const { name, type, help, samples } of families) {
    if (!METRIC_NAME.test(name)) throw new Error(`internal: '${name}' is no metric name`);
    if (written.has(name)) throw new Error(`internal: the metric ${name} is written twice`);
    written.add(name);
    if (help !== undefined) text += `# HELP ${name} ${help.replace(/[\\\n]/g, escaped)}\n`;
    text += `# TYPE ${name} ${type}\n`;
    for (const sample of samples) {
      text += `${name}${sample.suffix ?? ''}${labelText(sample.labels)} ${number(sample.value)}`;
      text += sample.timestamp === undefined ? '\n' : ` ${Math.round(sample.timestamp)}\n`;
    }
  }
  return text;
}

const METRIC_NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const LABEL_NAME = /^[a-zA-Z_][a-zA-Z0-9_]*$/;

function labelText(labels: Labels): string {
  let text = '';
  for (const name in labels) {
    if (!LABEL_NAME.test(name)) throw new Error(`internal: '${name}' is no label name`);
    text += `${text === '' ? '{' : ','}${name}="${labels[name]!.replace(/[\\"\n]/g, escaped)}"`;
  }
  return text === '' ? '' : `${text}}`;
}

const escaped = (c: string): string => (c === '\n' ? '\\n' : `\\${c}`);

/** The shortest text that reads back as `x`. */
export function numberText(x: number): string {
  if (x === Number.POSITIVE_INFINITY) return '+Inf';
  if (x === Number.NEGATIVE_INFINITY) return '-Inf';
  return String(x); // NaN is written so
}

function pythonNumber(x: number): string {
  return Number.isInteger(x) && Math.abs(x) < 1e16 ? `${x}.0` : numberText(x);
}

/**
 * The samples of one histogram series from counts a bucket.
 * @param counts one a bound and one for what lies above the last; not cumulative.
 */
export function histogramSamples(
  labels: Labels,
  bounds: readonly number[],
  counts: ArrayLike<number>,
  sum: number,
  options: WriteOptions = {},
): MetricSample[] {
  const number = options.python ? pythonNumber : numberText;
  let below = 0;
  const samples: MetricSample[] = bounds.map((bound, i) => {
    below += counts[i] ?? 0;
    return { suffix: '_bucket', labels: { ...labels, le: number(bound) }, value: below };
  });
  const count = below + (counts[bounds.length] ?? 0);
  samples.push(
    { suffix: '_bucket', labels: { ...labels, le: '+Inf' }, value: count },
    { suffix: '_sum', labels, value: sum },
    { suffix: '_count', labels, value: count },
  );
  return samples;
}
