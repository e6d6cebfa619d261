/**
 * `core/judge` over columns: the same verdicts, a million in the time of a frame or two, so that a limit can be moved and
 * everything follows. Held equal to `judge` by a property test. Smoothness is the exception: its value was measured under
 * the schedule of the run's own contract, and no other can be had without the chunks (`keepsSmoothness`).
 */
import { type Contract, contractFor, LIMIT_NAMES, type LimitName, smoothnessSchedule } from '../../core/contract.ts';
import { LEDGER, type LedgerClass } from '../../core/judge.ts';
import { OUTCOMES } from '../../core/outcome.ts';
import { ABSENCES, IN_COHORT, NONE8, type Packed, STREAMED } from './form.ts';
import { FINISH_CLASSES } from './pack.ts';

/** A verdict a row; rows outside the cohort are judged too. Bit k of a set is limit k of `LIMIT_NAMES`. */
export interface Judged {
  /** Index into `LEDGER`. */
  readonly class: Uint8Array;
  readonly excluded: Uint8Array;
  readonly missed: Uint8Array;
  readonly unmeasurable: Uint8Array;
  readonly vacuous: Uint8Array;
}

export function roomFor(rows: number): Judged {
  const bytes = (): Uint8Array => new Uint8Array(rows);
  return { class: bytes(), excluded: bytes(), missed: bytes(), unmeasurable: bytes(), vacuous: bytes() };
}

const CODE = Object.fromEntries(LEDGER.map((name, i) => [name, i])) as Readonly<Record<LedgerClass, number>>;
const COMPLETED = OUTCOMES.indexOf('completed');
const CANCELLED = OUTCOMES.indexOf('cancelled');
/** The ledger's class of an outcome that no contract changes. */
const PLAIN = Uint8Array.from(OUTCOMES, (o) => (o === 'completed' ? CODE.good : CODE[o]));
const [NO_OUTPUT, NOT_STREAMED, ONE_TOKEN, NO_LIMIT] = (
  ['no-output', 'not-streamed', 'one-token', 'no-limit'] as const
).map((why) => ABSENCES.indexOf(why) + 1) as [number, number, number, number];
const [TTFT, TTFA, TPOT, GAP, SMOOTHNESS, LATENCY, E2E] = LIMIT_NAMES.map((_, k) => k) as [
  number,
  number,
  number,
  number,
  number,
  number,
  number,
];

/** Whether the stored smoothness is what `contract` would measure on operations of `trafficClass`. */
export function keepsSmoothness(packed: Packed, contract: Contract, trafficClass: string): boolean {
  const own = contractFor(packed.contract, packed.contracts)(trafficClass);
  const [a, b] = [smoothnessSchedule(own.limits), smoothnessSchedule(contract.limits)];
  // Stored values are measured from `scheduled`.
  return contract.boundary === 'scheduled' && a?.ttft === b?.ttft && a?.tpot === b?.tpot;
}

/**
 * Judges every row. @param contract of all classes, unless `contracts` names some that have their own.
 * @param into room for as many rows, used again from call to call.
 */
export function judgePacked(
  packed: Packed,
  contract: Contract,
  contracts: Readonly<Record<string, Contract>> = {},
  into: Judged = roomFor(packed.rows),
): Judged {
  const of = contractFor(contract, contracts);
  const distinct = packed.classes.map((name) => of(name));
  const only = distinct.every((c) => c === distinct[0]) ? distinct[0] : undefined;
  if (only || packed.classes.length === 0) judgeRows(packed, only ?? contract, undefined, into);
  else distinct.forEach((c, k) => void judgeRows(packed, c, k, into));
  return into;
}

