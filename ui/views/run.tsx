/** One run: who was good and who was not, by how much, when, and what another contract would say. */
import { useMemo, useState } from 'preact/hooks';
import { formatDuration } from '../../src/base/units.ts';
import { LIMIT_NAMES } from '../../src/core/contract.ts';
import { LEDGER } from '../../src/core/judge.ts';
import type { MetricName, MetricReport, QuantileName, Report } from '../../src/report/report.ts';
import { StackedBars } from '../charts/bars.tsx';
import { Figure, Table } from '../charts/data-table.tsx';
import { Plot } from '../charts/plot.tsx';
import { Problem } from '../charts/problem.tsx';
import { Scatter, tidy } from '../charts/scatter.tsx';
import { ecdf, loadOverTime, outcomesOverArrival, quadrants, sortedCohort } from '../series.ts';
import {
  interval,
  intervalPending,
  isWhatIf,
  type Judgement,
  judgement,
  move,
  packed,
  report,
  settle,
  shedShare,
  source,
} from '../state.ts';
import { contractText, figure, LIMIT_WORDS, ledgerColor, limitText, ms, percent, when, whole } from '../words.ts';
import { ContractPanel } from './contract-panel.tsx';

export function RunView() {
  const told = report.value.value;
  const j = judgement.value;
  if (!told && !j) return <p class="wait">Reading the run…</p>;
  return (
    <div class="page">
      {told && <Heading report={told.report} status={told.status} epoch={told.epoch} problems={told.problems} />}
      {told && <Headline report={told.report} j={j} />}
      <ContractPanel />
      {packed.value.state === 'failed' && <Problem what="The requests cannot be read" why={packed.value.problem} />}
      {packed.value.state === 'loading' && <p class="wait">Reading the requests…</p>}
      {j && j.packed.rows === 0 && <p class="wait">This run holds no requests: it was cut before the first ended.</p>}
      {j && j.packed.rows > 0 && <Charts j={j} />}
      {told && <Quantiles report={told.report} />}
      {told && (
        <div class="grid">
          <Client report={told.report} />
          <Notes report={told.report} />
        </div>
      )}
    </div>
  );
}

function Heading(props: { report: Report; status: string; epoch: number; problems: readonly string[] }) {
  const { run } = props.report;
  const facts: [string, string | undefined][] = [
    ['Target', run.target],
    ['Model', run.model],
    ['Load', run.workload],
    ['Started', props.epoch > 0 ? when(props.epoch) : undefined],
    [
      'Contract',
      contractText({ ...props.report.contract, deadline: props.report.contract.deadline ?? Number.POSITIVE_INFINITY }),
    ],
  ];
  return (
    <header class="heading">
      <h1>
        {run.name ?? 'Run'} <span class={`badge ${props.status}`}>{props.status}</span>
      </h1>
      <dl class="facts">
        {facts.map(([name, value]) =>
          value === undefined ? null : (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ),
        )}
      </dl>
      {props.report.client.verdict === 'client-bound' && (
        <div class="problem" role="alert">
          <strong>Client-bound: this run proves nothing about the server.</strong> {props.report.client.why.join('; ')}
        </div>
      )}
      {props.problems.map((p) => (
        <p class="warn" key={p}>
          {p}
        </p>
      ))}
      {source.value.thinned && (
        <p class="warn">
          Thinned to fit one file: {whole(source.value.thinned.kept)} of {whole(source.value.thinned.of)} chunk receipts
          of the timeline are in it. Every request, figure and verdict is whole; of each request its first, last and
          largest-gap chunks, and every longer stall, were kept.
        </p>
      )}
    </header>
  );
}

