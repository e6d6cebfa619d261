/**
 * Public reports as an outsider feeds them (samples/incidents/reported), as they are and disturbed: pieces missing, other
 * labels and units, sums without buckets, one side alone, restarted counters, wrong clocks. Never sure of another cause.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import {
  diagnoseReported,
  faultsOf,
  isWronglySure,
  type Reported,
  type ReportedSide,
  reportedIncidents,
  type Writing,
} from '../../bench/diagnose/reported.ts';
import { type Diagnosis, diagnose, readChanges, readTold, type Side } from '../../src/diagnose/index.ts';

const REPORTS = reportedIncidents();
const shown = (d: Diagnosis): string =>
  `${d.verdict}: ${d.causes
    .slice(0, 3)
    .map((c) => `${c.cause.id} ${c.confidence.toFixed(2)}`)
    .join(', ')}`;

/** Reports whose cause is first or second but not named: what they tell is not enough. */
const NOT_NAMED = ['empty-compiler-cache', 'fifty-milliseconds-a-prefill', 'first-request-after-boot'];

const WRITINGS: Readonly<Record<string, Writing>> = {
  'sums without buckets': { buckets: false },
  'other labels': { labels: 'pod="vllm-0",namespace="x\\"y",engine="0"' },
  'no history': { history: 0 },
  'a long history': { history: 200 },
  'a clock off by seconds': { skew: 7 },
  'a process that restarted': { restarted: true, history: 3 },
};

const GROUPS = ['histograms', 'counters', 'gauges', 'figures'] as const;

function without(side: ReportedSide, group: (typeof GROUPS)[number], name: string): ReportedSide {
  const { [name]: _, ...rest } = (side[group] ?? {}) as Record<string, unknown>;
  return { ...side, [group]: rest };
}

/** Each figure left out on one side and on both; the changes left out; a side left out. */
function* disturbed(r: Reported): Generator<readonly [string, Reported]> {
  for (const group of GROUPS) {
    for (const name of new Set([...Object.keys(r.before[group] ?? {}), ...Object.keys(r.after[group] ?? {})])) {
      yield [
        `${name} of both missing`,
        { ...r, before: without(r.before, group, name), after: without(r.after, group, name) },
      ];
      yield [`${name} of after missing`, { ...r, after: without(r.after, group, name) }];
    }
  }
  const { changes: _, ...untold } = r;
  yield ['changes missing', untold];
  yield ['nothing of before', { ...r, before: {} }];
  yield ['nothing of after', { ...r, after: {} }];
}

/** The same durations in seconds, the same shares in per cent. */
function inOtherUnits(side: ReportedSide): ReportedSide {
  if (!side.figures) return side;
  const figures = Object.fromEntries(
    Object.entries(side.figures).map(([name, value]): [string, unknown] => {
      if (typeof value !== 'number') return [name, value];
      if (name.endsWith('_s')) return [name.slice(0, -2), value * 1000];
      if (/^(ttft|tpot|itl|latency|queue|prefill)/.test(name) && !/share|per_token/.test(name))
        return [`${name}_s`, value / 1000];
      if (['hit_rate', 'kv_usage', 'load_share', 'acceptance'].includes(name)) return [name, `${100 * value} %`];
      return [name, value];
    }),
  );
  return { ...side, figures };
}

describe('public reports', () => {
  it('are many, of each kind', () => {
    expect(REPORTS.length).toBeGreaterThanOrEqual(44);
    for (const kind of ['yes', 'no', 'no-regression'] as const)
      expect(REPORTS.filter((r) => r.settled === kind).length).toBeGreaterThanOrEqual(4);
    for (const r of REPORTS) expect(r.report).toMatch(/^github\.com\/[^/]+\/[^/]+\/(issues|pull)\/\d+$/);
  });

  it.each(REPORTS.map((r) => [r.name, r] as const))('%s', (name, r) => {
    const found = diagnoseReported(r);
    const faults = faultsOf(r, found).filter((f) => !(NOT_NAMED.includes(name) && f.startsWith('verdict unknown')));
    expect(faults, shown(found)).toEqual([]);
    expect(isWronglySure(r, found), shown(found)).toBe(false);
  });

  it.each(REPORTS.map((r) => [r.name, r] as const))('%s, disturbed', (_, r) => {
    for (const [what, writing] of Object.entries(WRITINGS)) {
      const found = diagnoseReported(r, writing);
      expect(isWronglySure(r, found), `${what}: ${shown(found)}`).toBe(false);
    }
    for (const [what, less] of disturbed(r)) {
      const found = diagnoseReported(less);
      expect(isWronglySure(r, found), `${what}: ${shown(found)}`).toBe(false);
    }
    const units = { ...r, before: inOtherUnits(r.before), after: inOtherUnits(r.after) };
    expect(shown(diagnoseReported(units))).toBe(shown(diagnoseReported(r)));
  });
});

/** Where what sets the one apart is not told, the other, which holds it, is no wrong answer. */
const HOLDS: Readonly<Record<string, string>> = { 'frontend-cpu': 'request-preprocessing' };

describe('told incidents with a figure missing', () => {
  const root = new URL('../../samples/incidents/', import.meta.url).pathname;
  const read = (file: string): Record<string, unknown> => parse(readFileSync(file, 'utf8'));
  const folders = readdirSync(root).filter((f) => /^\d/.test(f));
  it.each(folders)('%s: never sure of another cause', (name) => {
    const folder = join(root, name);
    const [before, after] = ['before', 'after'].map(
      (s) => read(join(folder, `${s}.yaml`)) as { figures: Record<string, unknown> },
    );
    const expected = read(join(folder, 'expected.yaml')) as { top2?: string[]; verdict: string };
    const files = readdirSync(folder);
    const changes = files.includes('changes.yaml') ? readChanges(read(join(folder, 'changes.yaml')), name) : undefined;
    const side = (from: { figures: Record<string, unknown> }, left?: string): Side => ({
      name,
      told: readTold({ figures: Object.fromEntries(Object.entries(from.figures).filter(([k]) => k !== left)) }, name),
      notes: [],
    });
    for (const figure of [undefined, ...Object.keys(before!.figures)]) {
      for (const told of [changes, undefined]) {
        const found = diagnose(side(before!, figure), side(after!, figure), { changes: told });
        if (found.verdict !== 'cause' && found.verdict !== 'trade') continue;
        const named = found.causes.slice(0, 2).filter((c) => c.confidence >= 0.5);
        const what = `without ${figure ?? 'nothing'}${told ? '' : ' and changes'}: ${shown(found)}`;
        if (!expected.top2) expect(expected.verdict, what).not.toBe('unknown');
        else
          expect(
            named.some((c) => [c.cause.id, HOLDS[c.cause.id]].some((id) => id && expected.top2!.includes(id))),
            what,
          ).toBe(true);
      }
    }
  });
});
