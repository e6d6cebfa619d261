/** The timeline: a row a request, a tick a chunk. The pause a person feels is a blank in it. */
import { useComputed } from '@preact/signals';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { formatDuration } from '../../src/base/units.ts';
import { LIMIT_NAMES, type LimitName } from '../../src/core/contract.ts';
import { LEDGER, type LedgerClass } from '../../src/core/judge.ts';
import type { Chunks, Packed } from '../../src/dashboard/packed/index.ts';
import { Figure } from '../charts/data-table.tsx';
import { findStalls, type Painted, type Palette, paint, type Rows, rgba } from '../paint.ts';
import { adjust, param } from '../route.ts';
import { type Judgement, judgement, report, runId, source } from '../state.ts';
import { color, isDark } from '../theme.ts';
import { LIMIT_WORDS, ms, whole } from '../words.ts';
import { RequestDetail } from './request-detail.tsx';

const HEIGHT = 560;
const BAND = 34;
/** Rows whose chunks are asked for at once; the server gives no more. */
const MOST = 5000;
const FIRST = 400;

type Filter = { readonly outcome: string; readonly limit: string; readonly class: string; readonly cohort: boolean };

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

function filterRows({ packed: p, judged }: Judgement, f: Filter): Uint32Array {
  const outcome = f.outcome === '' ? -1 : LEDGER.indexOf(f.outcome as LedgerClass);
  const bit = f.limit === '' ? 0 : 1 << LIMIT_NAMES.indexOf(f.limit as LimitName);
  const cls = f.class === '' ? -1 : p.classes.indexOf(f.class);
  const kept = new Uint32Array(p.rows);
  let n = 0;
  for (let i = 0; i < p.rows; i++) {
    if (outcome >= 0 && judged.class[i] !== outcome) continue;
    if (bit !== 0 && (judged.missed[i]! & bit) === 0) continue;
    if (cls >= 0 && p.class[i] !== cls) continue;
    if (f.cohort && (p.flags[i]! & 1) === 0) continue;
    kept[n++] = i;
  }
  return kept.slice(0, n);
}