function Headline({ report: r, j }: { report: Report; j: Judgement | undefined }) {
  const what = isWhatIf.value && j;
  const seconds = r.window.seconds;
  const i = what ? interval.value : undefined;
  const a = r.attainment;
  const value = what ? (i?.value ?? null) : a.value;
  const target = what ? j.contract.attainment : a.target;
  const shed = what ? shedShare(j.packed) > 0.01 : false;
  const met = what ? value !== null && value >= target && !shed : a.met;
  const [low, high] = what ? [i?.low ?? null, i?.high ?? null] : [a.low, a.high];
  const good = what ? j.fold.good : r.cohort.good;
  const goodput = what ? (seconds ? good / seconds : null) : r.goodput_rps;
  const waiting = what && intervalPending.value;
  const ledger = what
    ? LEDGER.map((c) => [c, j.fold.ledger[c]] as const)
    : LEDGER.map((c) => [c, r.cohort[c.replace('-', '_') as 'good']] as const);
  const offered = what ? j.fold.offered : r.cohort.offered;
  return (
    <section class="card wide headline" aria-label="Attainment and goodput" aria-live="polite">
      <div class="kpis">
        <Kpi
          name="Attainment"
          id="attainment"
          value={percent(value)}
          tone={value === null ? undefined : met ? 'good' : 'bad'}
          more={
            low === null || high === null
              ? waiting
                ? '95 % interval follows…'
                : 'no interval'
              : `${waiting ? '…' : ''}95 %: ${percent(low, 3)} to ${percent(high, 3)}`
          }
        />
        <Kpi
          name="Target"
          value={percent(target)}
          more={value === null ? 'undefined' : met ? 'met' : shed ? 'missed: load was shed' : 'missed'}
        />
        <Kpi
          name="Goodput"
          id="goodput"
          value={goodput === null ? '–' : `${figure(goodput)}/s`}
          more={`of ${figure(r.offered_rps)}/s offered${r.goodput_rps_per_gpu !== null && !what ? ` · ${figure(r.goodput_rps_per_gpu)} a GPU` : ''}`}
        />
        <Kpi
          name="Throughput"
          id="throughput"
          value={r.throughput_tps === null ? '–' : `${figure(r.throughput_tps)} tok/s`}
          more={`${figure(r.achieved_rps)}/s completed`}
        />
      </div>
      {!what && a.method_note && <p class="warn">{a.method_note}</p>}
      <CohortBar offered={offered} ledger={ledger} excluded={what ? j.fold.excluded : r.cohort.excluded} />
      <Misses r={r} j={what ? j : undefined} />
    </section>
  );
}

function Kpi(props: { name: string; value: string; more: string; tone?: 'good' | 'bad' | undefined; id?: string }) {
  return (
    <div class={`kpi ${props.tone ?? ''}`} data-kpi={props.id}>
      <span class="name">{props.name}</span>
      <span class="value">{props.value}</span>
      <span class="more">{props.more}</span>
    </div>
  );
}

function CohortBar(props: {
  offered: number;
  ledger: readonly (readonly [(typeof LEDGER)[number], number])[];
  excluded: number;
}) {
  const shown = props.ledger.filter(([, n]) => n > 0);
  return (
    <div class="cohort">
      <div
        class="bar"
        role="img"
        aria-label={`Of ${whole(props.offered)} offered: ${shown.map(([c, n]) => `${whole(n)} ${c}`).join(', ')}`}
      >
        {shown.map(([c, n]) => (
          <span key={c} style={{ flexGrow: String(n), background: ledgerColor(c) }} title={`${whole(n)} ${c}`} />
        ))}
      </div>
      <p class="legend" data-cohort>
        <strong>{whole(props.offered)}</strong> offered ={' '}
        {shown.map(([c, n], i) => (
          <span key={c} data-class={c}>
            {i > 0 ? ' + ' : ''}
            <i style={{ background: ledgerColor(c) }} />
            <b>{whole(n)}</b> {c}
          </span>
        ))}
        {props.excluded > 0 && <span> · {whole(props.excluded)} excluded from attainment by the contract</span>}
      </p>
    </div>
  );
}

