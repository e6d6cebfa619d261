/** From folds to the report. Nothing is judged or measured here. */
import {
  type ClientHealth,
  type CohortFold,
  type Contract,
  clientVerdict,
  type LimitName,
  limitsSet,
  type Throughput,
  windowSeconds,
} from '../core/index.ts';
import { attainmentReport } from './attainment.ts';
import { metricsReport } from './metrics.ts';
import { notesOf } from './notes.ts';
import type {
  ArrivalsReport,
  ClassReport,
  ClientReport,
  CohortReport,
  Report,
  RunFacts,
  TokensReport,
  WindowReport,
} from './report.ts';

export interface ReportInput {
  readonly contract: Contract;
  readonly cohort: CohortFold;
  readonly throughput?: Throughput;
  /** Absent when nothing is known of the client that measured. */
  readonly client?: ClientHealth;
  readonly facts?: RunFacts;
  readonly arrivals?: ArrivalsReport;
  readonly classes?: readonly ClassReport[];
}

/** A window that is not finite is none: rates over it are undefined. */
export function buildReport(input: ReportInput): Report {
  const { contract, cohort: fold, facts = {} } = input;
  const window = windowReport(fold);
  const perSecond = (count: number): number | null =>
    window.seconds !== null && window.seconds > 0 ? count / window.seconds : null;
  const { ledger } = fold;
  const attainment = attainmentReport(fold, contract);
  const worth =
    attainment.effective_n === null ? 1 : Math.min(1, attainment.effective_n / Math.max(1, attainment.denominator));
  const goodput = perSecond(ledger.good);
  const throughput = window.seconds === null ? undefined : input.throughput;
  const report: Omit<Report, 'notes' | 'marks'> = {
    schema: 'goodput.report/1',
    run: facts,
    contract,
    boundary: contract.boundary,
    window,
    cohort: cohortReport(fold, window.seconds),
    attainment,
    goodput_rps: goodput,
    goodput_rps_per_gpu: goodput !== null && facts.gpus ? goodput / facts.gpus : null,
    offered_rps: perSecond(fold.offered),
    achieved_rps: perSecond(ledger.good + ledger.late + ledger.invalid),
    throughput_tps:
      throughput && (throughput.tokens > 0 || throughput.unknown === 0) ? throughput.tokensPerSecond : null,
    throughput: throughput
      ? {
          tokens: throughput.tokens,
          spread_share: throughput.spreadShare,
          unknown_requests: throughput.unknown,
        }
      : null,
    metrics: metricsReport(fold, contract.boundary, worth),
    ...missesOf(fold, contract),
    unmeasurable: Object.fromEntries(fold.unmeasurable),
    vacuous: Object.fromEntries(fold.vacuous),
    tokens: tokensReport(fold),
    lengths: {
      asked_input: fold.lengths.askedInput || null,
      achieved_input: fold.lengths.achievedInput || null,
      asked_output: fold.lengths.askedOutput || null,
      achieved_output: fold.lengths.achievedOutput || null,
    },
    attempts: { total: fold.attempts, per_operation: fold.offered > 0 ? fold.attempts / fold.offered : null },
    reasons: [...fold.reasons]
      .map(([reason, { count, detail }]) => ({ reason, count, detail }))
      .sort((a, b) => b.count - a.count),
    client: clientReport(input),
    ...(input.arrivals && { arrivals: input.arrivals }),
    ...(input.classes?.length && { classes: input.classes }),
  };
  const notes = notesOf(report, fold);
  return { ...report, marks: [...new Set(notes.map((n) => n.mark))], notes };
}

function windowReport({ window }: CohortFold): WindowReport {
  const defined = Number.isFinite(window.start) && Number.isFinite(window.end) && window.end > window.start;
  return {
    start_ms: defined ? window.start : null,
    end_ms: defined ? window.end : null,
    seconds: defined ? windowSeconds(window) : null,
    estimated: window.estimated === true,
  };
}

function cohortReport({ offered, ledger, excluded }: CohortFold, seconds: number | null): CohortReport {
  return {
    offered,
    good: ledger.good,
    late: ledger.late,
    invalid: ledger.invalid,
    rejected: ledger.rejected,
    failed: ledger.failed,
    truncated: ledger.truncated,
    timed_out: ledger['timed-out'],
    cancelled: ledger.cancelled,
    unsent: ledger.unsent,
    undecided: ledger.undecided,
    window_s: seconds,
    excluded,
  };
}

type Misses = Pick<Report, 'misses' | 'misses_alone' | 'misses_joint'>;

function missesOf(fold: CohortFold, contract: Contract): Misses {
  const zero = (): Partial<Record<LimitName, number>> =>
    Object.fromEntries(limitsSet(contract.limits).map((name) => [name, 0]));
  const misses = zero();
  const alone = zero();
  const joint: { limits: LimitName[]; count: number }[] = [];
  for (const [key, count] of fold.missedSets) {
    const limits = key.split('+') as LimitName[];
    joint.push({ limits, count });
    for (const name of limits) misses[name] = (misses[name] ?? 0) + count;
    const only = limits.length === 1 ? limits[0] : undefined;
    if (only) alone[only] = (alone[only] ?? 0) + count;
  }
  joint.sort((a, b) => b.count - a.count || a.limits.join().localeCompare(b.limits.join()));
  return { misses, misses_alone: alone, misses_joint: joint };
}

function tokensReport(fold: CohortFold): TokensReport {
  const sources = [...fold.tokenSources.keys()];
  return {
    source: sources.length === 0 ? 'none' : sources.length === 1 ? (sources[0] as string) : 'mixed',
    sources: Object.fromEntries(fold.tokenSources),
    exactness: Object.fromEntries(fold.exactness),
  };
}

function clientReport({ client, contract, cohort }: ReportInput): ClientReport {
  const coalesced = client?.coalesced ?? (cohort.coalesced > 0 ? cohort.coalesced / cohort.events : null);
  if (!client) {
    return {
      verdict: 'unknown',
      why: [],
      send_lag_ms: null,
      coalesced: null,
      event_loop_ms: null,
      stamp_late_ms: null,
      cpu: null,
      unsent: 0,
      dropped: 0,
    };
  }
  const { verdict, why } = clientVerdict(client, contract);
  return {
    verdict,
    why,
    send_lag_ms: client.sendLag ?? null,
    coalesced,
    event_loop_ms: client.eventLoop ?? null,
    stamp_late_ms: client.stampLate ?? null,
    cpu: client.cpu ?? null,
    unsent: client.unsent,
    dropped: client.dropped,
  };
}