function Timeline({ j }: { j: Judgement }) {
  const p = j.packed;
  const filter = useComputed<Filter>(() => ({
    outcome: param('outcome') ?? '',
    limit: param('missed') ?? '',
    class: param('class') ?? '',
    cohort: param('cohort') === '1',
  })).value;
  const rows = useMemo(() => filterRows(j, filter), [j, filter]);
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

  const scene = useMemo(() => sceneRows(j, shown, chunks?.got), [j, shown, chunks, isDark.value]);

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
            <Key color="--t-stall">a gap of {formatDuration(stall)} or more</Key>. The right end of a row is its
            outcome. Above: the share of streams that stand still; a peak is a stall that all of them share. Click a
            row, or use the keys.
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

/** Where a gap is worth a colour: the gap limit, else four times the TPOT limit, else four times the median TPOT. */
function defaultStall({ packed: p, contract }: Judgement): number {
  const { gap, tpot } = contract.limits;
  if (gap !== undefined) return gap;
  if (tpot !== undefined) return Number((4 * tpot).toPrecision(3));
  const some = Float64Array.from(p.tpot.subarray(0, 2000))
    .filter((x) => !Number.isNaN(x))
    .sort();
  return some.length > 0 ? Number((4 * some[some.length >> 1]!).toPrecision(3)) : 200;
}

function extent(p: Packed, shown: Uint32Array): { readonly from: number; readonly to: number } {
  let from = Number.POSITIVE_INFINITY;
  let to = Number.NEGATIVE_INFINITY;
  for (const i of shown) {
    const at = p.scheduled[i]!;
    const e = p.e2e[i]!;
    from = Math.min(from, at);
    to = Math.max(to, at + (Number.isNaN(e) ? 0 : e));
  }
  if (!(to > from)) return { from: Number.isFinite(from) ? from : 0, to: (Number.isFinite(from) ? from : 0) + 1 };
  return { from: from - (to - from) * 0.01, to: to + (to - from) * 0.01 };
}

function sceneRows(
  j: Judgement,
  shown: Uint32Array,
  chunks: Chunks | undefined,
): { rows: Rows; withTicks: number; streams: number } {
  const { packed: p, judged } = j;
  const n = shown.length;
  const make = (): Float64Array => new Float64Array(n);
  const [scheduled, sent, first, ended] = [make(), make(), make(), make()];
  const colors = new Uint32Array(n);
  const start = new Uint32Array(n);
  const end = new Uint32Array(n);
  const palette = LEDGER.map((c) => rgba(color(`--c-${c}`)));
  const at = new Map<number, number>();
  chunks?.operation.forEach((op, r) => void at.set(op, r));
  let withTicks = 0;
  let streams = 0;
  for (let r = 0; r < n; r++) {
    const i = shown[r]!;
    const t = p.scheduled[i]!;
    scheduled[r] = t;
    sent[r] = t + p.lag[i]!;
    first[r] = t + p.ttft[i]!;
    const e = p.e2e[i]!;
    const last = p.latency[i]!;
    ended[r] = t + (Number.isNaN(e) ? (Number.isNaN(last) ? 0 : last) : e);
    colors[r] = palette[judged.class[i]!]!;
    if (p.chunks[i]! > 0) streams++;
    const c = at.get(p.operation[i]!);
    if (chunks && c !== undefined) {
      start[r] = c === 0 ? 0 : chunks.end[c - 1]!;
      end[r] = chunks.end[c]!;
      withTicks++;
    }
  }
  return {
    rows: { scheduled, sent, first, ended, color: colors, start, end, us: chunks?.us ?? new Uint32Array(0) },
    withTicks,
    streams,
  };
}

function Canvas(props: {
  rows: Rows;
  from: number;
  to: number;
  stall: number;
  selected: number;
  label: string;
  onKey: (e: KeyboardEvent) => void;
  onPick: (row: number) => void;
  onZoom: (by: number, at?: number) => void;
  onPan: (by: number) => void;
}) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const bands = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(900);
  const stalls = useMemo(() => findStalls(props.rows, props.stall), [props.rows, props.stall]);
  const image = useRef<{ image: ImageData; pixels: Uint32Array; painted: Painted } | undefined>(undefined);
  const dark = isDark.value;
  const { rows, from, to, selected } = props;
  const n = rows.scheduled.length;
  const height = Math.min(HEIGHT, Math.max(60, n * 14));

  useEffect(() => {
    const el = box.current;
    if (!el) return;
    const seen = new ResizeObserver(() => setWidth(Math.max(200, Math.floor(el.clientWidth))));
    seen.observe(el);
    return () => seen.disconnect();
  }, []);

  useEffect(() => {
    const g = canvas.current?.getContext('2d');
    if (!g) return;
    if (image.current?.image.width !== width || image.current.image.height !== height) {
      const made = g.createImageData(width, height);
      image.current = {
        image: made,
        pixels: new Uint32Array(made.data.buffer),
        painted: { stalled: new Uint32Array(width), streaming: new Uint32Array(width) },
      };
    }
    const { image: data, pixels, painted } = image.current;
    const began = performance.now();
    paint(pixels, rows, stalls, { width, height, from, to, selected }, paletteOf(), painted);
    g.putImageData(data, 0, 0);
    if (canvas.current) canvas.current.dataset.paint = (performance.now() - began).toFixed(2);
    drawBands(bands.current, painted, width);
  }, [rows, stalls, from, to, selected, width, height, dark]);

  const timeAt = (x: number): number => from + (x / width) * (to - from);
  const down = (e: PointerEvent): void => {
    const rect = (e.currentTarget as HTMLElement).getBoundingClientRect();
    const x0 = e.clientX;
    let dragged = false;
    let last = x0;
    const follow = (m: PointerEvent): void => {
      if (Math.abs(m.clientX - x0) > 4) dragged = true;
      if (!dragged) return;
      props.onPan(((last - m.clientX) / width) * (to - from));
      last = m.clientX;
    };
    const done = (m: PointerEvent): void => {
      removeEventListener('pointermove', follow);
      removeEventListener('pointerup', done);
      if (!dragged) props.onPick(Math.floor(((m.clientY - rect.top) / height) * n));
    };
    addEventListener('pointermove', follow);
    addEventListener('pointerup', done);
  };
  return (
    <div class="timeline" ref={box} tabIndex={0} role="group" aria-label={props.label} onKeyDown={props.onKey}>
      <canvas
        ref={bands}
        class="bands"
        width={width}
        height={BAND}
        role="img"
        aria-label="Share of streams that stand still, over time"
      />
      <div class="area" style={{ height: `${height}px` }}>
        <canvas
          ref={canvas}
          width={width}
          height={height}
          role="img"
          aria-label={props.label}
          onPointerDown={down}
          onWheel={(e) => {
            if (!e.ctrlKey && !e.metaKey && !e.shiftKey) return;
            e.preventDefault();
            props.onZoom(e.deltaY > 0 ? 1.25 : 0.8, timeAt(e.offsetX));
          }}
        />
        {selected >= 0 && (
          <div class="row-mark" style={{ top: `${((selected + 0.5) / n) * height}px` }} aria-hidden="true" />
        )}
      </div>
      <div class="axis" aria-hidden="true">
        {[0, 0.2, 0.4, 0.6, 0.8].map((s) => (
          <span key={s}>{formatDuration(timeAt(s * width))}</span>
        ))}
        <span>{formatDuration(to)}</span>
      </div>
    </div>
  );
}

function paletteOf(): Palette {
  return {
    background: rgba(color('--surface')),
    unsent: rgba(color('--c-unsent')),
    waiting: rgba(color('--t-waiting')),
    streaming: rgba(color('--t-streaming')),
    tick: rgba(color('--t-tick')),
    stall: rgba(color('--t-stall')),
    selected: rgba(color('--accent')),
  };
}

function drawBands(canvas: HTMLCanvasElement | null, { stalled, streaming }: Painted, width: number): void {
  const g = canvas?.getContext('2d');
  if (!g || !canvas) return;
  g.clearRect(0, 0, width, BAND);
  g.fillStyle = color('--t-stall');
  for (let x = 0; x < width; x++) {
    const share = streaming[x]! > 0 ? Math.min(1, stalled[x]! / streaming[x]!) : 0;
    if (share > 0) g.fillRect(x, BAND - share * BAND, 1, share * BAND);
  }
  g.fillStyle = color('--line');
  g.fillRect(0, BAND - 1, width, 1);
}

function Key(props: { color: string; children: preact.ComponentChildren }) {
  return (
    <span class="key">
      <i style={{ background: `var(${props.color})` }} />
      {props.children}
    </span>
  );
}

function Select(props: {
  name: string;
  label: string;
  value: string;
  all: string;
  options: readonly (readonly [string, string])[];
}) {
  return (
    <label>
      {props.label}{' '}
      <select
        name={props.name}
        value={props.value}
        onChange={(e) =>
          adjust({ [props.name]: e.currentTarget.value || undefined, first: undefined, from: undefined, to: undefined })
        }
      >
        <option value="">{props.all}</option>
        {props.options.map(([value, word]) => (
          <option value={value} key={value}>
            {word}
          </option>
        ))}
      </select>
    </label>
  );
}
