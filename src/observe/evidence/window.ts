/**
 * What replicas did between two scrapes, or, from one, since their process began. Counters are whole differences, never
 * extrapolated. Where any counter of a replica fell its process restarted: what is told then begins at the restart.
 */
import { oneLine } from '../../base/errors.ts';
import {
  type Concept,
  type Counted,
  DURATIONS,
  type Evidence,
  GAUGES,
  type Gauged,
  type Observed,
  type ReplicaEvidence,
  SIZES,
  TOTALS,
} from '../../core/evidence.ts';
import type { Histogram } from '../../stats/histogram.ts';
import type { ReplicaSnapshot, Snapshot } from './snapshot.ts';
import type { Told } from './told.ts';

/** The scrapes of one source, in order of time. One alone tells all since its process began; several, what lay between. */
export function evidenceOf(sources: readonly (readonly Snapshot[])[]): Evidence {
  const replicas: ReplicaEvidence[] = [];
  const errors = new Set<string>();
  for (const scrapes of sources) {
    for (const scrape of scrapes) for (const error of scrape.errors) errors.add(error);
    const keys = new Set(scrapes.flatMap((s) => s.replicas.map((r) => r.key)));
    for (const key of keys) replicas.push(replicaOf(key, scrapes, errors));
  }
  return { replicas, errors: [...errors] };
}

interface Scraped {
  readonly at?: number;
  readonly replica: ReplicaSnapshot;
}

function replicaOf(key: string, scrapes: readonly Snapshot[], errors: Set<string>): ReplicaEvidence {
  const seen: Scraped[] = [];
  let absentAtFirst = false;
  let gone = false;
  scrapes.forEach((scrape, i) => {
    const replica = scrape.replicas.find((r) => r.key === key);
    gone = replica === undefined;
    if (replica !== undefined) seen.push({ replica, ...(scrape.at !== undefined && { at: scrape.at }) });
    else if (i === 0) absentAtFirst = true;
  });
  const first = seen[0]!;
  const last = seen.at(-1)!;
  const notes = [...new Set(seen.flatMap((s) => s.replica.notes))];
  let restarted: number | undefined;
  for (let i = 1; i < seen.length; i++) if (isReset(seen[i - 1]!.replica, seen[i]!.replica)) restarted = i;
  const reset = restarted !== undefined;
  const whole = scrapes.length < 2;
  const before = whole || reset || absentAtFirst ? undefined : first.replica;
  const start = reset ? restartOf(seen[restarted!]!) : (absentAtFirst ? scrapes[0] : first)?.at;
  if (reset) {
    notes.push('its process restarted within the window (a counter fell): what is told begins at the restart');
  } else if (absentAtFirst && !whole) notes.push('it appeared within the window: what is told begins there');
  if (gone && !whole) notes.push('it was gone at the end of the window: what is told ends before that');
  const durations: Partial<Record<string, Observed>> = {};
  const sizes: Partial<Record<string, Observed>> = {};
  const totals: Partial<Record<string, Counted>> = {};
  const gauges: Partial<Record<string, Gauged>> = {};
  for (const [concept, told] of last.replica.told) {
    if ((GAUGES as readonly Concept[]).includes(concept)) {
      const gauge = gaugeOf(concept, seen, told);
      if (gauge !== undefined) gauges[concept] = gauge;
      continue;
    }
    const base = before?.told.get(concept);
    if ((TOTALS as readonly Concept[]).includes(concept)) totals[concept] = countedOf(base, told);
    else {
      const observed = observedOf(base, told, last.replica.name, notes, errors);
      if (observed === undefined) continue;
      if ((DURATIONS as readonly Concept[]).includes(concept)) durations[concept] = observed;
      else if ((SIZES as readonly Concept[]).includes(concept)) sizes[concept] = observed;
    }
  }
  return {
    replica: last.replica.name,
    engine: last.replica.engine,
    role: last.replica.role,
    window: {
      ...(!whole && start !== undefined && { start }),
      ...(last.at !== undefined && { end: last.at }),
    },
    reset,
    durations,
    sizes,
    totals,
    gauges,
    notes,
  };
}

/** When the process of a scrape after a restart began, where it says so. */
function restartOf({ replica, at }: Scraped): number | undefined {
  const started = replica.told.get('process_start')?.value;
  return started === undefined ? at : started * 1000;
}

