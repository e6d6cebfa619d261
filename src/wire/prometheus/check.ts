/** What must hold of a family's samples: no series twice, no negative counter, histograms that are whole. */
import type { HistogramSeries, MetricType } from './family.ts';
import type { LabelTable } from './labels.ts';
import type { CompositeLine, Scan } from './scan.ts';

/** A family while its text is read. */
export interface Draft {
  readonly name: string;
  type: MetricType;
  typed: boolean;
  help?: () => string;
  unit?: string;
  /** Its samples in the scan, in the order of their lines. */
  rows: Int32Array;
  readonly composites: CompositeLine[];
  histograms?: HistogramSeries[];
  broken: boolean;
}

export interface Checked {
  readonly scan: Scan;
  readonly table: LabelTable;
  /** What stands after the family's name in a sample's. */
  readonly suffix: (row: number) => string;
  readonly problem: (line: number, message: string) => void;
}

/** Tells what is wrong with a family, and puts the series of a histogram together. */
export function checkFamily(family: Draft, on: Checked): void {
  checkTwice(family, on);
  const { scan, suffix, problem } = on;
  if (family.composites.length > 0 && !family.type.endsWith('histogram')) {
    problem(family.composites[0]!.line, `${family.name} is a ${family.type}, but its value is a histogram`);
  }
  if (family.type === 'histogram' || family.type === 'gaugehistogram') checkHistogram(family, on);
  if (family.type === 'counter') {
    const negative = family.rows.find((row) => scan.value(row) < 0 && suffix(row) !== '_created');
    if (negative !== undefined) problem(scan.line(negative), `the counter ${family.name} is negative`);
  }
}

/** A scrape tells a series once: a second value, also of another time, would be added to the first. */
function checkTwice(family: Draft, on: Checked): void {
  if (isAscending(family, on)) return;
  const { scan, suffix, problem } = on;
  const seen = new Map<string, number>();
  for (const row of family.rows) {
    const own = suffix(row);
    if (own === '_bucket') continue; // two of one bound are told below
    const key = `${scan.series(row)} ${own} ${scan.le(row) ?? ''}`;
    const first = seen.get(key);
    if (first === undefined) seen.set(key, scan.line(row));
    else problem(scan.line(row), `${family.name}${own} stands twice with the same labels, first in line ${first}`);
  }
}

/** Series are numbered as they are met, so that those of a family nearly always stand in their order, none twice. */
function isAscending({ rows }: Draft, { scan, suffix }: Checked): boolean {
  const last = new Map<string, number>();
  let own = '';
  let before = -1;
  for (const row of rows) {
    const next = suffix(row);
    if (next === '_bucket') continue;
    if (next !== own) {
      last.set(own, before);
      own = next;
      before = last.get(own) ?? -1;
    }
    const series = scan.series(row);
    if (series <= before || scan.hasLe(row)) return false;
    before = series;
  }
  return true;
}

interface Gathered {
  /** Of its buckets. */
  rows: number[];
  count?: number;
  countRow?: number;
  sum?: number;
}

function checkHistogram(family: Draft, on: Checked): void {
  const { scan, table, suffix, problem } = on;
  const all = new Map<number, Gathered>();
  let series = -1;
  let gathered: Gathered | undefined;
  for (const row of family.rows) {
    if (gathered === undefined || scan.series(row) !== series) {
      series = scan.series(row);
      gathered = all.get(series);
      if (gathered === undefined) all.set(series, (gathered = { rows: [] }));
    }
    const own = suffix(row);
    if (own === '_bucket') {
      if (Number.isNaN(scan.bound(row))) {
        const what = scan.hasLe(row) ? `the bound '${scan.le(row)}'` : 'no le';
        problem(scan.line(row), `a bucket of ${family.name} has ${what}`);
        return;
      }
      gathered.rows.push(row);
    } else if (own === '_count' || own === '_gcount') {
      gathered.count = scan.value(row);
      gathered.countRow = row;
    } else if (own === '_sum' || own === '_gsum') gathered.sum = scan.value(row);
  }
  const found = new Map<number, HistogramSeries>();
  for (const [id, { rows, count, countRow, sum }] of all) {
    if (rows.length === 0 && count === undefined && sum === undefined) continue;
    const bounds = boundsOf(family.name, rows, on);
    const counts = rows.map((row) => scan.value(row));
    found.set(id, {
      labels: table.labels(id),
      bounds,
      counts,
      ...(count !== undefined && { count }),
      ...(sum !== undefined && { sum }),
    });
    if (rows.length === 0) continue;
    const wrong = wrongIn(family.name, bounds, counts, count);
    if (wrong !== undefined) problem(scan.line(wrong.at === undefined ? countRow! : rows[wrong.at]!), wrong.message);
  }
  for (const { series: id, line, value } of family.composites) {
    const { bounds, counts, count, sum } = value;
    const own = all.get(id);
    if (own !== undefined && own.rows.length > 0) {
      problem(line, `${family.name} has buckets of its own and a histogram in one value`);
      continue;
    }
    const wrong = bounds.length === 0 ? undefined : wrongIn(family.name, bounds, counts, count);
    if (wrong !== undefined) problem(line, wrong.message);
    // In the place of its _count and _sum.
    found.set(id, { labels: table.labels(id), bounds, counts, count, ...(sum !== undefined && { sum }) });
  }
  family.histograms = [...found.values()];
}

/** The bounds of these buckets, which are put in order; the family's last ones where they are the same. */
function boundsOf(family: string, rows: number[], { scan, table }: Checked): readonly number[] {
  const known = table.boundsOf(family);
  if (known?.length === rows.length && rows.every((row, i) => scan.bound(row) === known[i])) return known;
  rows.sort((a, b) => scan.bound(a) - scan.bound(b) || a - b);
  const bounds = rows.map((row) => scan.bound(row));
  if (rows.length > 0) table.keepBounds(family, bounds);
  return bounds;
}

/** The first thing that is wrong with buckets in order; `at` is the bucket, none where it is the count beside them. */
function wrongIn(
  name: string,
  bounds: readonly number[],
  counts: readonly number[],
  told: number | undefined,
): { readonly at?: number; readonly message: string } | undefined {
  for (let at = 0; at < bounds.length; at++) {
    const count = counts[at]!;
    if (!(count >= 0 && count < Number.POSITIVE_INFINITY))
      return { at, message: `a bucket of ${name} counts ${count}` };
    if (at === 0) continue;
    if (bounds[at] === bounds[at - 1])
      return { at, message: `${name} has two buckets of the bound ${label(bounds[at]!)}` };
    if (count < counts[at - 1]!) {
      const after = `${counts[at - 1]} at le=${label(bounds[at - 1]!)}`;
      return { at, message: `the buckets of ${name} decrease: ${count} at le=${label(bounds[at]!)} after ${after}` };
    }
  }
  const last = bounds.length - 1;
  if (bounds[last] !== Number.POSITIVE_INFINITY) return { at: last, message: `the +Inf bucket of ${name} is missing` };
  if (told !== undefined && told !== counts[last]) {
    return { message: `${name}_count is ${told} but its +Inf bucket ${counts[last]}` };
  }
  return undefined;
}

function label(bound: number): string {
  return bound === Number.POSITIVE_INFINITY ? '+Inf' : String(bound);
}
