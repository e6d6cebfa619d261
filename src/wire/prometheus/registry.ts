/** Metrics that are kept and exposed: counters, gauges and histograms with labels, in the order they were made. */
import { type Labels, labelKey, type MetricFamily, type MetricSample, type MetricType } from './family.ts';
import { histogramSamples, prometheusText, type WriteOptions } from './write.ts';

export interface Counter {
  /** @param by zero or more. */
  inc(labels?: Labels, by?: number): void;
}

export interface Gauge {
  set(value: number, labels?: Labels): void;
  add(by: number, labels?: Labels): void;
}

export interface HistogramMetric {
  /** @param times how often `value` was seen. */
  observe(value: number, labels?: Labels, times?: number): void;
}

interface Values {
  readonly labels: Labels;
  value: number;
  counts: Float64Array;
}

const NO_LABELS: Labels = {};

export class MetricRegistry {
  readonly #families = new Map<string, { readonly family: MetricFamily; collect(): MetricSample[] }>();

  counter(name: string, help: string): Counter {
    const series = this.#add(name, help, 'counter');
    return {
      inc: (labels = NO_LABELS, by = 1) => {
        if (!(by >= 0)) throw new Error(`internal: the counter ${name} was told to go down`);
        series(labels).value += by;
      },
    };
  }

  gauge(name: string, help: string): Gauge {
    const series = this.#add(name, help, 'gauge');
    return {
      set: (value, labels = NO_LABELS) => {
        series(labels).value = value;
      },
      add: (by, labels = NO_LABELS) => {
        series(labels).value += by;
      },
    };
  }

  /** @param bounds upper bounds, ascending, without +∞. A value on a bound belongs below it. */
  histogram(name: string, help: string, bounds: readonly number[]): HistogramMetric {
    const series = this.#add(name, help, 'histogram', bounds);
    return {
      observe: (value, labels = NO_LABELS, times = 1) => {
        const s = series(labels);
        let i = 0;
        while (i < bounds.length && !(value <= bounds[i]!)) i++;
        s.counts[i]! += times;
        s.value += value * times;
      },
    };
  }

  families(): MetricFamily[] {
    return [...this.#families.values()].map(({ family, collect }) => ({ ...family, samples: collect() }));
  }

  text(options?: WriteOptions): string {
    return prometheusText(this.families(), options);
  }

  #add(name: string, help: string, type: MetricType, bounds?: readonly number[]): (labels: Labels) => Values {
    if (this.#families.has(name)) throw new Error(`internal: the metric ${name} is registered twice`);
    if (bounds?.some((b, i) => !Number.isFinite(b) || (i > 0 && b <= bounds[i - 1]!))) {
      throw new Error(`internal: the bounds of ${name} do not ascend`);
    }
    const all = new Map<string, Values>();
    const collect = (): MetricSample[] =>
      [...all.values()].flatMap(({ labels, value, counts }) =>
        bounds === undefined ? [{ labels, value }] : histogramSamples(labels, bounds, counts, value),
      );
    this.#families.set(name, { family: { name, type, help, samples: [] }, collect });
    return (labels) => {
      const key = labels === NO_LABELS ? '[]' : labelKey(labels);
      let values = all.get(key);
      if (values === undefined) {
        values = {
          labels: { ...labels },
          value: 0,
          counts: new Float64Array(bounds === undefined ? 0 : bounds.length + 1),
        };
        all.set(key, values);
      }
      return values;
    };
  }
}
