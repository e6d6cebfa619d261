/** How many requests a second the contract allows: searches, sweeps and single runs on one chart, and the model's word. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Listed } from '../../src/dashboard/catalogue.ts';
import type { CapacityReport, CurveRow } from '../../src/report/curve-report.ts';
import { AttainmentCurve, type CurveDot, type CurveSeries, GoodputCurve } from '../charts/curve.tsx';
import { Figure, Table } from '../charts/data-table.tsx';
import { Problem } from '../charts/problem.tsx';
import { adjust, hashOf, param } from '../route.ts';
import { contract, runId, source } from '../state.ts';
import { figure, ms, percent, whole } from '../words.ts';

const COLORS = ['--s-1', '--s-2', '--s-3', '--s-4', '--s-5', '--s-6'];

interface Got {
  readonly id: string;
  readonly report?: CapacityReport;
  /** A single run: one point. */
  readonly run?: Listed;
  readonly problem?: string;
}

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
  const points = got.filter((g): g is Got & { run: Listed } => g.run !== undefined);
  const series: CurveSeries[] = reports.map((g, k) => ({
    name: nameOf(g.id),
    color: COLORS[k % COLORS.length] as string,
    // Where every run was void there is no curve; what was seen is shown all the same, and marked.
    points: (g.report.curve.length > 0 ? g.report.curve : g.report.probes).map(dotOf),
    capacity: g.report.capacity,
  }));
  const singles = points.flatMap((g) => dotOfRun(g.run));
  if (singles.length > 0)
    series.push({
      name: singles.length === 1 ? nameOf(points[0]!.id) : 'single runs',
      color: COLORS[series.length % COLORS.length] as string,
      points: singles,
    });
  if (predicted) series.push(predicted);
  const target = reports[0]?.report.target ?? points[0]?.run.attainment?.target ?? contract.value?.attainment ?? 0.9;
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
      {import.meta.env.MODE !== 'page' && !file && drawable.length > 0 && (
        <Predict series={drawable.filter((s) => s !== predicted)} onDone={setPredicted} />
      )}
      {reports.map((g) => (
        <Probes key={g.id} id={g.id} rows={g.report.probes} />
      ))}
    </div>
  );
}

const nameOf = (id: string): string => id.split('/').at(-1) ?? id;

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

function Choose({ listed, wanted }: { listed: readonly Listed[]; wanted: readonly string[] }) {
  const able = listed.filter(
    (r) => r.status !== 'corrupt' && (r.kind === 'search' || (r.parent === null && r.rate !== null)),
  );
  if (able.length === 0) return null;
  return (
    <details class="card wide choose" open={wanted.length === 0}>
      <summary>Runs on the chart ({wanted.length})</summary>
      <ul>
        {able.slice(0, 200).map((r) => (
          <li key={r.id}>
            <label>
              <input
                type="checkbox"
                checked={wanted.includes(r.id)}
                onChange={(e) => {
                  const next = e.currentTarget.checked ? [...wanted, r.id] : wanted.filter((x) => x !== r.id);
                  adjust({ run: next[0], with: next.slice(1).join(',') || undefined });
                }}
              />{' '}
              {r.name}{' '}
              <small>
                {r.kind === 'search' ? 'search' : `${figure(r.rate)}/s`} {r.target ?? r.model ?? ''}
              </small>
            </label>
          </li>
        ))}
      </ul>
    </details>
  );
}

function Legend({ series }: { series: readonly CurveSeries[] }) {
  return (
    <span class="legend">
      {series.map((s) => (
        <span key={s.name}>
          {' '}
          <i style={{ background: `var(${s.color})` }} />
          {s.name}
        </span>
      ))}
    </span>
  );
}

