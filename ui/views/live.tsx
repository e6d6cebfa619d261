/** What is running now, a second at a time. Nothing grows: the last ten minutes are shown, the rest is totals. */
import { useEffect, useState } from 'preact/hooks';
import { formatDuration } from '../../src/base/units.ts';
import { LEDGER } from '../../src/core/judge.ts';
import type { LiveRun } from '../../src/dashboard/live.ts';
import type { LiveSnapshot } from '../../src/observe/cohorts/snapshot.ts';
import type { CapacityReport } from '../../src/report/curve-report.ts';
import { Figure, Table } from '../charts/data-table.tsx';
import { Kpi } from '../charts/kpi.tsx';
import { Plot } from '../charts/plot.tsx';
import { hashOf } from '../route.ts';
import { figure, ledgerColor, limitsText, ms, percent, whole } from '../words.ts';

interface Second {
  readonly time: number;
  readonly runs: readonly LiveRun[];
  readonly searches: readonly {
    readonly id: string;
    readonly search: readonly SoFar[];
    readonly capacity: CapacityReport | null;
  }[];
  readonly proxy: { readonly url: string; readonly snapshot?: LiveSnapshot; readonly problem?: string } | null;
}

interface SoFar {
  readonly rate?: number;
  readonly role?: string;
  readonly why?: string;
  readonly attainment?: number;
  readonly goodput?: number;
  readonly offered?: number;
}

export default function LiveView() {
  const [now, setNow] = useState<Second | undefined>(undefined);
  const [lost, setLost] = useState(false);
  useEffect(() => {
    const events = new EventSource('api/live');
    events.onmessage = (e) => {
      setLost(false);
      const next = JSON.parse(e.data as string) as Second;
      setNow((before) => ({ ...next, runs: withEnded(next.runs, before?.runs ?? []) }));
    };
    events.onerror = () => setLost(true);
    return () => events.close();
  }, []);
  const nothing = now && now.runs.length === 0 && now.proxy === null;
  return (
    <div class="page">
      <header class="heading">
        <h1>
          Live{' '}
          <span class={`badge ${lost ? 'cut' : now ? 'running' : ''}`} role="status">
            {lost ? 'connection lost' : now ? 'following' : 'connecting'}
          </span>
        </h1>
      </header>
      {nothing && (
        <div class="empty">
          <h2>Nothing is running</h2>
          <p>
            A goodput bench, capacity search or sweep that writes to this folder appears here by itself. A proxy is
            followed with <code>goodput ui --live http://127.0.0.1:8080/live</code>.
          </p>
        </div>
      )}
      {now?.runs.map((r) => (
        <Running key={r.id} r={r} />
      ))}
      {now?.searches.map((s) => (
        <Searching key={s.id} {...s} />
      ))}
      {now?.proxy && <ProxyNow {...now.proxy} />}
    </div>
  );
}

/** A run that ended is told once more and then no longer: it stays on the page, the last few of them. */
function withEnded(now: readonly LiveRun[], before: readonly LiveRun[]): readonly LiveRun[] {
  const ended = before.filter((r) => r.status !== 'running' && !now.some((n) => n.id === r.id));
  return [...now, ...ended.slice(0, 5)];
}

