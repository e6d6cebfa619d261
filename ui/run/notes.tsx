/** What the report remarks, and why operations did not succeed. */
import type { Report } from '../../src/report/report.ts';
import { Table } from '../charts/data-table.tsx';

export function Notes({ report: r }: { report: Report }) {
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
