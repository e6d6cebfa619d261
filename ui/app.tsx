/** The frame: which view, how to get to another, the theme, what the keys do. */
import { lazy, Suspense } from 'preact/compat';
import { useEffect, useRef } from 'preact/hooks';
import { Problem } from './charts/problem.tsx';
import { carried, go, hashOf, route, type View } from './route.ts';
import { packed, report, runId, source } from './state.ts';
import { type Theme, theme } from './theme.ts';
import { CapacityView } from './views/capacity.tsx';
import { RequestsView } from './views/requests.tsx';
import { RunView } from './views/run.tsx';

// What needs a server, or the engine model, is loaded when it is looked at, and an exported page does without it.
const PAGE = import.meta.env.MODE === 'page';
const None = () => null;
const RunsView = PAGE ? None : lazy(() => import('./views/runs.tsx'));
const PlanView = PAGE ? None : lazy(() => import('./views/plan.tsx'));
const LiveView = PAGE ? None : lazy(() => import('./views/live.tsx'));
const DiagnosisView = PAGE ? None : lazy(() => import('./views/diagnosis.tsx'));
const CompareView = PAGE ? None : lazy(() => import('./views/compare.tsx'));

const NAV: readonly {
  readonly view: View;
  readonly name: string;
  readonly ofRun?: boolean;
  readonly inFile?: boolean;
}[] = [
  { view: 'runs', name: 'Runs' },
  { view: 'run', name: 'Run', ofRun: true, inFile: true },
  { view: 'requests', name: 'Requests', ofRun: true, inFile: true },
  { view: 'capacity', name: 'Capacity', inFile: true },
  { view: 'plan', name: 'Plan' },
  { view: 'live', name: 'Live' },
  { view: 'diagnosis', name: 'Diagnosis' },
];

export function App() {
  const { view } = route.value;
  const main = useRef<HTMLElement>(null);
  const help = useRef<HTMLDialogElement>(null);
  const file = source.value.kind === 'file';
  const shown = NAV.filter((n) => !file || n.inFile);
  const id = runId.value;

  useEffect(() => {
    const name = NAV.find((n) => n.view === view)?.name ?? 'Compare';
    const of = report.value.value?.report.run.name ?? id;
    document.title = `${name}${of && view !== 'runs' ? ` · ${of}` : ''} · goodput`;
  }, [view, id, report.value]);

  useEffect(() => {
    const onKey = (e: KeyboardEvent): void => {
      const at = e.target as HTMLElement;
      if (e.ctrlKey || e.metaKey || e.altKey || at.closest('input, select, textarea, dialog')) return;
      const n = shown[Number(e.key) - 1];
      if (n) go(n.view, carried());
      else if (e.key === '?') help.current?.showModal();
      else if (e.key === '/') {
        const search = document.querySelector<HTMLElement>('input[type=search]');
        if (!search) return;
        search.focus();
      } else return;
      e.preventDefault();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, [file]);

  return (
    <>
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to the content
      </button>
      <header class="top">
        <span class="brand">goodput</span>
        <nav aria-label="Views">
          {shown.map((n, i) => (
            <a
              key={n.view}
              href={hashOf(n.view, carried())}
              aria-current={view === n.view ? 'page' : undefined}
              title={`${n.name} (${i + 1})`}
            >
              {n.name}
            </a>
          ))}
        </nav>
        <div class="tools">
          <label>
            <span class="sr">Colours</span>
            <select value={theme.value} onChange={(e) => (theme.value = e.currentTarget.value as Theme)}>
              <option value="auto">Auto</option>
              <option value="light">Light</option>
              <option value="dark">Dark</option>
            </select>
          </label>
          <button type="button" onClick={() => help.current?.showModal()} aria-label="Keys and help">
            ?
          </button>
        </div>
      </header>
      <main id="main" ref={main} tabIndex={-1}>
        <Suspense fallback={<p class="wait">Loading…</p>}>
          <Body view={view} />
        </Suspense>
      </main>
      <dialog ref={help} aria-label="Keys">
        <h2>Keys</h2>
        <dl class="keys">
          <dt>1 … {shown.length}</dt>
          <dd>go to a view</dd>
          <dt>/</dt>
          <dd>search runs</dd>
          <dt>↑ ↓</dt>
          <dd>in the timeline: the request before or after; on a limit's line: move it, with Shift in larger steps</dd>
          <dt>← →, + −, 0</dt>
          <dd>in the timeline: move in time, zoom, the whole again</dd>
          <dt>PgUp PgDn, Enter, Esc</dt>
          <dd>in the timeline: other rows, open a request, close it</dd>
        </dl>
        <p class="note">
          Times run from the contract's boundary. Every chart has its table below it. The address always links to what
          is shown.
        </p>
        <form method="dialog">
          <button type="submit">Close</button>
        </form>
      </dialog>
    </>
  );
}

function Body({ view }: { view: View }) {
  const file = source.value.kind === 'file';
  if (!file) {
    switch (view) {
      case 'runs':
        return <RunsView />;
      case 'plan':
        return <PlanView />;
      case 'live':
        return <LiveView />;
      case 'diagnosis':
        return <DiagnosisView />;
      case 'compare':
        return <CompareView />;
      case 'capacity':
        return <CapacityView />;
      default:
        break;
    }
  } else if (view === 'capacity') return <CapacityView />;
  if (!file && runId.value === undefined) {
    return (
      <p class="wait">
        No run is chosen. <a href={hashOf('runs', {})}>Choose one</a>.
      </p>
    );
  }
  if (report.value.state === 'failed') return <Problem what="This run cannot be shown" why={report.value.problem} />;
  if (view === 'requests') {
    if (packed.value.state === 'failed')
      return <Problem what="Its requests cannot be read" why={packed.value.problem} />;
    return <RequestsView />;
  }
  return <RunView />;
}
