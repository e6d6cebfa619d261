/**
 * The raw records by other tools' definitions: what each tool would have printed of the same requests, each figure beside
 * ours and with what is defined otherwise. docs/other-tools.md is the reference.
 */
import { type Contract, inCohort, type RequestRecord, streamedTokens, type Window } from '../../core/index.ts';
import { quantile } from '../../stats/index.ts';
import type { Report } from '../report.ts';

/** One figure of a tool beside ours. */
export interface Definition {
  /** Key in the tool's own shape. */
  readonly figure: string;
  readonly theirs: number | null;
  /** Key in `goodput report --json`; null where we have no such figure. */
  readonly ours_key: string | null;
  readonly ours: number | null;
  /** What is defined otherwise; empty where nothing is. */
  readonly differs: string;
}

/** One operation as a tool's client would have seen it. Times are ms; absent where it never came. */
export interface Seen {
  readonly record: RequestRecord;
  readonly start: number;
  readonly firstEvent?: number;
  readonly first?: number;
  readonly firstAnswer?: number;
  readonly second?: number;
  readonly last?: number;
  readonly end: number;
  /** Chunk stamps, all choices together. */
  readonly at: Float64Array;
  readonly input: number;
  /** The server's count, else ours; undefined where neither is known. */
  readonly output: number | undefined;
}

export interface ToolInput {
  readonly contract: Contract;
  readonly report: Report;
  readonly seen: readonly Seen[];
  readonly name: string;
}

/** Collects the cohort's operations that were sent: what was never sent no other tool knows of. */
export class SeenReducer {
  readonly #window: Window;
  readonly #seen: Seen[] = [];
  #unsent = 0;

  constructor(window: Window) {
    this.#window = window;
  }
  add(record: RequestRecord): void {
    const { stamps, timeline } = record;
    if (!inCohort(this.#window, record.operation, stamps.scheduled, record.session)) return;
    if (stamps.dispatched === undefined) {
      this.#unsent++;
      return;
    }
    const output = record.usage?.output ?? streamedTokens(record).n;
    this.#seen.push({
      record,
      start: stamps.dispatched,
      ...(stamps.firstEvent !== undefined && { firstEvent: stamps.firstEvent }),
      ...(stamps.firstOutput !== undefined && { first: stamps.firstOutput }),
      ...(stamps.firstAnswer !== undefined && { firstAnswer: stamps.firstAnswer }),
      ...(timeline.length > 1 && { second: timeline.at[1]! }),
      ...(stamps.lastOutput !== undefined && { last: stamps.lastOutput }),
      end: stamps.ended ?? stamps.lastOutput ?? stamps.dispatched,
      at: timeline.at.slice(),
      input: record.usage?.input ?? record.asked.input,
      output,
    });
  }
  finish(): { seen: Seen[]; unsent: number } {
    return { seen: this.#seen.sort((a, b) => a.start - b.start), unsent: this.#unsent };
  }
}

/** Ended well by the rule most tools go by: HTTP 200 and no broken socket. Truncation and errors in the stream pass. */
export function passesThere({ record }: Seen): boolean {
  return record.outcome === 'completed' || record.outcome === 'truncated' || record.reason === 'stream-error';
}

/** From the first request sent to the last one's end: the drain included. Seconds. */
export function durationOf(seen: readonly Seen[]): number {
  if (seen.length === 0) return 0;
  return (seen.reduce((t, s) => Math.max(t, s.end), 0) - seen.reduce((t, s) => Math.min(t, s.start), Infinity)) / 1000;
}

export const DURATION =
  'divided by the time from the first request sent to the last one’s end, the drain included; ours by the window of arrivals';
export const DISPATCHED = 'from dispatch, so queueing in the client is left out';
export const SURVIVORS = 'over requests that ended well alone; ours also stands over all offered (metrics.*.offered)';

export interface Summary {
  readonly count: number;
  readonly mean: number;
  readonly min: number;
  readonly max: number;
  /** Population standard deviation. */
  readonly sd: number;
  readonly q: (p: number) => number;
}

export function summaryOf(values: readonly number[]): Summary | undefined {
  const sorted = Float64Array.from(values).sort();
  const n = sorted.length;
  if (n === 0) return undefined;
  let sum = 0;
  for (const v of sorted) sum += v;
  const mean = sum / n;
  let squares = 0;
  for (const v of sorted) squares += (v - mean) ** 2;
  return {
    count: n,
    mean,
    min: sorted[0]!,
    max: sorted[n - 1]!,
    sd: Math.sqrt(squares / n),
    q: (p) => quantile(sorted, p)!,
  };
}

/** The value at a dotted path of our report. */
export function oursAt(report: Report, path: string): number | null {
  let value: unknown = report;
  for (const key of path.split('.')) value = (value as Record<string, unknown> | null | undefined)?.[key];
  return typeof value === 'number' ? value : null;
}

/** Good by the limits a tool knows, on its own figures; undefined where the contract names none of them. */
export function goodBy(
  limits: Readonly<Record<string, number | undefined>>,
  figures: Readonly<Record<string, number | undefined>>,
): boolean | undefined {
  const set = Object.entries(limits).filter(([, limit]) => limit !== undefined);
  if (set.length === 0) return undefined;
  return set.every(([name, limit]) => figures[name] !== undefined && figures[name]! <= limit!);
}