function Answer({ id, report: r }: { id: string; report: CapacityReport }) {
  const { low, high, confidence } = r.capacity;
  const end =
    r.end === 'found' || (low !== null && high !== null)
      ? `${figure(low)} to ${figure(high)} requests/s`
      : r.end === 'infeasible'
        ? 'infeasible at any rate'
        : r.end === 'sweep'
          ? 'a sweep: a curve, no decision'
          : low !== null
            ? `at least ${figure(low)} requests/s`
            : r.end;
  return (
    <section class="card wide headline" aria-label={`Answer of ${nameOf(id)}`}>
      <div class="kpis">
        <div class="kpi" data-kpi="capacity">
          <span class="name">{nameOf(id)}</span>
          <span class="value">{end}</span>
          <span class="more">
            {percent(r.target)} attainment{r.end === 'found' ? `, ${percent(confidence)} confidence` : ''}
          </span>
        </div>
        {r.goodput_at_capacity_rps !== null && (
          <div class="kpi">
            <span class="name">Goodput there</span>
            <span class="value">{figure(r.goodput_at_capacity_rps)}/s</span>
            <span class="more">{r.per_gpu_rps === null ? '' : `capacity ${figure(r.per_gpu_rps)}/s a GPU`}</span>
          </div>
        )}
        {r.binding && (
          <div class="kpi">
            <span class="name">Binding limit</span>
            <span class="value">{r.binding.limit}</span>
            <span class="more">missed by {percent(r.binding.share, 3)} beyond it</span>
          </div>
        )}
        <div class="kpi">
          <span class="name">Cost</span>
          <span class="value">{whole(r.offered)}</span>
          <span class="more">
            requests in {whole(r.runs)} runs, {figure(r.seconds, 3)} s
          </span>
        </div>
      </div>
      {r.notes.length > 0 && (
        <ul class="notes">
          {r.notes.map((n) => (
            <li key={n}>{n}</li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Probes({ id, rows }: { id: string; rows: readonly CurveRow[] }) {
  return (
    <section class="card wide" aria-label={`Runs of ${nameOf(id)}`}>
      <header>
        <h2>Runs of {nameOf(id)}, in order</h2>
      </header>
      <Table
        label={`Runs of ${nameOf(id)}`}
        head={['rate', 'why', 'verdict', 'good', 'interval', 'goodput', 'tokens/s', 'TTFT p99', 'TPOT p90', 'queue']}
        rows={rows.map((p) => [
          `${figure(p.rate)}/s`,
          p.why,
          p.because ? `${p.verdict}: ${p.because}` : p.verdict,
          percent(p.attainment, 3),
          `${percent(p.low, 3)} to ${percent(p.high, 3)}`,
          figure(p.goodput_rps),
          p.throughput_tps === null ? '?' : String(Math.round(p.throughput_tps)),
          ms(p.ttft_ms.p99),
          ms(p.tpot_ms.p90),
          p.unstable ? 'grows' : '',
        ])}
      />
      {rows.some((p) => p.run) && (
        <p class="note">
          {rows.map(
            (p) =>
              p.run && (
                <a key={p.run} href={hashOf('run', { run: `${id}/${p.run}` })}>
                  {figure(p.rate)}/s{' '}
                </a>
              ),
          )}
        </p>
      )}
    </section>
  );
}

/** The engine model at the same rates: dashed on the chart. */
function Predict({ series, onDone }: { series: readonly CurveSeries[]; onDone: (s: CurveSeries | undefined) => void }) {
  const [state, setState] = useState('');
  const [names, setNames] = useState<{ models: readonly string[]; gpus: readonly string[] } | undefined>(undefined);
  const stop = useRef<AbortController | undefined>(undefined);
  useEffect(() => () => stop.current?.abort(), []);
  useEffect(() => {
    void import('../../src/model/index.ts').then((m) =>
      setNames({ models: m.MODELS.map((x) => x.name).sort(), gpus: m.ACCELERATORS.map((a) => a.id).sort() }),
    );
  }, []);
  const run = (e: Event): void => {
    e.preventDefault();
    const form = new FormData(e.currentTarget as HTMLFormElement);
    const text = (name: string): string => String(form.get(name) ?? '');
    const rates = [...new Set(series.flatMap((s) => s.points.map((p) => p.rate)))].sort((a, b) => a - b);
    // Where few rates are known, the curve is drawn about them.
    const all = rates.length >= 5 ? rates : [0.4, 0.6, 0.8, 1, 1.2, 1.5, 2].map((f) => f * (rates.at(-1) as number));
    stop.current?.abort();
    const control = new AbortController();
    stop.current = control;
    void (async () => {
      try {
        const [{ simulateRate }, { contractOf }] = await Promise.all([
          import('../simulate.ts'),
          import('../../src/core/contract.ts'),
        ]);
        const c = contractOf({ ttft: Number(text('ttft')), tpot: Number(text('tpot')) }, { deadline: 60_000 });
        const dots: CurveDot[] = [];
        for (const [k, rate] of all.entries()) {
          setState(`simulating ${k + 1} of ${all.length}…`);
          const a = await simulateRate(
            {
              engine: {
                model: text('model'),
                gpu: text('gpu'),
                tp: Number(text('tp')),
                kv: 'bf16',
                basis: 'calibrated',
                maxSeqs: 256,
                replicas: 1,
              },
              contract: c,
              input: Number(text('input')),
              output: Number(text('output')),
              rate,
              requests: 600,
              seed: 1,
            },
            control.signal,
          );
          dots.push(a);
          onDone({
            name: `model: ${text('model')} on ${text('tp')} × ${text('gpu')}`,
            color: '--muted',
            dashed: true,
            points: [...dots],
          });
        }
        setState('calibrated on served measurements elsewhere; 600 simulated requests a rate');
      } catch (error) {
        if ((error as Error).name !== 'AbortError') setState((error as Error).message);
      }
    })();
  };
  const limits = contract.value?.limits;
  if (!names) return null;
  return (
    <section class="card wide" aria-label="Model prediction">
      <header>
        <h2>What the model predicts</h2>
      </header>
      <form class="terms" onSubmit={run}>
        <Pick name="model" options={names.models} value="llama-3.1-8b" />
        <Pick name="gpu" options={names.gpus} value="h100-sxm" />
        <Num name="tp" label="TP" value={1} />
        <Num name="input" label="input tokens" value={512} />
        <Num name="output" label="output tokens" value={128} />
        <Num name="ttft" label="TTFT ≤, ms" value={limits?.ttft ?? 500} />
        <Num name="tpot" label="TPOT ≤, ms" value={limits?.tpot ?? 50} />
        <button type="submit">Simulate at these rates</button>
      </form>
      <p class="note" role="status">
        {state}
      </p>
    </section>
  );
}

function Pick({ name, options, value }: { name: string; options: readonly string[]; value: string }) {
  return (
    <div class="term">
      <label for={`pick-${name}`}>{name}</label>
      <select id={`pick-${name}`} name={name}>
        {options.map((o) => (
          <option key={o} selected={o === value}>
            {o}
          </option>
        ))}
      </select>
    </div>
  );
}

function Num({ name, label, value }: { name: string; label: string; value: number }) {
  return (
    <div class="term">
      <label for={`num-${name}`}>{label}</label>
      <input id={`num-${name}`} name={name} type="number" min="0" step="any" required defaultValue={String(value)} />
    </div>
  );
}
