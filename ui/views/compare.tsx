/** Several runs side by side: figures, and their distributions over each other. What may be concluded, `goodput compare` says. */
import { useEffect, useMemo, useState } from 'preact/hooks';
import { formatDuration } from '../../src/base/units.ts';
import type { Packed } from '../../src/dashboard/packed/index.ts';
import type { RunReport } from '../../src/dashboard/run-data.ts';
import { Figure, Table } from '../charts/data-table.tsx';
import { Plot } from '../charts/plot.tsx';
import { Problem } from '../charts/problem.tsx';
import { hashOf, param } from '../route.ts';
import { ecdf, sortedCohort } from '../series.ts';
import { source } from '../state.ts';
import { figure, limitsText, ms, percent, whole } from '../words.ts';

const MOST = 6;
const COLORS = ['--s-1', '--s-2', '--s-3', '--s-4', '--s-5', '--s-6'];

interface Side {
  readonly id: string;
  readonly told?: RunReport;
  readonly packed?: Packed;
  readonly problem?: string;
}

export default function CompareView() {
  const ids = useMemo(() => (param('runs') ?? '').split(',').filter(Boolean).slice(0, MOST), [param('runs')]);
  const [sides, setSides] = useState<readonly Side[]>([]);
  const [metric, setMetric] = useState<'ttft' | 'tpot' | 'e2e' | 'gap'>('ttft');
  useEffect(() => {
    let stale = false;
    void Promise.all(
      ids.map(async (id): Promise<Side> => {
        try {
          const [told, packed] = await Promise.all([source.value.report(id), source.value.packed(id)]);
          return { id, told, packed };
        } catch (e) {
          return { id, problem: (e as Error).message };
        }
      }),
    ).then((got) => !stale && setSides(got));
    return () => {
      stale = true;
    };
  }, [ids]);
  if (ids.length === 0)
    return (
      <p class="wait">
        Choose runs in <a href={hashOf('runs', {})}>the list</a> first.
      </p>
    );
  if (sides.length === 0) return <p class="wait">Reading {ids.length} runs…</p>;
  const there = sides.filter(
    (s): s is Required<Omit<Side, 'problem'>> => s.told !== undefined && s.packed !== undefined,
  );
  const name = (s: Side, k: number): string => `${String.fromCharCode(65 + k)} ${s.told?.report.run.name ?? s.id}`;
  const curves = there.map((s) => ecdf(sortedCohort(s.packed, s.packed[metric]), 300));
  const xs = [...new Set(curves.flatMap((c) => [...c.x]))].sort((a, b) => a - b);
  const r = (s: (typeof there)[number]) => s.told.report;
  const row = (word: string, of: (s: (typeof there)[number]) => string): string[] => [word, ...there.map(of)];
  return (
    <div class="page">
      <header class="heading">
        <h1>Compare</h1>
        <p class="note">
          Side by side, as measured. Whether a difference is more than chance is a question for{' '}
          <code>
            goodput compare{' '}
            {there
              .slice(0, 2)
              .map((s) => s.id)
              .join(' ')}
          </code>
          .
        </p>
      </header>
      {sides.map((s) => s.problem && <Problem key={s.id} what={s.id} why={s.problem} />)}
      <Figure
        title="Distribution"
        wide
        aside={
          <label>
            <span class="sr">Metric</span>
            <select value={metric} onChange={(e) => setMetric(e.currentTarget.value as typeof metric)}>
              <option value="ttft">TTFT</option>
              <option value="tpot">TPOT</option>
              <option value="gap">max gap</option>
              <option value="e2e">E2E</option>
            </select>
          </label>
        }
      >
        <Plot
          label="Distributions of the runs"
          xLabel="value"
          height={300}
          x={xs}
          lines={there.map((s, k) => ({
            label: name(s, k),
            color: COLORS[k] as string,
            values: along(xs, curves[k] as (typeof curves)[number]),
            stepped: true,
          }))}
          formatX={(x) => formatDuration(x)}
          formatY={(y) => percent(y, 3)}
          yRange={[0, 1]}
          logX={xs.length > 0 && xs[0]! > 0}
        />
      </Figure>
      <section class="card wide" aria-label="Figures">
        <Table
          label="Figures of the runs"
          head={['', ...there.map(name)]}
          rows={[
            row('contract', (s) =>
              limitsText({ ...r(s).contract, deadline: r(s).contract.deadline ?? Number.POSITIVE_INFINITY }),
            ),
            row('load', (s) => r(s).run.workload ?? '–'),
            row('offered', (s) => whole(r(s).cohort.offered)),
            row('attainment', (s) => percent(r(s).attainment.value)),
            row('95 % interval', (s) => `${percent(r(s).attainment.low, 3)} to ${percent(r(s).attainment.high, 3)}`),
            row('goodput, requests/s', (s) => figure(r(s).goodput_rps)),
            row('throughput, tokens/s', (s) => figure(r(s).throughput_tps)),
            ...(['ttft_ms', 'tpot_ms', 'max_gap_ms', 'e2e_ms'] as const).flatMap((m) =>
              (['p50', 'p99'] as const).map((q) =>
                row(`${{ ttft_ms: 'TTFT', tpot_ms: 'TPOT', max_gap_ms: 'max gap', e2e_ms: 'E2E' }[m]} ${q}`, (s) =>
                  ms(r(s).metrics[m]?.[q]),
                ),
              ),
            ),
            row('client', (s) => r(s).client.verdict),
          ]}
        />
        <p class="note">
          {there.map((s, k) => (
            <a key={s.id} href={hashOf('run', { run: s.id })}>
              {name(s, k)}{' '}
            </a>
          ))}
        </p>
      </section>
    </div>
  );
}

/** A step curve read at every x. */
function along(xs: readonly number[], curve: { x: Float64Array; share: Float64Array }): Float64Array {
  let k = 0;
  return Float64Array.from(xs, (x) => {
    while (k < curve.x.length && curve.x[k]! <= x) k++;
    return k === 0 ? 0 : curve.share[k - 1]!;
  });
}
