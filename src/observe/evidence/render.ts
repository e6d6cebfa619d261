/** The merged document for a terminal. Labels and names are from outside: every cell passes `oneLine`. */
import { oneLine } from '../../base/errors.ts';
import { formatDuration } from '../../base/units.ts';
import { DURATIONS, GAUGES, SIZES, TOTALS } from '../../core/evidence.ts';
import type { Joint, MergeDocument, Merged, MergedCount, MergedGauge, MergedMeaning, MergedPart } from './document.ts';
import { percent, QUANTILES, type QuantileInterval, type QuantileName } from './quantiles.ts';

/** Replicas shown one by one; the JSON has all. */
const MOST_ROWS = 24;
const NAMES = Object.keys(QUANTILES) as QuantileName[];

export function renderMerge(d: MergeDocument, width: number): string {
  const lines: string[] = [];
  const section = (title: string, rows: readonly string[]): void => {
    if (rows.length === 0) return;
    if (lines.length > 0) lines.push('');
    lines.push(title, ...rows);
  };
  const replicas = d.replicas.length;
  lines.push(
    `${count(d.files, 'file')}, ${count(replicas, 'replica')}, ${count(d.families, 'metric')} (${d.unmapped} not of a known engine)`,
  );
  const observed = [...DURATIONS, ...SIZES].flatMap((concept) => rowsOf(concept, d[concept]));
  section('Observed', aligned([['', 'count', 'mean', ...NAMES], ...observed], observed.length));
  section('Counted', aligned(TOTALS.flatMap((concept) => countRows(concept, d[concept]))));
  section('Now', aligned(GAUGES.flatMap((concept) => gaugeRows(concept, d.gauges[concept]))));
  section(
    'Derived',
    aligned(Object.entries(d.derived).map(([name, x]) => [name, `${tidy(x.value)} ${x.unit}`, x.how])),
  );
  if (d.joint !== undefined) section('Limits together', jointLines(d.joint, width));
  if (replicas > 1) section('Replicas', replicaLines(d));
  section('What they mean', meaningLines(d, width));
  section(
    'Notes',
    [...new Set([...d.notes, ...conceptNotes(d)])].map((n) => wrap(oneLine(n, 600), width)),
  );
  section(
    'Not read',
    d.errors.slice(0, 20).map((e) => wrap(oneLine(e, 600), width)),
  );
  if (d.errors.length > 20) lines.push(`  and ${d.errors.length - 20} more`);
  return `${lines.join('\n')}\n`;
}

const count = (n: number, what: string): string => `${n} ${what}${n === 1 ? '' : 's'}`;
const tidy = (x: number): string => (Math.abs(x) < 1e-9 ? '0' : String(Number(x.toPrecision(4))));

function unit(x: number, { unit }: MergedMeaning): string {
  return unit === 'seconds' ? formatDuration(x * 1000) : tidy(x);
}

/** `0.1–0.5 s`, and `> 30 s` above the last finite bound. */
function interval({ low, high }: QuantileInterval, meaning: MergedMeaning): string {
  if (high === null) return `> ${unit(low, meaning)}`;
  if (low === 0 && meaning.unit === 'seconds') return `≤ ${unit(high, meaning)}`;
  return `${unit(low, meaning)} – ${unit(high, meaning)}`;
}

function rowsOf(concept: string, merged: Merged | undefined): string[][] {
  if (merged === undefined) return [];
  const row = (name: string, p: MergedPart): string[] => [
    name,
    String(p.count),
    p.mean === undefined ? '—' : unit(p.mean, p.meaning),
    ...NAMES.map((q) => (p.quantiles === undefined ? '—' : interval(p.quantiles[q], p.meaning))),
  ];
  if (merged.apart !== undefined) return merged.apart.map((p) => row(`${concept} (${p.meaning.engine})`, p));
  return [row(concept, merged as MergedPart)];
}

function countRows(concept: string, merged: MergedCount | undefined): string[][] {
  if (merged === undefined) return [];
  if (merged.apart !== undefined) {
    return merged.apart.map((a) => [`${concept} (${a.meaning.engine})`, tidyCount(a.count), a.meaning.unit]);
  }
  const by = Object.entries(merged.by ?? {}).map(([kind, n]) => `${kind} ${tidyCount(n)}`);
  return [[concept, tidyCount(merged.count!), [merged.meaning!.unit, ...by.slice(0, 8)].join('  ')]];
}

const tidyCount = (x: number): string => (Number.isInteger(x) ? String(x) : String(Number(x.toPrecision(7))));

function gaugeRows(concept: string, g: MergedGauge | undefined): string[][] {
  if (g === undefined || concept === 'process_start') return [];
  const show = (x: number): string => (g.meaning.unit === 'share' ? percent(x) : tidy(x));
  const value = g.sum === undefined ? `mean ${show(g.mean)}` : `sum ${show(g.sum)}`;
  return [[concept, value, g.min === g.max ? '' : `from ${show(g.min)} to ${show(g.max)}`, g.meaning.unit]];
}

