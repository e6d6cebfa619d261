/** How many requests a second the contract allows: searches, sweeps and single runs on one chart, and the model's word. */
import { lazy, Suspense } from 'preact/compat';
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { Listed } from '../../src/dashboard/catalogue.ts';
import type { CapacityReport } from '../../src/report/curve-report.ts';
import { Answer } from '../capacity/answer.tsx';
import { Choose } from '../capacity/choose.tsx';
import { Legend } from '../capacity/legend.tsx';
import { Probes } from '../capacity/probes.tsx';
import { type Got, seriesOf } from '../capacity/series.ts';
import { AttainmentCurve, type CurveSeries, GoodputCurve } from '../charts/curve.tsx';
import { Figure } from '../charts/data-table.tsx';
import { Problem } from '../charts/problem.tsx';
import { param } from '../route.ts';
import { contract, runId, source } from '../state.ts';
import { figure, percent } from '../words.ts';

// An exported page has no engine model in it.
const Predict =
  import.meta.env.MODE === 'page'
    ? () => null
    : lazy(() => import('../capacity/predict.tsx').then((m) => ({ default: m.Predict })));

export function CapacityView() {
  const [listed, setListed] = useState<readonly Listed[] | undefined>(undefined);
  const file = source.value.kind === 'file';
  const id = runId.value;
  const withParam = param('with') ?? '';
  const wanted = useMemo(
    () => [...new Set([id, ...withParam.split(',')].filter((x): x is string => !!x))],
    [id, withParam],
  );
  const [got, setGot] = useState<readonly Got[]>([]);
  const [predicted, setPredicted] = useState<CurveSeries | undefined>(undefined);

  useEffect(() => {
    if (file) {
      source.value.capacity('').then(({ capacity }) => setGot(capacity ? [{ id: 'run', report: capacity }] : []));
      return;
    }
    source.value.list().then(
      (l) => setListed(l.runs),
      (e: Error) => setGot([{ id: '', problem: e.message }]),
    );
  }, [file]);

  useEffect(() => {
    if (file || !listed) return;
    let stale = false;
    void Promise.all(
      wanted.map(async (one): Promise<Got> => {
        const row = listed.find((r) => r.id === one);
        if (!row) return { id: one, problem: 'there is no such run here' };
        // A run of a search stands for its search.
        const at = row.kind === 'run' && row.parent !== null ? row.parent : one;
        try {
          const { capacity } = await source.value.capacity(at);
          return capacity ? { id: at, report: capacity } : { id: one, run: row };
        } catch (e) {
          return { id: at, problem: (e as Error).message };
        }
      }),
    ).then((all) => !stale && setGot(all.filter((g, i) => all.findIndex((x) => x.id === g.id) === i)));
    return () => {
      stale = true;
    };
  }, [listed, wanted, file]);

  const reports = got.filter((g): g is Got & { report: CapacityReport } => g.report !== undefined);
  const series = seriesOf(got);
  if (predicted) series.push(predicted);
  const target =
    reports[0]?.report.target ?? got.find((g) => g.run)?.run?.attainment?.target ?? contract.value?.attainment ?? 0.9;
  const drawable = series.filter((s) => s.points.length > 0);
  return (
    <div class="page">
      <header class="heading">
        <h1>Capacity</h1>
        <p class="note">
          Attainment against the rate offered. Capacity is the highest rate whose attainment stays at the target, as an
          interval.
        </p>
      </header>
      {!file && listed && <Choose listed={listed} wanted={wanted} />}
      {got.map((g) => g.problem && <Problem key={g.id} what={g.id || 'The runs cannot be listed'} why={g.problem} />)}
      {drawable.length === 0 && got.every((g) => !g.problem) && (
        <p class="wait">
          {file
            ? 'No search for capacity belongs to this run.'
            : wanted.length === 0
              ? 'Choose a search, a sweep, or several runs at different rates above.'
              : 'What is chosen has no rate and attainment to draw yet.'}
        </p>
      )}
      {reports.map((g) => (
        <Answer key={g.id} id={g.id} report={g.report} />
      ))}
      {drawable.length > 0 && (
        <>
          <Figure
            title="Attainment over rate"
            wide
            note={
              <>
                Discs pass, crosses fail, diamonds decide nothing; hollow or dotted where it rests on one run. The band
                is the capacity interval.
                <Legend series={drawable} />
              </>
            }
            table={() => ({
              head: ['rate', 'series', 'attainment', 'low', 'high', 'verdict'],
              rows: drawable.flatMap((s) =>
                s.points.map((p) => [
                  `${figure(p.rate)}/s`,
                  s.name,
                  percent(p.attainment),
                  percent(p.low),
                  percent(p.high),
                  p.verdict ?? '–',
                ]),
              ),
            })}
          >
            <AttainmentCurve series={drawable} target={target} />
          </Figure>
          <Figure
            title="Goodput and throughput over rate"
            wide
            note="Throughput climbs on where goodput has fallen: tokens for people who have given up waiting."
            table={() => ({
              head: ['rate', 'series', 'goodput', 'tokens/s'],
              rows: drawable.flatMap((s) =>
                s.points.map((p) => [`${figure(p.rate)}/s`, s.name, figure(p.goodput), figure(p.throughput)]),
              ),
            })}
          >
            <GoodputCurve series={drawable} />
          </Figure>
        </>
      )}
      {!file && drawable.length > 0 && (
        <Suspense fallback={null}>
          <Predict id={got[0]?.id ?? ''} series={drawable.filter((s) => s !== predicted)} onDone={setPredicted} />
        </Suspense>
      )}
      {reports.map((g) => (
        <Probes key={g.id} id={g.id} rows={g.report.probes} />
      ))}
    </div>
  );
}