function Running({ r }: { r: LiveRun }) {
  const last = r.ticks.at(-1);
  const ended = LEDGER.filter((c) => r.ledger[c] > 0);
  const good = r.ledger.good;
  const total = ended.reduce((n, c) => n + r.ledger[c], 0);
  const x = r.ticks.map((t) => t.t);
  const contract = { ...r.contract, deadline: r.contract.deadline ?? Number.POSITIVE_INFINITY };
  const window = r.window
    ? [
        { x: r.window[0], color: '--muted', label: 'cohort' },
        { x: r.window[1], color: '--muted', label: '' },
      ]
    : [];
  return (
    <section class="live-run" aria-label={r.name} data-live={r.id}>
      <header class="heading">
        <h2>
          {r.name} <span class={`badge ${r.status}`}>{r.status}</span>
        </h2>
        <p class="note">
          {limitsText(contract)} ·{' '}
          {r.status === 'running' ? (
            <a href={hashOf('run', { run: r.id })}>as it stands</a>
          ) : (
            <a href={hashOf('run', { run: r.id })}>its report</a>
          )}
        </p>
      </header>
      <section class="card wide headline" aria-label={`Totals of ${r.name}`}>
        <div class="kpis">
          <Kpi
            id="live-offered"
            name="Offered"
            value={whole(last?.offered ?? 0)}
            more={`${whole(last?.open ?? 0)} in flight`}
          />
          <Kpi
            id="live-good"
            name="Good so far"
            value={total > 0 ? percent(good / total, 3) : '–'}
            more={`${whole(good)} of ${whole(total)} that ended, warm-up included`}
          />
          <Kpi
            name="This second"
            value={last ? `${whole(last.good)}/s good` : '–'}
            more={last ? `${whole(last.tokens)} tokens` : ''}
          />
          <Kpi name="TTFT now" value={ms(last?.ttft_p50)} more={`p99 ${ms(last?.ttft_p99)}`} />
        </div>
        <div class="cohort">
          <div class="bar" role="img" aria-label={`Ended: ${ended.map((c) => `${r.ledger[c]} ${c}`).join(', ')}`}>
            {ended.map((c) => (
              <span key={c} style={{ flexGrow: String(r.ledger[c]), background: ledgerColor(c) }} />
            ))}
          </div>
        </div>
      </section>
      <div class="grid">
        <Figure
          title={`${r.name}: ends a second`}
          table={() => ({
            head: ['time', 'good', 'not good', 'in flight', 'TTFT p50', 'TTFT p99', 'TPOT p50'],
            rows: r.ticks
              .slice(-60)
              .map((t) => [formatDuration(t.t), t.good, t.bad, t.open, ms(t.ttft_p50), ms(t.ttft_p99), ms(t.tpot_p50)]),
          })}
        >
          <Plot
            label="Operations ended each second"
            x={x}
            lines={[
              { label: 'good', color: '--c-good', values: r.ticks.map((t) => t.good), fill: true },
              { label: 'not good', color: '--c-late', values: r.ticks.map((t) => t.bad) },
              { label: 'in flight', color: '--muted', values: r.ticks.map((t) => t.open), scale: 'y2', dash: true },
            ]}
            formatX={formatDuration}
            formatY={(y) => figure(y, 3)}
            marks={window}
          />
        </Figure>
        <Figure title={`${r.name}: TTFT and TPOT`}>
          <Plot
            label="Latency each second"
            x={x}
            lines={[
              { label: 'TTFT p50', color: '--s-1', values: r.ticks.map((t) => t.ttft_p50) },
              { label: 'TTFT p99', color: '--s-2', values: r.ticks.map((t) => t.ttft_p99) },
              { label: 'TPOT p50', color: '--s-3', values: r.ticks.map((t) => t.tpot_p50), scale: 'y2', dash: true },
            ]}
            formatX={formatDuration}
            formatY={formatDuration}
            marks={window}
          />
        </Figure>
      </div>
    </section>
  );
}

function Searching({ id, search, capacity }: Second['searches'][number]) {
  const rows: readonly SoFar[] =
    search.length > 0
      ? search
      : (capacity?.probes ?? []).map((p) => ({
          rate: p.rate,
          role: p.role,
          why: p.why,
          attainment: p.attainment,
          goodput: p.goodput_rps,
          offered: p.offered,
        }));
  return (
    <section class="card wide" aria-label={`Search ${id}`}>
      <header>
        <h2>Search {id}</h2>
        <a href={hashOf('capacity', { run: id })}>on the chart</a>
      </header>
      {rows.length === 0 ? (
        <p class="wait">Its first run is under way.</p>
      ) : (
        <Table
          label={`Rates of ${id} so far`}
          head={['rate', 'why', 'good', 'goodput', 'requests']}
          rows={rows.map((p) => [
            `${figure(p.rate)}/s`,
            p.why ?? p.role ?? '',
            percent(p.attainment, 3),
            figure(p.goodput),
            p.offered ?? '–',
          ])}
        />
      )}
    </section>
  );
}

