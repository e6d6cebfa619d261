/** Metrics in Prometheus' terms: what the writer takes and the parser gives. */

export type MetricType =
  | 'counter'
  | 'gauge'
  | 'histogram'
  | 'gaugehistogram'
  | 'summary'
  | 'info'
  | 'stateset'
  | 'untyped';

export type Labels = Readonly<Record<string, string>>;

export interface MetricSample {
  /** What stands after the family's name: `_bucket`, `_sum`, `_count`, `_total`, `_created`; none for a plain one. */
  readonly suffix?: string;
  readonly labels: Labels;
  readonly value: number;
  /** Milliseconds since 1970 UTC, where the text gives one. */
  readonly timestamp?: number;
  readonly exemplar?: Exemplar;
}

export interface Exemplar {
  readonly labels: Labels;
  readonly value: number;
  /** Milliseconds since 1970 UTC. */
  readonly timestamp?: number;
}

export interface MetricFamily {
  readonly name: string;
  readonly type: MetricType;
  readonly help?: string;
  readonly unit?: string;
  readonly samples: readonly MetricSample[];
}

/** A series of a histogram: cumulative counts by upper bound, in ascending order, the last bound +∞. */
export interface HistogramSeries {
  readonly labels: Labels;
  readonly bounds: readonly number[];
  readonly counts: readonly number[];
  /** Absent where the text has none. */
  readonly count?: number;
  readonly sum?: number;
}

/** The histogram series of a family, by their labels without `le`. Series without buckets are left out. */
export function histogramsOf(family: MetricFamily): HistogramSeries[] {
  const found = new Map<string, { labels: Labels; buckets: [number, number][]; count?: number; sum?: number }>();
  for (const sample of family.samples) {
    const { le, ...labels } = sample.labels;
    const key = labelKey(labels);
    let series = found.get(key);
    if (series === undefined) found.set(key, (series = { labels, buckets: [] }));
    if (sample.suffix === '_bucket' && le !== undefined) series.buckets.push([boundOf(le), sample.value]);
    else if (sample.suffix === '_count' || sample.suffix === '_gcount') series.count = sample.value;
    else if (sample.suffix === '_sum' || sample.suffix === '_gsum') series.sum = sample.value;
  }
  return [...found.values()]
    .filter((series) => series.buckets.length > 0)
    .map(({ labels, buckets, count, sum }) => {
      buckets.sort((a, b) => a[0] - b[0]);
      return {
        labels,
        bounds: buckets.map(([bound]) => bound),
        counts: buckets.map(([, n]) => n),
        ...(count !== undefined && { count }),
        ...(sum !== undefined && { sum }),
      };
    });
}

/** Equal for equal labels in any order. */
export function labelKey(labels: Labels): string {
  return JSON.stringify(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)));
}

/** A bound as a bucket's `le` writes it; NaN where it is no number. */
export function boundOf(le: string): number {
  return numberOf(le) ?? Number.NaN;
}

const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;

/** A number as Prometheus writes it, undefined where `text` is none. */
export function numberOf(text: string): number | undefined {
  if (NUMBER.test(text)) return Number(text);
  switch (text.toLowerCase()) {
    case 'nan':
      return Number.NaN;
    case '+inf':
    case 'inf':
    case '+infinity':
    case 'infinity':
      return Number.POSITIVE_INFINITY;
    case '-inf':
    case '-infinity':
      return Number.NEGATIVE_INFINITY;
    default:
      return undefined;
  }
}