function Misses({ r, j }: { r: Report; j: Judgement | undefined }) {
  const limits = (j?.contract ?? r.contract).limits;
  const names = LIMIT_NAMES.filter((n) => limits[n] !== undefined);
  if (names.length === 0) return null;
  const missed = (n: (typeof names)[number]): number => (j ? j.fold.misses[n] : r.misses[n]) ?? 0;
  const alone = (n: (typeof names)[number]): number => (j ? j.fold.alone[n] : r.misses_alone[n]) ?? 0;
  return (
    <p class="legend">
      Late by limit:{' '}
      {names.map((n, i) => (
        <span key={n}>
          {i > 0 ? ' · ' : ''}
          {LIMIT_WORDS[n]} {limitText(n, limits[n] as number)} missed by <b data-miss={n}>{whole(missed(n))}</b>, by{' '}
          {whole(alone(n))} alone
        </span>
      ))}
    </p>
  );
}

const DISTRIBUTIONS = {
  ttft: 'TTFT',
  tpot: 'TPOT',
  gap: 'max gap',
  latency: 'last token',
  e2e: 'E2E',
} as const;
type Distribution = keyof typeof DISTRIBUTIONS;

function Charts({ j }: { j: Judgement }) {
  const p = j.packed;
  const q = quadrants(p, j.judged);
  const load = useMemo(() => loadOverTime(p, 240), [p]);
  const start = p.window?.start;
  const end = p.window?.end;
  const seconds = (t: number): string => formatDuration(t).replace('µs', 'µs');
  const windowMarks = [
    ...(start === undefined ? [] : [{ x: start, color: '--muted', label: 'cohort' }]),
    ...(end === undefined ? [] : [{ x: end, color: '--muted', label: '' }]),
  ];
  const bins = Math.max(10, Math.min(90, Math.floor(p.rows / 3)));
  const outcomes = useMemo(() => outcomesOverArrival(p, j.judged, bins), [j]);
  return (
    <div class="grid">
      <Figure
        title="TTFT × TPOT"
        note={
          <>
            A dot an operation of the cohort that completed, the contract's box lower left. Drag a line, or focus it and
            use the arrow keys.{q.absent > 0 ? ` ${whole(q.absent)} have no TPOT or did not complete.` : ''}
            {q.otherwise > 0 ? ` ${whole(q.otherwise)} within both are late by another limit.` : ''}
          </>
        }
        table={() => ({
          head: ['', 'operations'],
          rows: [
            ['within both limits', q.both],
            ['missed TTFT alone', q.tpotOnly],
            ['missed TPOT alone', q.ttftOnly],
            ['missed both', q.neither],
            ['not on the chart', q.absent],
          ],
        })}
      >
        <Scatter of={j} />
      </Figure>
      <Ecdf j={j} />
      <Figure
        title="Outcomes over arrival time"
        note="Operations by when they were due, warm-up and cool-down included."
        table={() => ({
          head: ['arrival', ...LEDGER.filter((_, k) => outcomes.counts[k]!.some((n) => n > 0))],
          rows: Array.from({ length: outcomes.counts[0]!.length }, (_, b) => [
            seconds(outcomes.from + b * outcomes.width),
            ...LEDGER.flatMap((_, k) => (outcomes.counts[k]!.some((n) => n > 0) ? [outcomes.counts[k]![b]!] : [])),
          ]),
        })}
      >
        <StackedBars
          label="Operations by arrival and outcome"
          bins={outcomes.counts[0]!.length}
          at={(b) => seconds(outcomes.from + b * outcomes.width)}
          parts={LEDGER.map((c, k) => ({ name: c, color: ledgerColor(c), values: outcomes.counts[k]! })).filter((x) =>
            x.values.some((n) => n > 0),
          )}
          marks={windowMarks.map((m) => ({ at: (m.x - outcomes.from) / outcomes.width, label: m.label }))}
        />
      </Figure>
      <Figure
        title="Queue and in flight"
        note="Operations not yet sent, sent and without output, and streaming; on the right, output tokens per second with each stream's tokens spread evenly."
        table={() => ({
          head: ['time', 'not sent', 'waiting', 'streaming', 'tokens/s'],
          rows: Array.from(load.at, (t, k) => [
            seconds(t),
            load.unsent[k]!,
            load.waiting[k]!,
            load.streaming[k]!,
            Math.round(load.tokens[k]!),
          ]).filter((_, k) => k % 4 === 0),
        })}
      >
        <Plot
          label="Operations in flight over time"
          x={load.at}
          lines={[
            { label: 'waiting', color: '--c-waiting', values: load.waiting, fill: true },
            { label: 'streaming', color: '--c-good', values: load.streaming, fill: true },
            { label: 'not sent', color: '--c-unsent', values: load.unsent },
            { label: 'tokens/s', color: '--muted', values: load.tokens, scale: 'y2', dash: true },
          ]}
          formatX={seconds}
          formatY={(y) => figure(y, 3)}
          formatY2={(y) => (y >= 1000 ? `${figure(y / 1000, 3)}k` : figure(y, 3))}
          marks={windowMarks}
        />
      </Figure>
    </div>
  );
}

