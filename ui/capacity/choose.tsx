/** Which searches, sweeps and runs stand on the chart. */
import type { Listed } from '../../src/dashboard/catalogue.ts';
import { adjust } from '../route.ts';
import { figure } from '../words.ts';

export function Choose({ listed, wanted }: { listed: readonly Listed[]; wanted: readonly string[] }) {
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
