/** One operation's metrics and verdict as a flat row: what `--per-request` prints. Undefined figures are null. */
import {
  forEachGap,
  type LedgerClass,
  type LimitName,
  type Metrics,
  type RequestRecord,
  type Verdict,
} from '../core/index.ts';

export interface RequestRow {
  readonly class: string;
  readonly scheduled_ms: number;
  readonly ttft_ms: number | null;
  readonly ttfa_ms: number | null;
  readonly tpot_ms: number | null;
  /** Every chunk gap, in order; empty with fewer than two chunks. */
  readonly gaps_ms: readonly number[];
  readonly max_gap_ms: number | null;
  readonly smoothness: number | null;
  readonly latency_ms: number | null;
  readonly e2e_ms: number | null;
  /** Streamed tokens; null when unknown. */
  readonly tokens: number | null;
  readonly token_source: string;
  readonly verdict: LedgerClass;
  readonly missed: readonly LimitName[];
  readonly unmeasurable: readonly LimitName[];
  readonly excluded: boolean;
}

export function requestRow(record: RequestRecord, metrics: Metrics, verdict: Verdict): RequestRow {
  const gaps: number[] = [];
  if (record.streamed) forEachGap(record, (gap) => void gaps.push(gap));
  return {
    class: record.class,
    scheduled_ms: record.stamps.scheduled,
    ttft_ms: metrics.ttft ?? null,
    ttfa_ms: metrics.ttfa ?? null,
    tpot_ms: metrics.tpot ?? null,
    gaps_ms: gaps,
    max_gap_ms: metrics.gap ?? null,
    smoothness: metrics.smoothness ?? null,
    latency_ms: metrics.latency ?? null,
    e2e_ms: metrics.e2e ?? null,
    tokens: metrics.n ?? null,
    token_source: metrics.tokenSource,
    verdict: verdict.class,
    missed: verdict.missed,
    unmeasurable: verdict.unmeasurable,
    excluded: verdict.excluded,
  };
}