function Ecdf({ j }: { j: Judgement }) {
  const [name, setName] = useState<Distribution>('ttft');
  const p = j.packed;
  const sorted = useMemo(() => sortedCohort(p, p[name]), [p, name]);
  const curve = useMemo(() => ecdf(sorted), [sorted]);
  const limit = j.contract.limits[name];
  return (
    <Figure
      title="Distribution"
      aside={
        <label>
          <span class="sr">Metric</span>
          <select value={name} onChange={(e) => setName(e.currentTarget.value as Distribution)}>
            {Object.entries(DISTRIBUTIONS).map(([key, word]) => (
              <option value={key} key={key}>
                {word}
              </option>
            ))}
          </select>
        </label>
      }
      note={`Share of the cohort's ${whole(sorted.length)} measured ${DISTRIBUTIONS[name]} values at or below x${limit === undefined ? '' : '; drag the limit'}.`}
      table={() => ({
        head: ['share', DISTRIBUTIONS[name]],
        rows: [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1].map((s) => {
          const k = curve.share.findIndex((x) => x >= s - 1e-12);
          return [percent(s), k < 0 ? '–' : ms(curve.x[k])];
        }),
      })}
    >
      <Plot
        label={`Distribution of ${DISTRIBUTIONS[name]}`}
        xLabel={DISTRIBUTIONS[name]}
        height={300}
        x={curve.x}
        lines={[{ label: 'share', color: '--accent', values: curve.share, fill: true, stepped: true }]}
        formatX={(x) => formatDuration(x)}
        formatY={(y) => percent(y, 3)}
        yRange={[0, 1]}
        logX={curve.x.length > 0 && curve.x[0]! > 0}
        marks={limit === undefined ? [] : [{ x: limit, color: '--c-late', label: `limit ${formatDuration(limit)}` }]}
        onDrag={(_, x) => move({ [name]: tidy(x) })}
        onDragEnd={settle}
      />
    </Figure>
  );
}

const METRICS: readonly [MetricName, string][] = [
  ['ttft_ms', 'TTFT'],
  ['ttft_dispatched_ms', 'TTFT from dispatch'],
  ['ttfa_ms', 'TTFA'],
  ['tpot_ms', 'TPOT'],
  ['itl_ms', 'ITL'],
  ['chunk_gap_ms', 'chunk gap'],
  ['max_gap_ms', 'max gap'],
  ['latency_ms', 'last token'],
  ['e2e_ms', 'E2E'],
  ['e2e_dispatched_ms', 'E2E from dispatch'],
];
const QS: readonly QuantileName[] = ['p50', 'p90', 'p95', 'p99'];

