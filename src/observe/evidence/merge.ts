/**
 * Replicas put together as docs/definitions.md says: histograms summed bucket by bucket, coarsened to common bounds or
 * refused; percentiles never averaged. Only what means the same is added: engines with engines, not with the router that
 * counts their requests once more; steps not with tokens, blocks not with tokens.
 */
import { messageOf } from '../../base/errors.ts';
import {
  type Concept,
  type Counted,
  DURATIONS,
  type DurationConcept,
  type Evidence,
  GAUGES,
  type Gauged,
  type Observed,
  type ReplicaEvidence,
  type Role,
  SIZES,
  type SizeConcept,
  TOTALS,
} from '../../core/evidence.ts';
import { type Histogram, mergeHistograms } from '../../stats/histogram.ts';
import { derivedOf } from './derived.ts';
import {
  MERGE_SCHEMA,
  type MergeDocument,
  type Merged,
  type MergedCount,
  type MergedGauge,
  type MergedMeaning,
  type MergedPart,
  type ReplicaRow,
} from './document.ts';
import { imbalances } from './imbalance.ts';
import { type JointLimits, jointOf } from './joint.ts';
import { bucketNotes, quantilesOf } from './quantiles.ts';
import { ADDITIVE } from './telling.ts';

export interface MergeCounts {
  readonly files: number;
  readonly families: number;
  readonly unmapped: number;
}

export function mergeEvidence(evidence: Evidence, counts: MergeCounts, limits?: JointLimits): MergeDocument {
  const { replicas } = evidence;
  const errors = [...evidence.errors];
  const concepts: Partial<Record<string, Merged | MergedCount>> = {};
  for (const concept of [...DURATIONS, ...SIZES]) {
    const found = tellers(replicas, (r) => observedIn(r, concept));
    if (found.length > 0) concepts[concept] = mergedOf(concept, found, errors);
  }
  for (const concept of TOTALS) {
    const found = tellers(replicas, (r) => r.totals[concept]);
    if (found.length > 0) concepts[concept] = countOf(concept, found);
  }
  const gauges: Partial<Record<string, MergedGauge>> = {};
  for (const concept of GAUGES) {
    const found = tellers(replicas, (r) => r.gauges[concept]);
    if (found.length > 0) gauges[concept] = gaugeOf(concept, found);
  }
  const document = {
    schema: MERGE_SCHEMA,
    ...counts,
    ...concepts,
    gauges,
    derived: derivedOf(concepts as Partial<Record<Concept, Merged & MergedCount>>),
    replicas: replicas.map(rowOf),
    notes: notesOf(replicas),
    errors,
  } as MergeDocument;
  return limits === undefined ? document : { ...document, joint: jointOf(document, limits) };
}

export function observedIn(r: ReplicaEvidence, concept: Concept): Observed | undefined {
  return r.durations[concept as DurationConcept] ?? r.sizes[concept as SizeConcept];
}

interface Teller<T> {
  readonly replica: ReplicaEvidence;
  readonly value: T;
}

function tellers<T>(replicas: readonly ReplicaEvidence[], of: (r: ReplicaEvidence) => T | undefined): Teller<T>[] {
  return replicas.flatMap((replica) => {
    const value = of(replica);
    return value === undefined ? [] : [{ replica, value }];
  });
}

const NEAREST: readonly Role[] = ['engine', 'router', 'gpu'];
const roleOf = (r: ReplicaEvidence): Role => r.role ?? 'engine';

/** Those nearest the engine; what others tell of the same requests is said, not added. */
function nearest<T>(
  concept: Concept,
  found: readonly Teller<T>[],
  figure: (value: T) => string,
): { taken: Teller<T>[]; notes: string[] } {
  const role = NEAREST.find((n) => found.some(({ replica }) => roleOf(replica) === n))!;
  const taken = found.filter(({ replica }) => roleOf(replica) === role);
  const notes = found
    .filter((t) => !taken.includes(t))
    .map(
      ({ replica, value }) =>
        `${replica.engine} (${replica.replica}) tells ${concept} too (${figure(value)}), standing before the engines: not added`,
    );
  return { taken, notes };
}

