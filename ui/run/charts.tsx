/** The charts of a run. They draw `charted`, which follows a moved limit a frame behind the figures. */
import { useMemo } from 'preact/hooks';
import { formatDuration } from '../../src/base/units.ts';
import { LEDGER } from '../../src/core/judge.ts';
import type { Packed } from '../../src/dashboard/packed/index.ts';
import { StackedBars } from '../charts/bars.tsx';
import { Figure } from '../charts/data-table.tsx';
import { Plot } from '../charts/plot.tsx';
import { Scatter } from '../charts/scatter.tsx';
import { loadOverTime, outcomesOverArrival } from '../series.ts';
import { charted, contract, quads } from '../state.ts';
import { figure, ledgerColor, whole } from '../words.ts';
import { Distribution } from './distribution.tsx';

export function Charts({ p }: { p: Packed }) {
  return (
    <div class="grid">
      <Together />
      <Distribution p={p} />
      <Outcomes />
      <InFlight p={p} />
    </div>
  );
}

const windowMarks = (p: Packed) => [
  ...(p.window === undefined ? [] : [{ x: p.window.start, color: '--muted', label: 'cohort' }]),
  ...(p.window === undefined ? [] : [{ x: p.window.end, color: '--muted', label: 'its end' }]),
];

/** Its counts and lines follow a limit at once, its dots with the other charts. */
function Together() {
  const q = quads.value;
  const j = charted.value;
  const limits = contract.value?.limits;
  if (!q || !j || !limits) return null;
  return (
    <Figure
      title="TTFT × TPOT"
      note={
        <>
          A dot an operation of the cohort that completed, the contract's box lower left. Drag a line, or focus it and
          use the arrow keys.{q.absent > 0 ? ` ${whole(q.absent)} have no TPOT or did not complete.` : ''}
          {q.otherwise > 0 ? ` ${whole(q.otherwise)} within both are late by another limit.` : ''}
        </>
      }
      table={() => ({
        head: ['', 'operations'],
        rows: [
          ['within both limits', q.both],
          ['missed TTFT alone', q.tpotOnly],
          ['missed TPOT alone', q.ttftOnly],
          ['missed both', q.neither],
          ['not on the chart', q.absent],
        ],
      })}
    >
      <Scatter of={j} limits={limits} q={q} />
    </Figure>
  );
}

function Outcomes() {
  const j = charted.value;
  const p = j?.packed;
  const bins = Math.max(10, Math.min(90, Math.floor((p?.rows ?? 0) / 3)));
  const outcomes = useMemo(() => j && outcomesOverArrival(j.packed, j.judged, bins), [j, bins]);
  if (!p || !outcomes) return null;
  return (
    <Figure
      title="Outcomes over arrival time"
      note="Operations by when they were due, warm-up and cool-down included."
      table={() => ({
        head: ['arrival', ...LEDGER.filter((_, k) => outcomes.counts[k]!.some((n) => n > 0))],
        rows: Array.from({ length: outcomes.counts[0]!.length }, (_, b) => [
          formatDuration(outcomes.from + b * outcomes.width),
          ...LEDGER.flatMap((_, k) => (outcomes.counts[k]!.some((n) => n > 0) ? [outcomes.counts[k]![b]!] : [])),
        ]),
      })}
    >
      <StackedBars
        label="Operations by arrival and outcome"
        bins={outcomes.counts[0]!.length}
        at={(b) => formatDuration(outcomes.from + b * outcomes.width)}
        parts={LEDGER.map((c, k) => ({ name: c, color: ledgerColor(c), values: outcomes.counts[k]! })).filter((x) =>
          x.values.some((n) => n > 0),
        )}
        marks={windowMarks(p).map((m) => ({ at: (m.x - outcomes.from) / outcomes.width, label: m.label }))}
      />
    </Figure>
  );
}

function InFlight({ p }: { p: Packed }) {
  const load = useMemo(() => loadOverTime(p, 240), [p]);
  return (
    <Figure
      title="Queue and in flight"
      note="Operations not yet sent, sent and without output, and streaming; on the right, output tokens per second with each stream's tokens spread evenly."
      table={() => ({
        head: ['time', 'not sent', 'waiting', 'streaming', 'tokens/s'],
        rows: Array.from(load.at, (t, k) => [
          formatDuration(t),
          load.unsent[k]!,
          load.waiting[k]!,
          load.streaming[k]!,
          Math.round(load.tokens[k]!),
        ]).filter((_, k) => k % 4 === 0),
      })}
    >
      <Plot
        label="Operations in flight over time"
        x={load.at}
        lines={[
          { label: 'waiting', color: '--c-waiting', values: load.waiting, fill: true },
          { label: 'streaming', color: '--c-good', values: load.streaming, fill: true },
          { label: 'not sent', color: '--c-unsent', values: load.unsent },
          { label: 'tokens/s', color: '--muted', values: load.tokens, scale: 'y2', dash: true },
        ]}
        formatX={formatDuration}
        formatY={(y) => figure(y, 3)}
        formatY2={(y) => (y >= 1000 ? `${figure(y / 1000, 3)}k` : figure(y, 3))}
        marks={windowMarks(p)}
      />
    </Figure>
  );
}
