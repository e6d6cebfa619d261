/** The verdict on one operation. Pure: goodput, attainment and every chart are folds of verdicts. */
import { type Contract, LIMIT_NAMES, type LimitName, type Limits, smoothnessSchedule } from './contract.ts';
import { type Absence, type MeasureOptions, type Metrics, measure } from './measure.ts';
import type { FinishClass, Outcome } from './outcome.ts';
import type { RequestRecord } from './record.ts';

/** Where an operation ends in the ledger. Their counts always add up to those offered. */
export type LedgerClass =
  | 'good'
  | 'late'
  | 'invalid'
  | 'rejected'
  | 'failed'
  | 'truncated'
  | 'timed-out'
  | 'cancelled'
  | 'unsent'
  | 'undecided';

/** The ledger's columns, in the order of DEFINITIONS' identity. */
export const LEDGER: readonly LedgerClass[] = [
  'good',
  'late',
  'invalid',
  'rejected',
  'failed',
  'truncated',
  'timed-out',
  'cancelled',
  'unsent',
  'undecided',
];

export interface Verdict {
  readonly class: LedgerClass;
  /** Taken out of attainment's denominator, because the contract says so. It stays in the ledger. */
  readonly excluded: boolean;
  /** Limits missed, or for a cancelled operation already broken. */
  readonly missed: readonly LimitName[];
  /** Of `missed`, those that could not be measured. */
  readonly unmeasurable: readonly LimitName[];
  /** Limits met only because a one-token answer leaves them undefined. */
  readonly vacuous: readonly LimitName[];
  /** Why it is invalid, in words; empty otherwise. */
  readonly invalid: string;
}

/** What beside the metrics a verdict rests on. A `RequestRecord` has it. */
export interface Facts {
  readonly outcome: Outcome;
  readonly finish?: FinishClass;
  readonly finishReason?: string;
  readonly streamed: boolean;
  readonly asked: { readonly output: number };
}

const NOTHING: readonly LimitName[] = [];

/** The part of a contract that changes how a record is measured. */
export function measureOptions(contract: Pick<Contract, 'boundary' | 'limits'>): MeasureOptions {
  const schedule = smoothnessSchedule(contract.limits);
  return { boundary: contract.boundary, ...(schedule && { smoothness: schedule }) };
}

/** `judge(measure(record))` under one contract. */
export function judgeRecord(record: RequestRecord, contract: Contract): { metrics: Metrics; verdict: Verdict } {
  const metrics = measure(record, measureOptions(contract));
  return { metrics, verdict: judge(metrics, record, contract) };
}

export function judge(metrics: Metrics, facts: Facts, contract: Contract): Verdict {
  const { outcome } = facts;
  if (outcome === 'cancelled') return judgeCancelled(metrics, contract);
  if (outcome !== 'completed') return plain(outcome);
  if (metrics.e2e !== undefined && metrics.e2e > contract.deadline) return plain('timed-out');
  const invalid = whyInvalid(metrics, facts, contract);
  if (invalid) return { ...plain('invalid'), invalid };
  if (!facts.streamed && contract.cases.nonStreamed === 'exclude') return { ...plain('late'), excluded: true };

  const missed: LimitName[] = [];
  const unmeasurable: LimitName[] = [];
  const vacuous: LimitName[] = [];
  let excluded = false;
  for (const name of LIMIT_NAMES) {
    const limit = contract.limits[name];
    if (limit === undefined) continue;
    const value = metrics[name];
    if (value !== undefined) {
      if (breaks(name, value, limit)) missed.push(name);
      continue;
    }
    switch (absentCase(metrics.absent[name], contract)) {
      case 'vacuous':
        vacuous.push(name);
        break;
      case 'late':
        missed.push(name);
        if (!isVacuous(metrics.absent[name])) unmeasurable.push(name);
        break;
      case 'exclude':
        excluded = true;
        break;
      case 'skip':
        break;
    }
  }
  const late = missed.length > 0 || excluded;
  return {
    class: late ? 'late' : 'good',
    // A limit broken outright counts against, whatever else could not be measured.
    excluded: excluded && missed.length === 0,
    missed: missed.length === 0 ? NOTHING : missed,
    unmeasurable: unmeasurable.length === 0 ? NOTHING : unmeasurable,
    vacuous: vacuous.length === 0 ? NOTHING : vacuous,
    invalid: '',
  };
}

function absentCase(why: Absence | undefined, contract: Contract): 'vacuous' | 'late' | 'exclude' | 'skip' {
  if (isVacuous(why)) return contract.cases.oneToken;
  if (why === 'not-streamed' && contract.cases.nonStreamed === 'skip') return 'skip';
  return contract.cases.unmeasurable;
}

const isVacuous = (why: Absence | undefined): boolean => why === 'one-token';

/**
 * A cancelled operation, by what was seen of it: under `observed` it counts against when a limit was already broken
 * (elapsed TTFT included), else it is excluded.
 */
function judgeCancelled(metrics: Metrics, contract: Contract): Verdict {
  const rule = contract.cases.cancelled;
  if (rule === 'exclude') return { ...plain('cancelled'), excluded: true };
  if (rule === 'not-good') return plain('cancelled');
  const missed = LIMIT_NAMES.filter((name) => {
    const limit = contract.limits[name];
    return limit !== undefined && alreadyBroken(name, limit, metrics);
  });
  return { ...plain('cancelled'), missed, excluded: missed.length === 0 };
}

function alreadyBroken(name: LimitName, limit: number, m: Metrics): boolean {
  const elapsed = m.e2e ?? 0;
  switch (name) {
    case 'ttft':
      return (m.ttft ?? elapsed) > limit;
    case 'ttfa':
      return (m.ttfa ?? elapsed) > limit;
    case 'tpot':
    case 'gap':
      return m[name] !== undefined && m[name] > limit;
    case 'smoothness':
      return false; // later tokens might still have raised it
    case 'latency':
    case 'e2e':
      return elapsed > limit;
  }
}

function breaks(name: LimitName, value: number, limit: number): boolean {
  return name === 'smoothness' ? value < limit : value > limit;
}

function whyInvalid(metrics: Metrics, facts: Facts, contract: Contract): string {
  const { minTokens, minShareOfAsked, finish } = contract.valid;
  const produced = metrics.fewest ?? metrics.n ?? metrics.chunks;
  if (produced === 0 && minTokens > 0) return metrics.chunks === 0 ? 'empty' : 'a choice is empty';
  if (produced < minTokens) return `${produced} tokens, fewer than ${minTokens}`;
  if (minShareOfAsked > 0 && produced < minShareOfAsked * facts.asked.output) {
    return `${produced} of ${facts.asked.output} tokens asked for`;
  }
  if (facts.finish !== undefined && !finish.includes(facts.finish))
    return `finish ${facts.finishReason ?? facts.finish}`;
  return '';
}

function plain(c: LedgerClass): Verdict {
  return { class: c, excluded: false, missed: NOTHING, unmeasurable: NOTHING, vacuous: NOTHING, invalid: '' };
}

/** Names of the limits a contract sets, in print order. */
export function limitsSet(limits: Limits): readonly LimitName[] {
  return LIMIT_NAMES.filter((name) => limits[name] !== undefined);
}
