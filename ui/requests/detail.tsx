/** One request: its stamps, its gaps, each limit and whether it was held, what the server said. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { LIMIT_NAMES } from '../../src/core/contract.ts';
import { judgeRecord, LEDGER } from '../../src/core/judge.ts';
import type { RequestRecord } from '../../src/core/record.ts';
import type { Detail, DetailRecord } from '../../src/dashboard/run-data.ts';
import { DataTable, Table } from '../charts/data-table.tsx';
import type { Outline } from '../source.ts';
import { type Judgement, runId, source } from '../state.ts';
import { boundText, LIMIT_WORDS, ms, percent } from '../words.ts';
import { Gaps } from './gaps.tsx';
import { StampTable } from './stamps.tsx';

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
  const [outline, setOutline] = useState<{ i: number; got: Outline | undefined }>({ i: -1, got: undefined });
  useEffect(() => {
    if (i < 0) return;
    let stale = false;
    void source.value.outline(j.packed, i).then((got) => !stale && setOutline({ i, got }));
    return () => {
      stale = true;
    };
  }, [j.packed, i]);
  if (i < 0) return null;
  const held = outline.i === i ? outline.got : undefined;
  const { gap } = j.contract.limits;
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
      {got && (
        <Gaps
          receipts={got.record.timeline}
          of={got.record.timeline.at.length}
          start={got.record.stamps.scheduled}
          limit={gap}
        />
      )}
      {held && held.of > 0 && <Gaps receipts={held} of={held.of} start={held.stamps.scheduled} limit={gap} />}
      {(got || held) && <StampTable stamps={(got?.record ?? (held as Outline)).stamps} />}
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