/** Of a proxy's snapshot: `inf` where the quantile falls among those that never came. */
const quantile = (x: number | 'inf' | null): string => (x === 'inf' ? '∞' : ms(x));

function ProxyNow({ url, snapshot: s, problem }: NonNullable<Second['proxy']>) {
  if (problem !== undefined || !s) {
    return (
      <div class="problem" role="alert">
        <strong>The proxy at {url} does not answer.</strong> {problem}
      </div>
    );
  }
  if (s.schema !== 'goodput.live/1') return <p class="warn">{url}: not a snapshot this version reads.</p>;
  const x = s.windows.map((w) => w.start_s);
  const clock = (t: number): string => new Date(1000 * t).toTimeString().slice(0, 8);
  return (
    <section class="live-run" aria-label={`Proxy ${s.instance}`} data-proxy>
      <header class="heading">
        <h2>
          Proxy {s.instance} <span class="badge running">live</span>
        </h2>
      </header>
      <section class="card wide headline" aria-label="Now">
        <div class="kpis">
          <Kpi
            name="In flight"
            value={whole(s.now.in_flight)}
            more={`${whole(s.now.waiting)} without output yet, ${whole(s.now.queued)} held back`}
          />
          <Kpi name="Oldest wait" value={ms(s.now.oldest_waiting_ms)} more="without output" />
          <Kpi
            name="Attainment since start"
            value={s.total.attainment ? percent(s.total.attainment.low, 4) : '–'}
            more={s.total.attainment ? `up to ${percent(s.total.attainment.high, 4)} with what is pending` : ''}
          />
          <Kpi
            id="proxy-offered"
            name="Offered since start"
            value={whole(s.total.offered)}
            more={`${whole(s.total.outcomes.good)} good`}
          />
        </div>
      </section>
      <div class="grid">
        <Figure
          title="By window of arrival"
          table={() => ({
            head: ['window', 'state', 'offered', 'good', 'attainment', 'TTFT p99'],
            rows: s.windows.map((w) => [
              clock(w.start_s),
              w.state,
              w.all.offered,
              w.all.outcomes.good,
              w.all.attainment ? percent(w.all.attainment.low, 3) : '–',
              quantile(w.all.ttft.offered.p99_ms),
            ]),
          })}
        >
          {x.length === 0 ? (
            <p class="wait">The first window of {formatDuration(1000 * s.window_s)} is not over yet.</p>
          ) : (
            <Plot
              label="Attainment and goodput by window"
              x={x}
              lines={[
                { label: 'attainment', color: '--accent', values: s.windows.map((w) => w.all.attainment?.low ?? null) },
                { label: 'goodput', color: '--c-good', values: s.windows.map((w) => w.all.goodput_rps), scale: 'y2' },
              ]}
              formatX={clock}
              formatY={(y) => percent(y, 3)}
              formatY2={(y) => figure(y, 3)}
              yRange={[0, 1]}
            />
          )}
        </Figure>
        <section class="card" aria-label="Classes">
          <header>
            <h2>Classes</h2>
          </header>
          <Table
            label="Classes since the start"
            head={['class', 'offered', 'pending', 'good', 'attainment', 'TTFT p99', 'TPOT p99']}
            rows={s.classes.map((c) => [
              c.class,
              c.offered,
              c.pending,
              c.outcomes.good,
              c.attainment ? percent(c.attainment.low, 3) : '–',
              quantile(c.ttft.offered.p99_ms),
              quantile(c.tpot.offered.p99_ms),
            ])}
          />
        </section>
      </div>
    </section>
  );
}
