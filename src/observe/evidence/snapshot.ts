/**
 * One scrape of one source in canonical concepts: what each replica in it told, counted since its process began. Metrics are
 * known by their names alone, whatever the version; a name nobody maps is passed over.
 */
import { messageOf, oneLine } from '../../base/errors.ts';
import { type Concept, DURATIONS, GAUGES, type Meaning, type Role, SIZES } from '../../core/evidence.ts';
import { mergeHistograms } from '../../stats/histogram.ts';
import type { HistogramSeries, Labels } from '../../wire/prometheus/family.ts';
import { LabelTable } from '../../wire/prometheus/labels.ts';
import { type ReadFamily, readPrometheus } from '../../wire/prometheus/read.ts';
import type { Adapter, Mapped } from './adapter.ts';
import { ADAPTERS } from './adapters/index.ts';
import { distinguished, type Identity, identityKey, identityOf, joinIdentities, SHARDS } from './identity.ts';
import type { Told } from './told.ts';

export interface ReplicaSnapshot {
  /** Stays the same from scrape to scrape. */
  readonly key: string;
  readonly name: string;
  readonly engine: string;
  readonly role: Role;
  readonly identity: Identity;
  readonly told: ReadonlyMap<Concept, Told>;
  readonly notes: readonly string[];
}

export interface Snapshot {
  readonly source: string;
  /** Unix ms. */
  readonly at?: number;
  readonly replicas: readonly ReplicaSnapshot[];
  readonly errors: readonly string[];
  /** Families that were read, and of them those nobody maps. */
  readonly families: number;
  readonly unmapped: number;
}

const OBSERVED = new Set<Concept>([...DURATIONS, ...SIZES]);
const GAUGED = new Set<Concept>(GAUGES);
/** Gauges that add up over the parts of a replica; of the others the mean is taken. */
export const ADDITIVE: ReadonlySet<Concept> = new Set(['running', 'waiting', 'gpu_memory', 'gpu_power'] as const);

interface Target {
  readonly adapter: Adapter;
  readonly mapped: Mapped;
  /** Which of several tellings of a concept is taken: the least. */
  readonly rank: number;
  /** What stands before the local name. */
  readonly prefix: string;
  /** An untyped `_sum` or `_count` beside its histogram. */
  readonly part?: 'sum' | 'count';
}

interface Entry {
  readonly target: Target;
  readonly metric: string;
  readonly line: number;
  readonly labels: Labels;
  readonly key: string;
  readonly series?: HistogramSeries;
  readonly value?: number;
}

interface Identified {
  readonly identity: Identity;
  readonly key: string;
}

/** Reads many texts: what one learns of names and labels serves the next. */
export class SnapshotReader {
  readonly #table = new LabelTable();
  readonly #targets = new Map<string, readonly Target[]>();
  readonly #identities = new WeakMap<Labels, Identified>();

