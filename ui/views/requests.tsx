/** The timeline: a row a request, a tick a chunk. The pause a person feels is a blank in it. */
import { useEffect, useMemo, useState } from 'preact/hooks';
import { formatDuration } from '../../src/base/units.ts';
import { LIMIT_NAMES } from '../../src/core/contract.ts';
import { LEDGER, type LedgerClass } from '../../src/core/judge.ts';
import type { Chunks } from '../../src/dashboard/packed/index.ts';
import { Key, Select } from '../charts/controls.tsx';
import { Figure } from '../charts/data-table.tsx';
import { RequestDetail } from '../requests/detail.tsx';
import { adjust, param } from '../route.ts';
import { type Judgement, judgement, report, runId, source } from '../state.ts';
import { isDark } from '../theme.ts';
import { Canvas } from '../timeline/canvas.tsx';
import { defaultStall, extent, type Filter, filterRows, outcomeColors, rowsOf } from '../timeline/scene.ts';
import { LIMIT_WORDS, ms, whole } from '../words.ts';

/** Rows whose chunks are asked for at once; the server gives no more. */
const MOST = 5000;
const FIRST = 400;

export function RequestsView() {
  const j = judgement.value;
  const told = report.value.value;
  if (!j) return <p class="wait">Reading the requests…</p>;
  return (
    <div class="page">
      <header class="heading">
        <h1>Requests of {told?.report.run.name ?? 'the run'}</h1>
      </header>
      {j.packed.rows === 0 ? <p class="wait">This run holds no requests.</p> : <Timeline j={j} />}
    </div>
  );
}

