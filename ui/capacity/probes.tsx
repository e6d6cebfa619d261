/** The runs of a search, in the order in which it made them, and why. */
import type { CurveRow } from '../../src/report/curve-report.ts';
import { Table } from '../charts/data-table.tsx';
import { hashOf } from '../route.ts';
import { figure, ms, percent } from '../words.ts';
import { nameOf } from './series.ts';

export function Probes({ id, rows }: { id: string; rows: readonly CurveRow[] }) {
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
