/** Whether the tool that measured was itself the bottleneck, and whether it did what was planned. */
import type { Report } from '../../src/report/report.ts';
import { Table } from '../charts/data-table.tsx';
import { figure, ms, percent, whole } from '../words.ts';

export function Client({ report: { client, tokens, lengths, arrivals } }: { report: Report }) {
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