/** By what one observation is and its unit: only equals are added. */
function alike<T extends { readonly meaning: Observed['meaning'] }>(found: readonly Teller<T>[]): Teller<T>[][] {
  const groups = new Map<string, Teller<T>[]>();
  for (const teller of found) {
    const key = `${teller.value.meaning.unit} ${teller.value.meaning.observation}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [teller]);
    else group.push(teller);
  }
  return [...groups.values()];
}

function meaningOf<T extends { readonly meaning: Observed['meaning'] }>(group: readonly Teller<T>[]): MergedMeaning {
  const list = (of: (t: Teller<T>) => string | undefined): string | undefined =>
    [...new Set(group.map(of).filter((x) => x !== undefined))].join(' | ') || undefined;
  const first = group[0]!.value.meaning;
  const clock = list((t) => t.value.meaning.clock);
  const recorded = list((t) => t.value.meaning.recorded);
  const misses = list((t) => t.value.meaning.misses);
  return {
    engine: list((t) => t.replica.engine)!,
    metric: list((t) => t.value.meaning.metric)!,
    observation: first.observation,
    unit: first.unit,
    ...(clock !== undefined && { clock }),
    ...(recorded !== undefined && { recorded }),
    ...(misses !== undefined && { misses }),
  };
}

function mergedOf(concept: Concept, found: readonly Teller<Observed>[], errors: string[]): Merged {
  const { taken, notes } = nearest(concept, found, (o) => `count ${o.count}`);
  const groups = alike(taken).map((group) => partOf(concept, group, errors));
  if (groups.length === 1) return { ...groups[0]!, notes: [...groups[0]!.notes, ...notes] };
  notes.unshift(
    `${groups.map((g) => `${g.meaning.engine} (${g.meaning.observation})`).join(' and ')} mean different things by ${concept}: they are not added`,
  );
  return { replicas: taken.length, notes, apart: groups };
}

function partOf(concept: Concept, group: readonly Teller<Observed>[], errors: string[]): MergedPart {
  const notes: string[] = [];
  const count = group.reduce((n, { value }) => n + value.count, 0);
  const withSum = group.filter(({ value }) => value.sum !== undefined || value.count === 0);
  const sum = withSum.length === group.length ? group.reduce((s, { value }) => s + (value.sum ?? 0), 0) : undefined;
  const meaning = meaningOf(group);
  if (meaning.clock?.includes(' | '))
    notes.push(`the clocks of ${meaning.engine} start at different moments: ${meaning.clock}`);
  if (withSum.length > 0 && sum === undefined) notes.push('no mean: some replicas tell no sum');
  const histogram = pooled(concept, group, notes, errors);
  const quantiles = histogram && quantilesOf(histogram);
  if (histogram !== undefined) notes.push(...bucketNotes(histogram, quantiles, meaning));
  return {
    count,
    ...(sum !== undefined && { sum }),
    ...(sum !== undefined && count > 0 && { mean: sum / count }),
    ...(quantiles !== undefined && { quantiles }),
    ...(histogram !== undefined && {
      buckets: histogram.bounds.map((b, i) => ({ le: Number.isFinite(b) ? b : null, count: histogram.counts[i]! })),
    }),
    replicas: group.length,
    meaning,
    notes,
  };
}

function pooled(
  concept: Concept,
  group: readonly Teller<Observed>[],
  notes: string[],
  errors: string[],
): Histogram | undefined {
  const parts = group.filter(({ value }) => value.histogram !== undefined);
  if (parts.length === 0) return undefined;
  const without = group.filter(({ value }) => value.histogram === undefined && value.count > 0);
  if (without.length > 0) {
    const names = without.map(({ replica }) => replica.replica).slice(0, 3);
    notes.push(`no quantiles: ${names.join(', ')}${without.length > 3 ? ' and others' : ''} tell no buckets`);
    return undefined;
  }
  try {
    const merged = mergeHistograms(
      parts.map(({ replica, value }) => ({ name: replica.replica, histogram: value.histogram! })),
    );
    if (merged.coarsened) {
      const [a, b] = differing(parts);
      notes.push(
        `${a} and ${b} have different buckets: the sum is told at the ${merged.bounds.length - 1} bounds all share`,
      );
    }
    return merged;
  } catch (error) {
    errors.push(`${concept}: ${messageOf(error)}`);
    notes.push(`no quantiles: ${messageOf(error)}`);
    return undefined;
  }
}

function differing(parts: readonly Teller<Observed>[]): [string, string] {
  const key = (t: Teller<Observed>): string => t.value.histogram!.bounds.join();
  const first = parts[0]!;
  const other = parts.find((p) => key(p) !== key(first)) ?? first;
  return [first.replica.replica, other.replica.replica];
}

function countOf(concept: Concept, found: readonly Teller<Counted>[]): MergedCount {
  const { taken, notes } = nearest(concept, found, (c) => String(c.count));
  const groups = alike(taken);
  const count = (group: readonly Teller<Counted>[]): number => group.reduce((n, { value }) => n + value.count, 0);
  if (groups.length > 1) {
    const apart = groups.map((g) => ({ count: count(g), replicas: g.length, meaning: meaningOf(g) }));
    notes.unshift(
      `${apart.map((a) => `${a.meaning.engine} (${a.meaning.observation})`).join(' and ')} count different things: they are not added`,
    );
    return { replicas: taken.length, notes, apart };
  }
  const by: Record<string, number> = Object.create(null);
  for (const { value } of taken) for (const [kind, n] of Object.entries(value.by ?? {})) by[kind] = (by[kind] ?? 0) + n;
  return {
    count: count(taken),
    ...(Object.keys(by).length > 0 && { by }),
    replicas: taken.length,
    meaning: meaningOf(taken),
    notes,
  };
}

function gaugeOf(concept: Concept, found: readonly Teller<Gauged>[]): MergedGauge {
  const { taken, notes } = nearest(concept, found, (g) => String(g.last));
  const values = taken.map(({ value }) => value.mean);
  const total = values.reduce((a, b) => a + b, 0);
  const by: Record<string, number> = Object.create(null);
  for (const { replica, value } of taken) {
    const key = by[replica.replica] === undefined ? replica.replica : `${replica.replica} (${replica.engine})`;
    by[key] = value.mean;
  }
  return {
    ...(ADDITIVE.has(concept) && { sum: total }),
    mean: total / values.length,
    min: Math.min(...taken.map(({ value }) => value.min)),
    max: Math.max(...taken.map(({ value }) => value.max)),
    by,
    replicas: taken.length,
    meaning: meaningOf(taken),
    notes,
  };
}

function rowOf(r: ReplicaEvidence): ReplicaRow {
  const concepts: Record<string, ReplicaRow['concepts'][Concept]> = {};
  for (const [concept, o] of Object.entries({ ...r.durations, ...r.sizes })) {
    const quantiles = o.histogram && quantilesOf(o.histogram);
    concepts[concept] = {
      count: o.count,
      ...(o.sum !== undefined && o.count > 0 && { mean: o.sum / o.count }),
      ...(quantiles && { quantiles }),
    };
  }
  for (const [concept, c] of Object.entries(r.totals)) concepts[concept] = { count: c.count };
  for (const [concept, g] of Object.entries(r.gauges)) concepts[concept] = { value: g.mean };
  return {
    replica: r.replica,
    engine: r.engine,
    role: roleOf(r),
    ...(Object.keys(r.window).length > 0 && { window: r.window }),
    reset: r.reset,
    notes: r.notes,
    concepts,
  };
}

/** What replicas say of themselves, once each, and where they differ. */
function notesOf(replicas: readonly ReplicaEvidence[]): string[] {
  const said = new Map<string, string[]>();
  for (const r of replicas) {
    for (const note of r.notes) {
      const by = said.get(note);
      if (by === undefined) said.set(note, [r.replica]);
      else by.push(r.replica);
    }
  }
  const notes = [...said].map(([note, by]) =>
    replicas.length === 1 || by.length === replicas.length
      ? note
      : `${by.slice(0, 2).join(', ')}${by.length > 2 ? ` and ${by.length - 2} more` : ''}: ${note}`,
  );
  return [...imbalances(replicas), ...notes];
}