function jointLines(joint: Joint, width: number): string[] {
  const rows = Object.entries(joint.limits).map(([name, s]) => [
    `${name} ≤ ${formatDuration(s.limit_s * 1000)}`,
    s.low === s.high ? percent(s.low) : `${percent(s.low)} – ${percent(s.high)}`,
    `of ${s.count}`,
  ]);
  if (joint.low !== undefined)
    rows.push(['all on one request', `${percent(joint.low)} – ${percent(joint.high!)}`, 'nothing tighter follows']);
  return [...aligned(rows), ...joint.notes.map((n) => wrap(n, width))];
}

function replicaLines(d: MergeDocument): string[] {
  const rows = d.replicas.slice(0, MOST_ROWS).map((r) => {
    const ttft = r.concepts.ttft;
    const seconds = (x: number | undefined): string => (x === undefined ? '—' : formatDuration(x * 1000));
    const p99 = ttft?.quantiles?.p99;
    const value = (c: 'running' | 'waiting'): string =>
      r.concepts[c]?.value === undefined ? '—' : tidy(r.concepts[c]!.value!);
    return [
      r.replica,
      r.engine,
      ttft?.count === undefined ? '—' : String(ttft.count),
      seconds(ttft?.mean),
      p99 === undefined ? '—' : interval(p99, { unit: 'seconds' } as MergedMeaning),
      seconds(r.concepts.queue?.mean),
      value('running'),
      value('waiting'),
      r.concepts.kv_usage?.value === undefined ? '—' : percent(r.concepts.kv_usage.value),
      r.reset ? 'restarted' : '',
    ];
  });
  const head = ['', 'engine', 'ttft n', 'ttft mean', 'ttft p99', 'queue mean', 'running', 'waiting', 'kv', ''];
  const more = d.replicas.length - MOST_ROWS;
  return [...aligned([head, ...rows]), ...(more > 0 ? [`  and ${more} more: --json has all`] : [])];
}

function meaningLines(d: MergeDocument, width: number): string[] {
  const lines: string[] = [];
  const say = (concept: string, m: MergedMeaning | undefined): void => {
    if (m === undefined) return;
    const parts = [
      `${m.metric} (${m.engine})`,
      m.clock && `clock: ${m.clock}`,
      `one observation: ${m.observation}`,
      m.recorded && `recorded ${m.recorded}`,
      m.misses && `misses ${m.misses}`,
    ];
    lines.push(wrap(`${concept}: ${oneLine(parts.filter(Boolean).join('; '), 800)}`, width));
  };
  for (const concept of [...DURATIONS, ...SIZES]) {
    say(concept, d[concept]?.meaning);
    for (const part of d[concept]?.apart ?? []) say(concept, part.meaning);
  }
  for (const concept of TOTALS) {
    if (d[concept]?.meaning?.unit === 'blocks' || concept === 'finishes' || concept === 'slo_violations')
      say(concept, d[concept]?.meaning);
  }
  return lines;
}

function conceptNotes(d: MergeDocument): string[] {
  const of = (concept: string, x: { readonly notes: readonly string[] } | undefined): string[] =>
    (x?.notes ?? []).map((n) => `${concept}: ${n}`);
  const apart = (m: Merged | undefined): readonly MergedPart[] => m?.apart ?? [];
  return [
    ...[...DURATIONS, ...SIZES].flatMap((c) => [...of(c, d[c]), ...apart(d[c]).flatMap((p) => of(c, p))]),
    ...TOTALS.flatMap((c) => of(c, d[c])),
    ...GAUGES.flatMap((c) => of(c, d.gauges[c])),
  ];
}

/** Left-aligned first column, right-aligned figures; empty but for a head gives nothing. */
function aligned(rows: readonly (readonly string[])[], body = rows.length): string[] {
  if (body === 0) return [];
  const cells = rows.map((row) => row.map((cell) => oneLine(cell, 120)));
  const widths: number[] = [];
  for (const row of cells) {
    row.forEach((cell, i) => {
      widths[i] = Math.max(widths[i] ?? 0, [...cell].length);
    });
  }
  return cells.map((row) =>
    `  ${row.map((cell, i) => (i === 0 || i === row.length - 1 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!))).join('  ')}`.trimEnd(),
  );
}

function wrap(text: string, width: number): string {
  const lines: string[] = [];
  let line = '  ';
  for (const word of text.split(' ')) {
    if (line.trim() !== '' && line.length + word.length + 1 > width) {
      lines.push(line);
      line = '    ';
    }
    line += line.trim() === '' ? word : ` ${word}`;
  }
  lines.push(line);
  return lines.join('\n');
}
