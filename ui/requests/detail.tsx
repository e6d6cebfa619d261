/** One request: its stamps, its gaps, each limit and whether it was held, what the server said. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { formatDuration } from '../../src/base/units.ts';
import { LIMIT_NAMES } from '../../src/core/contract.ts';
import { judgeRecord, LEDGER } from '../../src/core/judge.ts';
import type { RequestRecord, Stamps } from '../../src/core/record.ts';
import { OUTPUT_KINDS } from '../../src/core/stream.ts';
import type { Detail, DetailRecord } from '../../src/dashboard/run-data.ts';
import { DataTable, Table } from '../charts/data-table.tsx';
import { type Judgement, runId, source } from '../state.ts';
import { boundText, LIMIT_WORDS, ms, percent } from '../words.ts';

export function recordOf(d: DetailRecord): RequestRecord {
  const { at, tokens, kind, choice } = d.timeline;
  return {
    ...d,
    timeline: {
      length: at.length,
      at: Float64Array.from(at),
      tokens: Int32Array.from(tokens),
      kind: Uint8Array.from(kind),
      choice: Uint16Array.from(choice),
    },
  };
}

export function RequestDetail({ j, operation, onClose }: { j: Judgement; operation: number; onClose: () => void }) {
  const [detail, setDetail] = useState<{ op: number; got?: Detail | undefined; problem?: string }>({ op: -1 });
  const id = runId.value ?? '';
  const head = useRef<HTMLElement>(null);
  useEffect(() => {
    let stale = false;
    const wait = setTimeout(() => {
      source.value.detail(id, operation).then(
        (got) => !stale && setDetail({ op: operation, got }),
        (e: Error) => !stale && setDetail({ op: operation, problem: e.message }),
      );
    }, 80);
    return () => {
      stale = true;
      clearTimeout(wait);
    };
  }, [id, operation]);
  const i = useMemo(() => j.packed.operation.indexOf(operation), [j.packed, operation]);
  if (i < 0) return null;
  const verdict = LEDGER[j.judged.class[i]!]!;
  const got = detail.op === operation ? detail.got : undefined;
  return (
    <section class="card wide" id="request" tabIndex={-1} ref={head} aria-label={`Request ${operation}`}>
      <header>
        <h2>
          Request {operation} <span class={`badge v-${verdict}`}>{verdict}</span>
        </h2>
        <button type="button" onClick={onClose}>
          Close
        </button>
      </header>
      {detail.problem && detail.op === operation && <p class="warn">{detail.problem}</p>}
      <div class="two">
        <Limits j={j} i={i} record={got ? recordOf(got.record) : undefined} />
        {got ? <Evidence record={got.record} /> : null}
      </div>
      {got && <Gaps record={got.record} j={j} />}
      {got && <StampTable record={got.record} />}
      {got && got.attempts.length > 1 && (
        <DataTable
          label={`${got.attempts.length} attempts`}
          cells={() => ({
            head: ['attempt', 'outcome', 'reason', 'status', 'dispatched', 'first output', 'ended'],
            rows: got.attempts.map((a) => [
              `${a.attempt}${a.lostHedge ? ' (lost hedge)' : ''}`,
              a.outcome,
              a.reason || '–',
              a.status ?? '–',
              ms(a.stamps.dispatched),
              ms(a.stamps.firstOutput),
              ms(a.stamps.ended),
            ]),
          })}
        />
      )}
    </section>
  );
}

function Limits({ j, i, record }: { j: Judgement; i: number; record: RequestRecord | undefined }) {
  const p = j.packed;
  const judged = record && judgeRecord(record, j.contract);
  const missed = judged
    ? LIMIT_NAMES.map((n) => judged.verdict.missed.includes(n))
    : LIMIT_NAMES.map((_, k) => (j.judged.missed[i]! & (1 << k)) !== 0);
  const stored = (name: (typeof LIMIT_NAMES)[number]): number | undefined => {
    if (judged) return judged.metrics[name];
    const value = p[name][i];
    return value === undefined || Number.isNaN(value) ? undefined : value;
  };
  return (
    <Table
      label="Limits"
      head={['', 'value', 'limit', '']}
      rows={LIMIT_NAMES.flatMap((name, k) => {
        const limit = j.contract.limits[name];
        const value = stored(name);
        if (limit === undefined && (value === undefined || name === 'smoothness')) return [];
        const why = judged?.metrics.absent[name];
        return [
          [
            LIMIT_WORDS[name],
            value === undefined ? (why ?? '–') : name === 'smoothness' ? percent(value) : ms(value),
            limit === undefined ? '–' : boundText(name, limit),
            limit === undefined ? '' : missed[k] ? 'missed' : 'held',
          ],
        ];
      })}
    />
  );
}

function Evidence({ record: r }: { record: DetailRecord }) {
  const { server, usage } = r;
  const rows: [string, string][] = [
    ['ended', [r.outcome, r.reason, r.phase].filter(Boolean).join(', ')],
    ...(r.detail ? ([['said', r.detail]] as [string, string][]) : []),
    ['status', r.status === undefined ? '–' : String(r.status)],
    ['finish', r.finishReason ?? r.finish ?? '–'],
    [
      'connection',
      r.connection
        ? `${r.connection.http ? `HTTP ${r.connection.http}, ` : ''}${r.connection.reused ? 'reused' : 'new'}`
        : '–',
    ],
    ['asked', `${r.asked.input} in, ${r.asked.output} out`],
    [
      'usage',
      usage
        ? `${usage.input ?? '?'} in${usage.cachedInput ? ` (${usage.cachedInput} cached)` : ''}, ${usage.output ?? '?'} out`
        : '–',
    ],
    ['class', r.class],
    ...(r.session === undefined ? [] : ([['session', `${r.session}, turn ${r.turn ?? 0}`]] as [string, string][])),
    ['events', `${r.events}, ${r.coalesced} of them in a read shared`],
    ...(server
      ? ([
          [
            "the server's own times",
            (['queue', 'prefill', 'decode', 'e2e', 'load'] as const)
              .flatMap((k) => (server[k] === undefined ? [] : [`${k} ${ms(server[k])}`]))
              .join(', '),
          ],
        ] as [string, string][])
      : []),
  ];
  return <Table label="Evidence" words head={['', 'value']} rows={rows} />;
}

const GAP_W = 900;
const GAP_H = 120;

/** A bar a gap, from receipt to receipt, as high as it is long. */
function Gaps({ record: r, j }: { record: DetailRecord; j: Judgement }) {
  const { at, kind, tokens } = r.timeline;
  if (at.length < 2) return <p class="note">{at.length === 0 ? 'No output came.' : 'One chunk: there is no gap.'}</p>;
  const start = r.stamps.scheduled;
  const from = at[0]!;
  const span = Math.max(0.001, at.at(-1)! - from);
  const gaps = at.slice(1).map((t, k) => t - at[k]!);
  const top = Math.max(...gaps, 0.001);
  const limit = j.contract.limits.gap;
  const largest = gaps.indexOf(top);
  return (
    <>
      <p class="note">
        {gaps.length} gaps from the first chunk to the last; the largest, {ms(top)}, begins {ms(at[largest]! - start)}{' '}
        after the request was due.
      </p>
      <svg
        class="gaps"
        viewBox={`0 0 ${GAP_W} ${GAP_H + 18}`}
        role="img"
        aria-label={`Gaps between chunks, the largest ${formatDuration(top)}`}
      >
        {gaps.map((g, k) => {
          const h = Math.max(1, (g / top) * (GAP_H - 6));
          const x = ((at[k]! - from) / span) * GAP_W;
          return (
            <rect
              key={k}
              x={x}
              width={Math.max(0.6, (g / span) * GAP_W - 0.5)}
              y={GAP_H - h}
              height={h}
              class={
                limit !== undefined && g > limit
                  ? 'over'
                  : OUTPUT_KINDS[kind[k + 1]!] === 'reasoning'
                    ? 'reasoning'
                    : 'gap'
              }
            />
          );
        })}
        {limit !== undefined && limit <= top && (
          <line
            x1={0}
            x2={GAP_W}
            y1={GAP_H - (limit / top) * (GAP_H - 6)}
            y2={GAP_H - (limit / top) * (GAP_H - 6)}
            class="mark"
          />
        )}
        <text x={0} y={GAP_H + 14} class="tick">
          {formatDuration(from - start)}
        </text>
        <text x={GAP_W} y={GAP_H + 14} class="tick" text-anchor="end">
          {formatDuration(at.at(-1)! - start)}
        </text>
      </svg>
      <DataTable
        label="Chunks"
        cells={() => ({
          head: ['chunk', 'after start', 'gap', 'tokens', 'kind'],
          rows: at
            .slice(0, 5000)
            .map((t, k) => [
              k + 1,
              ms(t - start),
              k === 0 ? '–' : ms(t - at[k - 1]!),
              tokens[k]! < 0 ? '?' : tokens[k]!,
              OUTPUT_KINDS[kind[k]!] ?? '?',
            ]),
        })}
      />
    </>
  );
}

function StampTable({ record: r }: { record: DetailRecord }) {
  const names = [
    'scheduled',
    'dispatched',
    'connected',
    'sent',
    'headers',
    'firstEvent',
    'firstOutput',
    'firstAnswer',
    'lastOutput',
    'ended',
  ] as const satisfies readonly (keyof Stamps)[];
  let before: number | undefined;
  return (
    <Table
      label="Stamps"
      head={['stamp', "on the run's clock", 'after scheduled', 'after the one before']}
      rows={names.flatMap((name) => {
        const t = r.stamps[name];
        if (t === undefined) return [];
        const step = before === undefined ? '–' : ms(t - before);
        before = t;
        return [[name, `${t.toFixed(3)} ms`, ms(t - r.stamps.scheduled), step]];
      })}
    />
  );
}
