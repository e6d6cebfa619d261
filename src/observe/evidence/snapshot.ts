/**
 * One scrape of one source in canonical concepts: what each replica in it told, counted since its process began. Metrics are
 * known by their names alone, whatever the version; a name nobody maps is passed over.
 */
import { oneLine } from '../../base/errors.ts';
import type { Concept, Role } from '../../core/evidence.ts';
import type { HistogramSeries, Labels } from '../../wire/prometheus/family.ts';
import { LabelTable } from '../../wire/prometheus/labels.ts';
import { type ReadFamily, readPrometheus } from '../../wire/prometheus/read.ts';
import type { Adapter, Mapped } from './adapter.ts';
import { ADAPTERS } from './adapters/index.ts';
import { distinguished, type Identity, identityKey, identityOf, joinIdentities, SHARDS } from './identity.ts';
import { type Entry, GAUGED, OBSERVED, type Target, toldOf } from './telling.ts';
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