function Quantiles({ report: r }: { report: Report }) {
  const rows = METRICS.flatMap(([key, word]) => {
    const m = r.metrics[key];
    return m ? [[word, m] as const] : [];
  });
  const shown = (m: MetricReport, q: QuantileName): string => `${ms(m[q])}${m.unsupported.includes(q) ? '*' : ''}`;
  const offered = (m: MetricReport, q: QuantileName): string =>
    m.offered === null ? '–' : m.offered[q] === null ? `> ${ms(m.offered.censored_above ?? 0)}` : ms(m.offered[q]);
  const ci = (m: MetricReport): string =>
    m.ci === null ? '–' : m.ci.p99.map((x) => (x === null ? '?' : ms(x))).join(' … ');
  return (
    <section class="card wide" aria-label="Quantiles">
      <header>
        <h2>Quantiles</h2>
      </header>
      <p class="note">
        Over measured values, then over offered operations, where those that failed rank last. Limits do not change
        them.
        {r.metrics.tpot_ms || r.metrics.itl_ms ? ' TPOT samples one mean a request, ITL and gaps every gap.' : ''}
        {rows.some(([, m]) => m.unsupported.length > 0) ? ' * more than so many values can support.' : ''}
      </p>
      {rows.length === 0 ? (
        <p>Nothing was measured.</p>
      ) : (
        <Table
          label="Quantiles over measured values and over offered operations"
          head={['', 'count', 'mean', ...QS, 'max', 'p99, 95 % interval', ...QS.map((q) => `${q} offered`)]}
          rows={rows.map(([word, m]) => [
            word,
            whole(m.count),
            ms(m.mean),
            ...QS.map((q) => shown(m, q)),
            ms(m.max),
            ci(m),
            ...QS.map((q) => offered(m, q)),
          ])}
        />
      )}
    </section>
  );
}

function Client({ report: { client, tokens, lengths, arrivals } }: { report: Report }) {
  const spread = (s: { p50: number; p99: number; max: number } | null): string =>
    s === null ? '–' : `p50 ${ms(s.p50)}, p99 ${ms(s.p99)}, max ${ms(s.max)}`;
  const rows: [string, string][] = [
    ['verdict', client.verdict],
    ['send lag', spread(client.send_lag_ms)],
    ['event-loop delay', spread(client.event_loop_ms)],
    ['stamps late behind other streams', spread(client.stamp_late_ms)],
    ['events coalesced', percent(client.coalesced, 3)],
    ['CPU of one core', percent(client.cpu, 3)],
    ['never sent by its own limit', whole(client.unsent)],
    ['records dropped', whole(client.dropped)],
    ['tokens counted by', tokens.source],
    ['output tokens asked / achieved', `${figure(lengths.asked_output, 7)} / ${figure(lengths.achieved_output, 7)}`],
    ...(arrivals
      ? ([
          [
            'arrivals',
            `${arrivals.process}, ${figure(arrivals.planned_rps)}/s planned, ${figure(arrivals.achieved_rps)}/s sent: ${arrivals.as_planned ? 'as planned' : 'NOT as planned'}`,
          ],
        ] as [string, string][])
      : []),
  ];
  return (
    <section class="card" aria-label="Client health">
      <header>
        <h2>Client health</h2>
      </header>
      <p class="note">Whether what measured was itself the bottleneck.</p>
      <Table label="Client health" words head={['', 'value']} rows={rows} />
    </section>
  );
}

function Notes({ report: r }: { report: Report }) {
  if (r.notes.length === 0 && r.reasons.length === 0) return null;
  return (
    <section class="card" aria-label="Notes">
      <header>
        <h2>Notes</h2>
      </header>
      {r.notes.length > 0 && (
        <ul class="notes">
          {r.notes.map((n) => (
            <li key={n.text}>{n.text}</li>
          ))}
        </ul>
      )}
      {r.reasons.length > 0 && (
        <Table
          label="Reasons of unsuccessful ends"
          head={['reason', 'operations', 'example']}
          rows={r.reasons.map((x) => [x.reason, x.count, x.detail || '–'])}
        />
      )}
    </section>
  );
}
