/** Searches, sweeps and single runs as series of one chart. Pure. */
import type { Listed } from '../../src/dashboard/catalogue.ts';
import type { CapacityReport, CurveRow } from '../../src/report/curve-report.ts';
import type { CurveDot, CurveSeries } from '../charts/curve.tsx';

const COLORS = ['--s-1', '--s-2', '--s-3', '--s-4', '--s-5', '--s-6'];

/** What was found of one id that was asked for. */
export interface Got {
  readonly id: string;
  readonly report?: CapacityReport;
  /** A single run: one point. */
  readonly run?: Listed;
  readonly problem?: string;
}

/** The last part of an id. */
export const nameOf = (id: string): string => id.split('/').at(-1) ?? id;

function dotOf(r: CurveRow): CurveDot {
  return {
    rate: r.rate,
    attainment: r.attainment,
    low: r.low,
    high: r.high,
    goodput: r.goodput_rps,
    throughput: r.throughput_tps,
    verdict: r.verdict,
    confirmed: r.replications > 1,
  };
}

function dotOfRun(r: Listed): CurveDot[] {
  const a = r.attainment;
  if (r.rate === null || !a || a.value === null) return [];
  return [
    {
      rate: r.rate,
      attainment: a.value,
      low: a.low ?? a.value,
      high: a.high ?? a.value,
      ...(r.goodput_rps !== null && { goodput: r.goodput_rps }),
      throughput: r.throughput_tps,
      verdict: a.shown === 'met' ? 'pass' : a.shown === 'missed' ? 'fail' : 'undecided',
    },
  ];
}

export function seriesOf(got: readonly Got[]): CurveSeries[] {
  const series: CurveSeries[] = [];
  const color = (): string => COLORS[series.length % COLORS.length] as string;
  for (const { id, report } of got) {
    if (!report) continue;
    series.push({
      name: nameOf(id),
      color: color(),
      // Where every run was void there is no curve; what was seen is shown all the same, and marked.
      points: (report.curve.length > 0 ? report.curve : report.probes).map(dotOf),
      capacity: report.capacity,
    });
  }
  const single = got.flatMap((g) => (g.run ? dotOfRun(g.run).map((dot) => ({ id: g.id, dot })) : []));
  if (single.length > 0) {
    series.push({
      name: single.length === 1 ? nameOf(single[0]!.id) : 'single runs',
      color: color(),
      points: single.map((x) => x.dot),
    });
  }
  return series;
}