/** Rows of one class, or all. */
function judgeRows(p: Packed, contract: Contract, only: number | undefined, into: Judged): void {
  const { limits, deadline, valid, cases } = contract;
  const shifted = contract.boundary === 'dispatched';
  const set = LIMIT_NAMES.map((name, k) => ({ k, limit: limits[name] })).filter(
    (l): l is { k: number; limit: number } => l.limit !== undefined,
  );
  const values: Float64Array[] = [p.ttft, p.ttfa, p.tpot, p.gap, p.smoothness, p.latency, p.e2e];
  // Limits whose stored column is what they are held against, which is nearly always all: read without a call.
  const columns = set.map(({ k }) => (shifted || k === SMOOTHNESS ? undefined : values[k]));
  const scheduled = smoothnessSchedule(limits) !== undefined;
  const finishOk = Uint8Array.from({ length: 256 }, (_, f) =>
    f === NONE8 || valid.finish.includes(FINISH_CLASSES[f] as (typeof FINISH_CLASSES)[number]) ? 1 : 0,
  );
  const { class: cls, excluded: ex, missed: mi, unmeasurable: un, vacuous: va } = into;
  const excludeWhole = cases.nonStreamed === 'exclude';
  const skipWhole = cases.nonStreamed === 'skip';
  const { minTokens, minShareOfAsked } = valid;

  for (let i = 0; i < p.rows; i++) {
    if (only !== undefined && p.class[i] !== only) continue;
    ex[i] = mi[i] = un[i] = va[i] = 0;
    const outcome = p.outcome[i]!;
    const lag = shifted ? p.lag[i]! : 0;
    const lost = shifted && Number.isNaN(lag); // never dispatched: nothing can be measured
    if (outcome === CANCELLED) {
      cls[i] = CODE.cancelled;
      if (cases.cancelled === 'exclude') ex[i] = 1;
      else if (cases.cancelled === 'observed') {
        let broken = 0;
        const elapsed = at(E2E, i, lag, lost);
        const seen = Number.isNaN(elapsed) ? 0 : elapsed;
        for (const { k, limit } of set) {
          let value: number;
          if (k === SMOOTHNESS) continue;
          if (k === LATENCY || k === E2E) value = seen;
          else {
            value = at(k, i, lag, lost);
            if (Number.isNaN(value) && (k === TTFT || k === TTFA)) value = seen;
          }
          if (value > limit) broken |= 1 << k;
        }
        mi[i] = broken;
        ex[i] = broken === 0 ? 1 : 0;
      }
      continue;
    }
    if (outcome !== COMPLETED) {
      cls[i] = PLAIN[outcome]!;
      continue;
    }
    if ((shifted ? at(E2E, i, lag, lost) : p.e2e[i]!) > deadline) {
      cls[i] = CODE['timed-out'];
      continue;
    }
    const produced = lost ? p.chunks[i]! : p.produced[i]!;
    if (
      (produced === 0 && minTokens > 0) ||
      produced < minTokens ||
      (minShareOfAsked > 0 && produced < minShareOfAsked * p.asked[i]!) ||
      finishOk[p.finish[i]!] === 0
    ) {
      cls[i] = CODE.invalid;
      continue;
    }
    if (excludeWhole && (p.flags[i]! & STREAMED) === 0) {
      cls[i] = CODE.late;
      ex[i] = 1;
      continue;
    }
    let missed = 0;
    let unmeasurable = 0;
    let vacuous = 0;
    let out = false;
    for (let s = 0; s < set.length; s++) {
      const { k, limit } = set[s]!;
      const column = columns[s];
      const value =
        column !== undefined ? column[i]! : k === SMOOTHNESS && !scheduled ? Number.NaN : at(k, i, lag, lost);
      if (!Number.isNaN(value)) {
        if (k === SMOOTHNESS ? value < limit : value > limit) missed |= 1 << k;
        continue;
      }
      const why = lost ? NO_OUTPUT : k === SMOOTHNESS && !scheduled && !noOutput(i) ? NO_LIMIT : codeOf(i, k);
      const how = why === ONE_TOKEN ? cases.oneToken : why === NOT_STREAMED && skipWhole ? 'skip' : cases.unmeasurable;
      if (how === 'vacuous') vacuous |= 1 << k;
      else if (how === 'late') {
        missed |= 1 << k;
        if (why !== ONE_TOKEN) unmeasurable |= 1 << k;
      } else if (how === 'exclude') out = true;
    }
    cls[i] = missed !== 0 || out ? CODE.late : CODE.good;
    ex[i] = out && missed === 0 ? 1 : 0;
    mi[i] = missed;
    un[i] = unmeasurable;
    va[i] = vacuous;
  }

  /** The value a limit is held against; from `dispatched` where that is the boundary. */
  function at(k: number, i: number, lag: number, lost: boolean): number {
    if (lost) return Number.NaN;
    const value = values[k]![i];
    if (value === undefined) return Number.NaN; // no class has a smoothness schedule
    return shifted && k !== TPOT && k !== GAP && k !== SMOOTHNESS ? Math.round((value - lag) * 1000) / 1000 : value;
  }
  function codeOf(i: number, k: number): number {
    return (p.absent[i]! >>> (4 * k)) & 15;
  }
  function noOutput(i: number): boolean {
    const why = codeOf(i, SMOOTHNESS);
    return why === NO_OUTPUT || why === NOT_STREAMED;
  }
}

