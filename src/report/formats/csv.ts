/** A row an operation, as comma-separated values (RFC 4180). Columns are only ever appended. */
import { type Contract, inCohort, judgeRecord, type RequestRecord, type Window } from '../../core/index.ts';

type Cell = string | number | boolean | undefined;
interface Row {
  readonly record: RequestRecord;
  readonly judged: ReturnType<typeof judgeRecord>;
  readonly inCohort: boolean;
}

/** Times are ms since the run's epoch, durations ms. An empty cell: undefined or unknown. */
export const CSV_COLUMNS: readonly {
  readonly name: string;
  readonly meaning: string;
  readonly of: (row: Row) => Cell;
}[] = [
  { name: 'operation', meaning: 'index of the operation in the run', of: (r) => r.record.operation },
  { name: 'in_cohort', meaning: 'scheduled in the measured window; all figures are over these', of: (r) => r.inCohort },
  { name: 'class', meaning: 'traffic class', of: (r) => r.record.class },
  { name: 'session', meaning: 'multi-turn session', of: (r) => r.record.session },
  { name: 'turn', meaning: 'turn within it', of: (r) => r.record.turn },
  { name: 'attempts', meaning: 'attempts sent', of: (r) => r.record.attempts },
  {
    name: 'scheduled_ms',
    meaning: 'when the arrival process said it should start',
    of: (r) => r.record.stamps.scheduled,
  },
  { name: 'dispatched_ms', meaning: 'handed to the HTTP client', of: (r) => r.record.stamps.dispatched },
  { name: 'first_event_ms', meaning: 'first stream event of any kind', of: (r) => r.record.stamps.firstEvent },
  { name: 'first_output_ms', meaning: 'first output', of: (r) => r.record.stamps.firstOutput },
  { name: 'last_output_ms', meaning: 'last output', of: (r) => r.record.stamps.lastOutput },
  { name: 'ended_ms', meaning: 'ended or given up', of: (r) => r.record.stamps.ended },
  { name: 'ttft_ms', meaning: 'first output less the contract’s start', of: (r) => r.judged.metrics.ttft },
  { name: 'ttfa_ms', meaning: 'first answer output less the start', of: (r) => r.judged.metrics.ttfa },
  { name: 'tpot_ms', meaning: 'mean of the n − 1 later token gaps', of: (r) => r.judged.metrics.tpot },
  { name: 'max_gap_ms', meaning: 'largest chunk gap', of: (r) => r.judged.metrics.gap },
  { name: 'latency_ms', meaning: 'last output less the start', of: (r) => r.judged.metrics.latency },
  { name: 'e2e_ms', meaning: 'end less the start', of: (r) => r.judged.metrics.e2e },
  { name: 'chunks', meaning: 'output events', of: (r) => r.record.timeline.length },
  { name: 'tokens', meaning: 'streamed tokens', of: (r) => r.judged.metrics.n },
  { name: 'token_source', meaning: 'whose count that is', of: (r) => r.judged.metrics.tokenSource },
  { name: 'asked_input', meaning: 'prompt tokens asked for', of: (r) => r.record.asked.input },
  { name: 'asked_output', meaning: 'output tokens asked for, at most', of: (r) => r.record.asked.output },
  { name: 'usage_input', meaning: 'prompt tokens by the server’s count', of: (r) => r.record.usage?.input },
  { name: 'usage_output', meaning: 'generated tokens by the server’s count', of: (r) => r.record.usage?.output },
  { name: 'status', meaning: 'HTTP status', of: (r) => r.record.status },
  { name: 'outcome', meaning: 'how it ended, before any contract', of: (r) => r.record.outcome },
  { name: 'reason', meaning: 'why, in one word', of: (r) => r.record.reason },
  { name: 'verdict', meaning: 'good, late, invalid, or the outcome', of: (r) => r.judged.verdict.class },
  { name: 'missed', meaning: 'limits missed, joined by +', of: (r) => r.judged.verdict.missed.join('+') },
  { name: 'excluded', meaning: 'taken out of the denominator by the contract', of: (r) => r.judged.verdict.excluded },
];

export const csvHeader = (): string => `${CSV_COLUMNS.map((c) => c.name).join(',')}\r\n`;

export function csvRow(record: RequestRecord, contract: Contract, window: Window): string {
  const row: Row = {
    record,
    judged: judgeRecord(record, contract),
    inCohort: inCohort(window, record.operation, record.stamps.scheduled, record.session),
  };
  return `${CSV_COLUMNS.map((c) => cell(c.of(row))).join(',')}\r\n`;
}

function cell(value: Cell): string {
  if (value === undefined) return '';
  if (typeof value !== 'string') return String(value);
  // A spreadsheet takes a leading =, +, - or @ for a formula.
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
