/** Quantiles as the report has them, with their counts and intervals. */
import type { MetricName, MetricReport, QuantileName, Report } from '../../src/report/report.ts';
import { Table } from '../charts/data-table.tsx';
import { ms, whole } from '../words.ts';

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

export function Quantiles({ report: r }: { report: Report }) {
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
        {rows.some(([, m]) => m.unsupported.length > 0)
          ? ' * more than so many values can support; ? an end of an interval that they leave open.'
          : ''}
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