  /** @param text what was scraped, or its bytes. */
  read(text: string | Uint8Array, source: string, at?: number): Snapshot {
    const { families, problems } = readPrometheus(text, this.#table);
    const errors = problems.map(({ line, message }) => `${source}${line > 0 ? `:${line}` : ''}: ${message}`);
    if (families.length === 0 && errors.length === 0) errors.push(`${source}: there is no metric in it`);
    const entries: Entry[] = [];
    const found = new Map<Adapter, Map<string, { identity: Identity; metrics: Set<string> }>>();
    let unmapped = 0;
    let started: number | undefined;
    for (const family of families) {
      if (family.name === 'process_start_time_seconds') started ??= family.samples[0]?.value;
      const targets = this.#targetsOf(family);
      if (targets.length === 0) unmapped++;
      else entries.push(...this.#entriesOf(family, targets, found, errors, source));
    }
    const replicas = replicasOf(entries, found, errors, source, started);
    return { source, ...(at !== undefined && { at }), replicas, errors, families: families.length, unmapped };
  }

  /** Equal labels of one text are one object. */
  #identityOf(labels: Labels): Identified {
    let known = this.#identities.get(labels);
    if (known === undefined) {
      const identity = identityOf(labels);
      this.#identities.set(labels, (known = { identity, key: identityKey(identity) }));
    }
    return known;
  }

  #targetsOf(family: ReadFamily): readonly Target[] {
    const cacheKey = `${family.type} ${family.name}`;
    let targets = this.#targets.get(cacheKey);
    if (targets === undefined) {
      targets = targetsOf(family.name, family.type === 'untyped');
      if (this.#targets.size < 100_000) this.#targets.set(cacheKey, targets);
    }
    return targets;
  }

  #entriesOf(
    family: ReadFamily,
    targets: readonly Target[],
    found: Map<Adapter, Map<string, { identity: Identity; metrics: Set<string> }>>,
    errors: string[],
    source: string,
  ): Entry[] {
    const entries: Entry[] = [];
    const where = `${source}:${family.line}: ${family.name}`;
    const points = pointsOf(family);
    const shards = SHARDS.filter((s) => points.some(({ labels }) => labels[s] === '0'));
    for (const { labels, series, value } of points) {
      if (shards.some((s) => labels[s] !== undefined && labels[s] !== '0')) continue;
      for (const target of targets) {
        if (!(target.adapter.owns?.(labels) ?? true) || !isWanted(target.mapped, labels)) continue;
        const observed = OBSERVED.has(target.mapped.concept) && target.part === undefined && !target.mapped.part;
        if (observed !== (series !== undefined)) continue;
        const wrong = wrongIn(series, value, GAUGED.has(target.mapped.concept));
        if (wrong !== undefined) {
          if (wrong !== '') errors.push(oneLine(`${where}: ${wrong}; the family is left out`));
          if (wrong !== '') return [];
          continue;
        }
        const { identity, key } = this.#identityOf(labels);
        let own = found.get(target.adapter);
        if (own === undefined) found.set(target.adapter, (own = new Map()));
        let known = own.get(key);
        if (known === undefined) own.set(key, (known = { identity, metrics: new Set() }));
        known.metrics.add(family.name);
        entries.push({
          target,
          metric: family.name,
          line: family.line,
          labels,
          key,
          ...(series !== undefined && { series }),
          ...(value !== undefined && { value }),
        });
      }
    }
    return entries;
  }
}

/** What is wrong with a number; '' where it says "not known". */
function wrongIn(series: HistogramSeries | undefined, value: number | undefined, isGauge: boolean): string | undefined {
  if (series !== undefined) {
    const { count, sum, bounds } = series;
    if (count === undefined && bounds.length === 0) return '';
    if (count !== undefined && !(count >= 0 && count < Number.POSITIVE_INFINITY)) return `its count is ${count}`;
    if (sum !== undefined && !Number.isFinite(sum)) return `its sum is ${sum}`;
    if (sum !== undefined && sum < 0) return `its sum is ${sum}, below 0`;
    return undefined;
  }
  if (isGauge && (Number.isNaN(value) || value === -1)) return '';
  if (!(value! >= 0 && value! < Number.POSITIVE_INFINITY)) return `its value is ${value}`;
  return undefined;
}

function isWanted({ where }: Mapped, labels: Labels): boolean {
  if (where === undefined) return true;
  const named = Object.entries(where).filter(([label]) => labels[label] !== undefined);
  return named.length > 0 && named.every(([label, values]) => values.includes(labels[label]!));
}