function isReset(before: ReplicaSnapshot, after: ReplicaSnapshot): boolean {
  const [a, b] = [before, after].map((r) => r.told.get('process_start')?.value);
  // psutil derives it from a drifting boot time: a second of movement is none.
  if (a !== undefined && b !== undefined && b - a > 1) return true;
  for (const [concept, told] of before.told) {
    const later = after.told.get(concept);
    if (later === undefined || told.meaning.metric !== later.meaning.metric) continue;
    if (told.count !== undefined && later.count !== undefined && later.count < told.count) return true;
    if (told.sum !== undefined && later.sum !== undefined && later.sum < told.sum * (1 - 1e-9)) return true;
    if (told.histogram && later.histogram && sameBounds(told.histogram, later.histogram)) {
      const own = (h: Histogram, i: number): number => h.counts[i]! - (i > 0 ? h.counts[i - 1]! : 0);
      if (told.histogram.bounds.some((_, i) => own(later.histogram!, i) < own(told.histogram!, i))) return true;
    }
  }
  return false;
}

function sameBounds(a: Histogram, b: Histogram): boolean {
  if (a.bounds === b.bounds) return true;
  return a.bounds.length === b.bounds.length && a.bounds.every((x, i) => x === b.bounds[i]);
}

function observedOf(
  base: Told | undefined,
  told: Told,
  name: string,
  notes: string[],
  errors: Set<string>,
): Observed | undefined {
  const { meaning, count = 0, sum, histogram } = told;
  if (base === undefined) {
    sumFits(told, notes);
    return { meaning, count, ...(sum !== undefined && { sum }), ...(histogram && { histogram }) };
  }
  if (base.histogram && histogram && !sameBounds(base.histogram, histogram)) {
    errors.add(
      oneLine(
        `${name}: the buckets of ${meaning.metric} changed between two scrapes; start a new window after the change`,
      ),
    );
    return undefined;
  }
  const within = sum !== undefined && base.sum !== undefined ? Math.max(0, sum - base.sum) : undefined;
  const difference: Observed = {
    meaning,
    count: count - (base.count ?? 0),
    ...(within !== undefined && { sum: within }),
    ...(histogram &&
      base.histogram && {
        histogram: {
          bounds: histogram.bounds,
          counts: histogram.counts.map((c, i) => c - base.histogram!.counts[i]!),
          sum: within ?? Number.NaN,
        },
      }),
  };
  sumFits(difference, notes);
  return difference;
}

/** A sum its own buckets do not allow is told, with what they do allow. */
function sumFits({ histogram, sum, meaning }: Told, notes: string[]): void {
  if (histogram === undefined || sum === undefined) return;
  let least = 0;
  let most = 0;
  histogram.counts.forEach((c, i) => {
    const n = c - (i > 0 ? histogram.counts[i - 1]! : 0);
    if (n === 0) return;
    least += n * Math.max(0, i > 0 ? histogram.bounds[i - 1]! : 0);
    most += n * histogram.bounds[i]!;
  });
  const wrong =
    sum < least * (1 - 1e-6) ? `at least ${tidy(least)}` : sum > most * (1 + 1e-6) ? `at most ${tidy(most)}` : '';
  if (wrong !== '') {
    notes.push(
      `${meaning.metric}: its sum is ${tidy(sum)}, but its buckets allow ${wrong}: its mean and its quantiles disagree`,
    );
  }
}

const tidy = (x: number): string => String(Number(x.toPrecision(4)));

function countedOf(base: Told | undefined, told: Told): Counted {
  const by: Record<string, number> = {};
  for (const [kind, n] of Object.entries(told.by ?? {})) {
    Object.defineProperty(by, kind, {
      value: n - (base?.by && Object.hasOwn(base.by, kind) ? base.by[kind]! : 0),
      enumerable: true,
    });
  }
  return { meaning: told.meaning, count: told.count! - (base?.count ?? 0), ...(told.by && { by }) };
}

function gaugeOf(concept: Concept, seen: readonly Scraped[], { meaning }: Told): Gauged | undefined {
  const values = seen.flatMap(({ replica }) => replica.told.get(concept)?.value ?? []);
  if (values.length === 0) return undefined;
  return {
    last: values.at(-1)!,
    mean: values.reduce((a, b) => a + b, 0) / values.length,
    min: Math.min(...values),
    max: Math.max(...values),
    samples: values.length,
    meaning,
  };
}