function Timeline({ j }: { j: Judgement }) {
  const p = j.packed;
  const filter: Filter = {
    outcome: param('outcome') ?? '',
    limit: param('missed') ?? '',
    class: param('class') ?? '',
    cohort: param('cohort') === '1',
  };
  // The same rows stay the same array, or their ticks would be fetched again with every move in time.
  const byVerdict = filter.outcome !== '' || filter.limit !== '' ? j : p;
  const rows = useMemo(() => filterRows(j, filter), [byVerdict, JSON.stringify(filter)]);
  const first = clamp(Number(param('first') ?? 0), 0, Math.max(0, rows.length - 1));
  const count = clamp(Number(param('rows') ?? FIRST), 1, Math.min(MOST, Math.max(1, rows.length - first)));
  const shown = useMemo(() => rows.subarray(first, first + count), [rows, first, count]);
  const whole_ = useMemo(() => extent(p, shown), [p, shown]);
  const from = Number(param('from') ?? whole_.from);
  const to = Math.max(from + 0.01, Number(param('to') ?? whole_.to));
  const stall = Math.max(0.1, Number(param('stall') ?? defaultStall(j)));
  const selected = param('op') === undefined ? -1 : shown.findIndex((i) => p.operation[i] === Number(param('op')));
  const [chunks, setChunks] = useState<{ readonly of: Uint32Array; readonly got: Chunks } | undefined>(undefined);
  const [problem, setProblem] = useState('');
  const id = runId.value ?? '';

  // Ticks come after the bars: these are drawn from what is here already.
  useEffect(() => {
    if (shown.length === 0) return;
    const stop = new AbortController();
    const wait = setTimeout(() => {
      source.value
        .chunks(
          id,
          [...shown].map((i) => p.operation[i]!),
          stop.signal,
        )
        .then(
          (got) => {
            setChunks({ of: shown, got });
            setProblem('');
          },
          (e: Error) => {
            if (e.name !== 'AbortError') setProblem(e.message);
          },
        );
    }, 60);
    return () => {
      clearTimeout(wait);
      stop.abort();
    };
  }, [shown, id]);

  const scene = useMemo(() => rowsOf(p, shown, chunks?.got), [p, shown, chunks]);
  const outcome = useMemo(() => outcomeColors(j, shown), [j, shown, isDark.value]);

  const zoom = (by: number, at = (from + to) / 2): void => {
    const left = at - (at - from) * by;
    const right = at + (to - at) * by;
    if (right - left >= whole_.to - whole_.from) adjust({ from: undefined, to: undefined });
    else if (right - left > 0.05) adjust({ from: left.toFixed(3), to: right.toFixed(3) });
  };
  const pan = (share: number): void => {
    const by = share * (to - from);
    adjust({ from: (from + by).toFixed(3), to: (to + by).toFixed(3) });
  };
  const scroll = (by: number): void => {
    adjust({ first: clamp(first + by, 0, Math.max(0, rows.length - 1)) || undefined, from: undefined, to: undefined });
  };
  const select = (r: number): void => {
    const i = shown[clamp(r, 0, shown.length - 1)];
    if (i !== undefined) adjust({ op: p.operation[i]! });
  };
  const onKey = (e: KeyboardEvent): void => {
    const acts: Readonly<Record<string, () => void>> = {
      ArrowDown: () => select(selected + 1),
      ArrowUp: () => select(selected < 0 ? shown.length - 1 : selected - 1),
      ArrowLeft: () => pan(-0.2),
      ArrowRight: () => pan(0.2),
      '+': () => zoom(0.5),
      '=': () => zoom(0.5),
      '-': () => zoom(2),
      '0': () => adjust({ from: undefined, to: undefined }),
      PageDown: () => scroll(count),
      PageUp: () => scroll(-count),
      Home: () => adjust({ first: undefined, from: undefined, to: undefined }),
      End: () => scroll(rows.length - count - first),
      Enter: () => (selected >= 0 ? document.getElementById('request')?.focus() : select(0)),
      Escape: () => adjust({ op: undefined }),
    };
    const act = acts[e.key];
    if (!act || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    e.stopPropagation();
    act();
  };

  const outcomes = LEDGER.filter((_, k) => j.fold.ledger[LEDGER[k] as LedgerClass] > 0 || filter.outcome === LEDGER[k]);
  const limits = LIMIT_NAMES.filter((n) => j.contract.limits[n] !== undefined);
  const partly = scene.withTicks < scene.streams && chunks?.of === shown;
  return (
    <>
      <section class="card wide filters" aria-label="Filters">
        <Select name="outcome" label="Outcome" value={filter.outcome} all="all" options={outcomes.map((o) => [o, o])} />
        <Select
          name="missed"
          label="Limit missed"
          value={filter.limit}
          all="any"
          options={limits.map((n) => [n, LIMIT_WORDS[n]])}
        />
        {p.classes.length > 1 && (
          <Select name="class" label="Class" value={filter.class} all="all" options={p.classes.map((c) => [c, c])} />
        )}
        <label class="check">
          <input
            type="checkbox"
            checked={filter.cohort}
            onChange={(e) => adjust({ cohort: e.currentTarget.checked ? 1 : undefined })}
          />
          cohort only
        </label>
        <Select
          name="rows"
          label="Rows"
          value={String(param('rows') ?? '')}
          all={String(FIRST)}
          options={[40, 100, 1000, 2000, MOST].map((n) => [String(n), whole(n)])}
        />
        <label>
          Stall from{' '}
          <input
            type="number"
            min="0.1"
            step="any"
            value={stall}
            onChange={(e) => adjust({ stall: Number(e.currentTarget.value) > 0 ? e.currentTarget.value : undefined })}
          />{' '}
          ms
        </label>
      </section>
      <Figure
        title="Timeline"
        wide
        aside={
          <span class="tools">
            <button type="button" disabled={first === 0} onClick={() => scroll(-count)}>
              ‹ earlier
            </button>
            <span data-rows>
              {rows.length === 0
                ? 'none'
                : `${whole(first + 1)}–${whole(first + shown.length)} of ${whole(rows.length)}`}
            </span>
            <button type="button" disabled={first + count >= rows.length} onClick={() => scroll(count)}>
              later ›
            </button>
            <button type="button" onClick={() => zoom(0.5)} aria-label="Zoom in">
              +
            </button>
            <button type="button" onClick={() => zoom(2)} aria-label="Zoom out">
              −
            </button>
            <button type="button" onClick={() => adjust({ from: undefined, to: undefined })}>
              whole
            </button>
          </span>
        }
        note={
          <>
            <Key color="--c-unsent">not sent</Key> <Key color="--t-waiting">waiting: queue and prefill</Key>{' '}
            <Key color="--t-streaming">streaming</Key> <Key color="--t-tick">a chunk</Key>{' '}
            <Key color="--t-stall">a gap of {formatDuration(stall)} or more</Key> The mark behind a row is its outcome.
            Above: the share of streams that stand still; a peak is a stall that all of them share. Click a row, or use
            the keys.
            {partly
              ? ` ${whole(scene.streams - scene.withTicks)} of these streams are drawn without their ticks: an exported page has those of the first requests.`
              : ''}
          </>
        }
        table={() => ({
          head: ['operation', 'scheduled', 'outcome', 'missed', 'TTFT', 'TPOT', 'max gap', 'E2E', 'chunks'],
          rows: [...shown.subarray(0, 500)].map((i) => [
            p.operation[i]!,
            ms(p.scheduled[i]!),
            LEDGER[j.judged.class[i]!]!,
            LIMIT_NAMES.filter((_, k) => j.judged.missed[i]! & (1 << k))
              .map((n) => LIMIT_WORDS[n])
              .join(', ') || '–',
            ms(p.ttft[i]),
            ms(p.tpot[i]),
            ms(p.gap[i]),
            ms(p.e2e[i]),
            p.chunks[i]!,
          ]),
        })}
      >
        {problem && <p class="warn">The ticks are missing: {problem}</p>}
        {rows.length === 0 ? (
          <p class="wait">No request matches.</p>
        ) : (
          <Canvas
            rows={scene.rows}
            outcome={outcome}
            from={from}
            to={to}
            stall={stall}
            selected={selected}
            onKey={onKey}
            onPick={select}
            onZoom={zoom}
            onPan={(by) => adjust({ from: (from + by).toFixed(3), to: (to + by).toFixed(3) })}
            label={`Timeline of ${whole(shown.length)} requests from ${formatDuration(from)} to ${formatDuration(to)}; arrow keys choose a request`}
          />
        )}
      </Figure>
      {param('op') !== undefined && (
        <RequestDetail j={j} operation={Number(param('op'))} onClose={() => adjust({ op: undefined })} />
      )}
    </>
  );
}

const clamp = (x: number, low: number, high: number): number =>
  Math.max(low, Math.min(high, Number.isFinite(x) ? x : low));