function targetsOf(name: string, isUntyped: boolean): Target[] {
  const targets: Target[] = [];
  for (const adapter of ADAPTERS) {
    const local = adapter.local(name);
    if (local === undefined) continue;
    const prefix = name.slice(0, name.length - local.length);
    const base = local.endsWith('_total') ? local.slice(0, -6) : local;
    const part = isUntyped ? /^(.+)_(sum|count)$/.exec(local) : null;
    adapter.metrics.forEach((mapped, i) => {
      const at = mapped.names.indexOf(base);
      // Ray tells a counter under its name with _total and, for older dashboards, without.
      const rank = (mapped.part ? firstPart(adapter, mapped) : i) * 100 + (local === base ? 0.5 : 0);
      if (at >= 0) targets.push({ adapter, mapped, rank: rank + (mapped.added ? 0 : at), prefix });
      else if (part !== null && OBSERVED.has(mapped.concept) && !mapped.part) {
        const of = mapped.names.indexOf(part[1]!);
        if (of >= 0) targets.push({ adapter, mapped, rank: rank + of, prefix, part: part[2] as 'sum' | 'count' });
      }
    });
  }
  return targets;
}

const firstPart = (adapter: Adapter, { concept }: Mapped): number =>
  adapter.metrics.findIndex((m) => m.concept === concept && m.part !== undefined);

function pointsOf(family: ReadFamily): { labels: Labels; series?: HistogramSeries; value?: number }[] {
  if (family.histograms !== undefined) return family.histograms.map((series) => ({ labels: series.labels, series }));
  if (family.type !== 'summary') {
    return family.samples.filter(({ suffix }) => suffix !== '_created').map(({ labels, value }) => ({ labels, value }));
  }
  const found = new Map<string, { labels: Labels; count?: number; sum?: number }>();
  for (const { suffix, labels, value } of family.samples) {
    if (suffix !== '_count' && suffix !== '_sum') continue;
    const key = JSON.stringify(Object.entries(labels).sort());
    let own = found.get(key);
    if (own === undefined) found.set(key, (own = { labels }));
    own[suffix === '_count' ? 'count' : 'sum'] = value;
  }
  return [...found.values()].map((s) => ({ labels: s.labels, series: { ...s, bounds: [], counts: [] } }));
}

function replicasOf(
  entries: readonly Entry[],
  found: ReadonlyMap<Adapter, ReadonlyMap<string, { identity: Identity; metrics: Set<string> }>>,
  errors: string[],
  source: string,
  started: number | undefined,
): ReplicaSnapshot[] {
  const replicas: ReplicaSnapshot[] = [];
  for (const [adapter, identities] of found) {
    const joined = joinIdentities(identities);
    const kept = [...new Set(joined.values())].map((key) => identities.get(key)!.identity);
    const byReplica = new Map<string, Map<Concept, Entry[]>>();
    for (const entry of entries) {
      if (entry.target.adapter !== adapter) continue;
      const to = joined.get(entry.key)!;
      let concepts = byReplica.get(to);
      if (concepts === undefined) byReplica.set(to, (concepts = new Map()));
      const { concept } = entry.target.mapped;
      const list = concepts.get(concept);
      if (list === undefined) concepts.set(concept, [entry]);
      else list.push(entry);
    }
    for (const [key, concepts] of byReplica) {
      const { identity } = identities.get(key)!;
      const notes: string[] = [...(adapter.notes ?? [])];
      const told = new Map<Concept, Told>();
      for (const [concept, list] of concepts) {
        const one = toldOf(list, notes, errors, source);
        if (one !== undefined) told.set(concept, one);
      }
      if (started !== undefined && Number.isFinite(started) && adapter.role !== 'gpu') {
        const meaning = { metric: 'process_start_time_seconds', observation: 'Unix time', unit: 'seconds' } as const;
        told.set('process_start', { meaning, value: started });
      }
      adapter.mend?.(told, notes, identity.get('model'));
      const label = distinguished(identity, kept);
      replicas.push({
        key: `${adapter.engine} ${key}`,
        name: oneLine(label === '' ? source : `${source} ${label}`),
        engine: adapter.engine,
        role: adapter.role,
        identity,
        told,
        notes: [...new Set(notes)],
      });
    }
  }
  return replicas;
}

/** Takes the newest name's telling, from one prefix, and puts its series together. */
function toldOf(list: readonly Entry[], notes: string[], errors: string[], source: string): Told | undefined {
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
