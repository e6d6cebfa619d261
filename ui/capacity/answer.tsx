/** What a search found: the capacity as an interval, what binds there, what it cost. */
import type { LimitName } from '../../src/core/contract.ts';
import type { CapacityReport } from '../../src/report/curve-report.ts';
import { figure, LIMIT_WORDS, percent, whole } from '../words.ts';
import { nameOf } from './series.ts';

export function Answer({ id, report: r }: { id: string; report: CapacityReport }) {
  const { low, high, confidence } = r.capacity;
  const end =
    r.end === 'found' || (low !== null && high !== null)
      ? `${figure(low)} to ${figure(high)} requests/s`
      : r.end === 'infeasible'
        ? 'infeasible at any rate'
        : r.end === 'sweep'
          ? 'a sweep'
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
            {r.end === 'sweep' ? 'a curve at given rates, no decision; ' : ''}
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
            <span class="value">{LIMIT_WORDS[r.binding.limit as LimitName] ?? r.binding.limit}</span>
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
