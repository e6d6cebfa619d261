/** All runs: found by looking, searched by typing, chosen to be compared. */
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { Listed } from '../../src/dashboard/catalogue.ts';
import type { Saved } from '../../src/dashboard/saved.ts';
import { Problem } from '../charts/problem.tsx';
import { adjust, go, hashOf, param } from '../route.ts';
import type { Listing } from '../source.ts';
import { source } from '../state.ts';
import { figure, ms, percent, when, whole } from '../words.ts';

export default function RunsView() {
  const [listing, setListing] = useState<Listing | undefined>(undefined);
  const [saved, setSaved] = useState<Saved | undefined>(undefined);
  const [problem, setProblem] = useState('');
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const query = param('q') ?? '';

  useEffect(() => {
    let timer: ReturnType<typeof setTimeout>;
    const look = (): void => {
      source.value.list().then(
        (l) => {
          setListing(l);
          setProblem('');
          // A list with a run under way is looked at again.
          timer = setTimeout(look, l.runs.some((r) => r.status === 'running') ? 2000 : 10_000);
        },
        (e: Error) => {
          setProblem(e.message);
          timer = setTimeout(look, 5000);
        },
      );
    };
    look();
    source.value.saved().then(setSaved, () => {});
    return () => clearTimeout(timer);
  }, []);

  const rows = useMemo(() => {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    return (listing?.runs ?? []).filter((r) => {
      const text = [r.name, r.id, r.target, r.model, r.load, r.contract, r.status, r.kind, ...(saved?.tags[r.id] ?? [])]
        .join(' ')
        .toLowerCase();
      return words.every((w) => text.includes(w));
    });
  }, [listing, query, saved]);

  const tag = (id: string, tags: readonly string[]): void => {
    source.value
      .saved()
      .then((now) => source.value.save({ ...now, tags: { ...now.tags, [id]: tags } }))
      .then(setSaved, (e: Error) => setProblem(e.message));
  };

  if (!listing)
    return problem ? <Problem what="The runs cannot be listed" why={problem} /> : <p class="wait">Looking for runs…</p>;
  const open = (r: Listed): string => hashOf(r.kind === 'search' ? 'capacity' : 'run', { run: r.id });
  return (
    <div class="page">
      <header class="heading">
        <h1>Runs</h1>
        <p class="note">
          in {listing.folder}
          {problem ? ` · ${problem}` : ''}
        </p>
        {listing.runs.length > 0 && (
          <p class="note">
            Attainment is the share of offered requests that kept every limit of their contract; the bar is its 95 %
            interval, the line on it the target. Goodput counts those requests a second.
          </p>
        )}
      </header>
      <div class="bar-tools">
        <label>
          <span class="sr">Search</span>
          <input
            type="search"
            placeholder="search name, target, model, tag…   ( / )"
            value={query}
            onInput={(e) => adjust({ q: e.currentTarget.value || undefined })}
          />
        </label>
        <span role="status">
          {whole(rows.length)} of {whole(listing.runs.length)}
        </span>
        <button
          type="button"
          disabled={chosen.length < 2}
          onClick={() => go('compare', { runs: chosen.join(',') })}
          title="Choose two or more"
        >
          Compare {chosen.length > 0 ? chosen.length : ''}
        </button>
        <button
          type="button"
          disabled={chosen.length === 0}
          onClick={() => go('capacity', { run: chosen[0] as string, with: chosen.slice(1).join(',') })}
        >
          On one capacity chart
        </button>
      </div>
      {listing.runs.length === 0 ? (
        <div class="empty">
          <h2>No runs yet</h2>
          <p>Measure something, and it appears here:</p>
          <pre>goodput bench http://127.0.0.1:8000 --rate 8 --duration 30s --slo ttft=500ms,tpot=50ms</pre>
        </div>
      ) : (
        <div class="scroll card wide" role="region" aria-label="Runs" tabIndex={0}>
          <table class="runs">
            <thead>
              <tr>
                <th scope="col">
                  <span class="sr">Choose</span>
                </th>
                <th scope="col">Run</th>
                <th scope="col">Status</th>
                <th scope="col">Target, load</th>
                <th scope="col">Attainment</th>
                <th scope="col" class="num">
                  Goodput
                </th>
                <th scope="col" class="num">
                  TTFT p99
                </th>
                <th scope="col" class="num">
                  TPOT p99
                </th>
                <th scope="col">Capacity</th>
                <th scope="col">Tags</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((r) => (
                <tr key={r.id} class={r.parent === null ? '' : 'child'} data-run={r.id}>
                  <td>
                    <input
                      type="checkbox"
                      aria-label={`Choose ${r.name}`}
                      checked={chosen.includes(r.id)}
                      disabled={r.status === 'corrupt'}
                      onChange={(e) =>
                        setChosen(e.currentTarget.checked ? [...chosen, r.id] : chosen.filter((id) => id !== r.id))
                      }
                    />
                  </td>
                  <th scope="row">
                    {r.status === 'corrupt' ? r.name : <a href={open(r)}>{r.name}</a>}
                    <small>{r.epoch === null ? r.id : when(r.epoch)}</small>
                  </th>
                  <td>
                    <span class={`badge ${r.status}`}>{r.status}</span>
                    {r.client === 'client-bound' && <span class="badge corrupt">client-bound</span>}
                    {r.problem && <small class="warn">{r.problem}</small>}
                  </td>
                  <td>
                    {r.model ?? r.target ?? '–'}
                    <small>{[r.model === null ? null : r.target, r.load].filter(Boolean).join(' · ')}</small>
                  </td>
                  <td>
                    <Attained of={r.attainment} />
                  </td>
                  <td class="num">{r.goodput_rps === null ? '–' : `${figure(r.goodput_rps)}/s`}</td>
                  <td class="num">{ms(r.ttft_p99_ms)}</td>
                  <td class="num">{ms(r.tpot_p99_ms)}</td>
                  <td>{r.capacity ? capacityText(r.capacity) : ''}</td>
                  <td>
                    <Tags of={r} tags={saved?.tags[r.id] ?? []} onChange={(tags) => tag(r.id, tags)} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </div>
  );
}

export function capacityText(c: NonNullable<Listed['capacity']>): string {
  const { low, high } = c.capacity;
  if (c.end === 'infeasible') return 'infeasible';
  if (low === null && high === null) return c.end;
  return `${low === null ? '?' : figure(low)} to ${high === null ? '?' : figure(high)}/s`;
}

/** The interval on a scale from 0 to 1, the target a line on it. */
function Attained({ of: a }: { of: Listed['attainment'] }) {
  if (!a || a.value === null) return <>–</>;
  const low = a.low ?? a.value;
  const high = a.high ?? a.value;
  return (
    <span class={`attained ${a.met ? 'met' : 'missed'}`}>
      {percent(a.value, 3)}
      <span class="scale" aria-hidden="true">
        <i class="interval" style={{ left: `${100 * low}%`, width: `${Math.max(1, 100 * (high - low))}%` }} />
        <i class="target" style={{ left: `${100 * a.target}%` }} />
      </span>
      <span class="sr">
        {a.met ? 'target met' : 'target missed'}, 95 % interval {percent(low, 3)} to {percent(high, 3)}
      </span>
    </span>
  );
}

function Tags(props: { of: Listed; tags: readonly string[]; onChange: (tags: readonly string[]) => void }) {
  const [adding, setAdding] = useState(false);
  const add = (e: Event): void => {
    e.preventDefault();
    const word = new FormData(e.currentTarget as HTMLFormElement).get('tag');
    setAdding(false);
    if (typeof word === 'string' && word.trim()) props.onChange([...props.tags, word.trim()]);
  };
  return (
    <span class="tags">
      {props.tags.map((t) => (
        <button
          type="button"
          key={t}
          class="tag"
          title="Take away"
          aria-label={`Take away tag ${t}`}
          onClick={() => props.onChange(props.tags.filter((x) => x !== t))}
        >
          {t}
        </button>
      ))}
      {adding ? (
        <form onSubmit={add}>
          <input
            name="tag"
            aria-label={`Tag of ${props.of.name}`}
            size={8}
            ref={(el) => el?.focus()}
            onBlur={(e) => e.currentTarget.form?.requestSubmit()}
            onKeyDown={(e) => e.key === 'Escape' && setAdding(false)}
          />
        </form>
      ) : (
        <button type="button" class="quiet" aria-label={`Tag ${props.of.name}`} onClick={() => setAdding(true)}>
          +
        </button>
      )}
    </span>
  );
}