/** What a contract makes of a cohort: the figures of a report that follow from verdicts alone. */
export interface JudgedFold {
  readonly offered: number;
  readonly ledger: Readonly<Record<LedgerClass, number>>;
  readonly excluded: number;
  readonly good: number;
  readonly denominator: number;
  /** Late operations by the exact set of limits they missed (bits), and by limit, together and alone. */
  readonly sets: ReadonlyMap<number, number>;
  readonly misses: Readonly<Partial<Record<LimitName, number>>>;
  readonly alone: Readonly<Partial<Record<LimitName, number>>>;
  readonly unmeasurable: Readonly<Partial<Record<LimitName, number>>>;
  readonly vacuous: Readonly<Partial<Record<LimitName, number>>>;
}

/** Folds the rows of the cohort, all of them or those that `only` (a byte a row) keeps. */
export function foldJudged(packed: Packed, judged: Judged, only?: Uint8Array): JudgedFold {
  const counts = new Float64Array(LEDGER.length);
  const sets = new Float64Array(128);
  const unmeasurable = new Float64Array(128);
  const vacuous = new Float64Array(128);
  let excluded = 0;
  for (let i = 0; i < packed.rows; i++) {
    if ((packed.flags[i]! & IN_COHORT) === 0 || (only && only[i] === 0)) continue;
    counts[judged.class[i]!]!++;
    excluded += judged.excluded[i]!;
    if (judged.class[i] === CODE.late && judged.missed[i]! > 0) sets[judged.missed[i]!]!++;
    if (judged.unmeasurable[i] !== 0) unmeasurable[judged.unmeasurable[i]!]!++;
    if (judged.vacuous[i] !== 0) vacuous[judged.vacuous[i]!]!++;
  }
  const offered = counts.reduce((a, b) => a + b, 0);
  const byLimit = (of: Float64Array, alone = false): Partial<Record<LimitName, number>> => {
    const found: Partial<Record<LimitName, number>> = {};
    LIMIT_NAMES.forEach((name, k) => {
      let n = 0;
      for (let s = 1; s < 128; s++) if (alone ? s === 1 << k : (s & (1 << k)) !== 0) n += of[s]!;
      if (n > 0) found[name] = n;
    });
    return found;
  };
  const good = counts[CODE.good]!;
  return {
    offered,
    ledger: Object.fromEntries(LEDGER.map((name, k) => [name, counts[k]!])) as Record<LedgerClass, number>,
    excluded,
    good,
    denominator: offered - excluded,
    sets: new Map([...sets.entries()].filter(([s, n]) => s > 0 && n > 0)),
    misses: byLimit(sets),
    alone: byLimit(sets, true),
    unmeasurable: byLimit(unmeasurable),
    vacuous: byLimit(vacuous),
  };
}
