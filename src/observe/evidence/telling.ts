/** One concept of one replica from all that tells it: which name is taken, and how its series are put together. */
import { messageOf, oneLine } from '../../base/errors.ts';
import { type Concept, DURATIONS, GAUGES, type Meaning, SIZES } from '../../core/evidence.ts';
import { mergeHistograms } from '../../stats/histogram.ts';
import type { HistogramSeries, Labels } from '../../wire/prometheus/family.ts';
import type { Adapter, Mapped } from './adapter.ts';
import type { Told } from './told.ts';

export const OBSERVED = new Set<Concept>([...DURATIONS, ...SIZES]);
export const GAUGED = new Set<Concept>(GAUGES);
/** Gauges that add up over the parts of a replica; of the others the mean is taken. */
export const ADDITIVE: ReadonlySet<Concept> = new Set(['running', 'waiting', 'gpu_memory', 'gpu_power'] as const);

export interface Target {
  readonly adapter: Adapter;
  readonly mapped: Mapped;
  /** Which of several tellings of a concept is taken: the least. */
  readonly rank: number;
  /** What stands before the local name. */
  readonly prefix: string;
  /** An untyped `_sum` or `_count` beside its histogram. */
  readonly part?: 'sum' | 'count';
}

export interface Entry {
  readonly target: Target;
  readonly metric: string;
  readonly line: number;
  readonly labels: Labels;
  readonly key: string;
  readonly series?: HistogramSeries;
  readonly value?: number;
}

/** Takes the newest name's telling, from one prefix, and puts its series together. */
export function toldOf(list: readonly Entry[], notes: string[], errors: string[], source: string): Told | undefined {
  const rank = Math.min(...list.map((e) => e.target.rank));
  const best = list.filter((e) => e.target.rank === rank);
  const { prefix } = best[0]!.target;
  const taken = best.filter((e) => e.target.prefix === prefix);
  const { mapped } = taken[0]!.target;
  const others = new Set(list.filter((e) => !taken.includes(e)).map(metricOf));
  for (const e of taken) others.delete(metricOf(e));
  if (others.size > 0 && !mapped.part) {
    notes.push(
      `${mapped.concept} is told by ${metricOf(taken[0]!)}; ${[...others].join(', ')} says it once more and is not added`,
    );
  }
  if (mapped.note !== undefined) notes.push(mapped.note);
  const { concept, names: _, added: __, where: ___, by, scale = 1, part: ____, note: _____, ...rest } = mapped;
  const meaning: Meaning = { metric: [...new Set(taken.map(metricOf))].join(' + '), ...rest };
  if (GAUGED.has(concept)) return gaugeOf(taken, meaning, concept, scale, errors, source);
  if (!OBSERVED.has(concept)) return totalOf(taken, meaning, by);
  return observedOf(taken, meaning, scale, notes, errors, source);
}

/** An untyped `_sum` and `_count` are their histogram. */
function metricOf({ metric, target }: Entry): string {
  return target.part === undefined ? metric : metric.slice(0, -target.part.length - 1);
}

function gaugeOf(
  taken: readonly Entry[],
  meaning: Meaning,
  concept: Concept,
  scale: number,
  errors: string[],
  source: string,
): Told | undefined {
  const values = taken.map((e) => {
    const percent = meaning.unit === 'share' && scale === 1 && e.value! > 1 && /percent/.test(e.metric) ? 0.01 : scale;
    return e.value! * percent;
  });
  let value = values.reduce((a, b) => a + b, 0);
  if (!ADDITIVE.has(concept)) value /= values.length;
  if (meaning.unit === 'share' && value > 1.0001) {
    errors.push(
      oneLine(`${source}:${taken[0]!.line}: ${meaning.metric} is ${value}, no share of 0 to 1; it is left out`),
    );
    return undefined;
  }
  return { meaning, value };
}

function totalOf(taken: readonly Entry[], meaning: Meaning, by: string | undefined): Told {
  let count = 0;
  const split: Record<string, number> = Object.create(null);
  for (const { labels, value } of taken) {
    count += value!;
    const kind = by === undefined ? undefined : labels[by];
    if (kind !== undefined) split[kind] = (split[kind] ?? 0) + value!;
  }
  return { meaning, count, ...(Object.keys(split).length > 0 && { by: { ...split } }) };
}

function observedOf(
  taken: readonly Entry[],
  meaning: Meaning,
  scale: number,
  notes: string[],
  errors: string[],
  source: string,
): Told | undefined {
  const parts = taken.filter((e) => e.series === undefined);
  if (parts.length > 0) {
    const of = (part: 'sum' | 'count'): number | undefined => {
      const own = parts.filter((e) => (e.target.part ?? e.target.mapped.part) === part);
      if (own.length === 0) return undefined;
      return own.reduce((a, e) => a + e.value! * (part === 'sum' ? (e.target.mapped.scale ?? 1) : 1), 0);
    };
    const [count, sum] = [of('count'), of('sum')];
    if (count === undefined || (sum === undefined && parts.some((e) => e.target.mapped.part))) return undefined;
    return { meaning, count, ...(sum !== undefined && { sum }) };
  }
  const all = taken.map((e) => e.series!);
  const count = all.reduce((a, s) => a + (s.bounds.length > 0 ? s.counts.at(-1)! : s.count!), 0);
  const sum = all.every((s) => s.sum !== undefined) ? all.reduce((a, s) => a + s.sum!, 0) * scale : undefined;
  const told = { meaning, count, ...(sum !== undefined && { sum }) };
  if (all.some((s) => s.bounds.length < 2)) {
    // Only +Inf, or nothing: a count. Native histograms are exposed so in text.
    if (count > 0) notes.push(`${meaning.metric} has no finite bucket: its quantiles cannot be told`);
    return told;
  }
  const [only, more] = all;
  if (only !== undefined && more === undefined) {
    const bounds = scale === 1 ? only.bounds : only.bounds.map((b) => b * scale);
    return { ...told, histogram: { bounds, counts: only.counts, sum: sum ?? Number.NaN } };
  }
  try {
    const { bounds, counts } = mergeHistograms(
      all.map((s, i) => ({
        name: `series ${i + 1} of ${meaning.metric}`,
        histogram: { bounds: s.bounds.map((b) => b * scale), counts: s.counts, sum: s.sum ?? Number.NaN },
      })),
    );
    return { ...told, histogram: { bounds, counts, sum: sum ?? Number.NaN } };
  } catch (error) {
    errors.push(oneLine(`${source}:${taken[0]!.line}: ${messageOf(error)}`));
    return told;
  }
}
