/**
 * One line of `goodput judge`'s input: stamps from anywhere, on one absolute clock in milliseconds, made a record. A
 * stamp that cannot be right is refused rather than repaired: one tool's negative TTFT was another's median.
 */
import { InputError, oneLine } from '../base/errors.ts';
import { didYouMean } from '../base/nearest.ts';
import { type Millis, toMicroGrid } from '../base/units.ts';
import { OUTCOMES, type Outcome, type Phase, type RequestRecord, type Stamps, TimelineBuilder } from '../core/index.ts';

export interface JudgeLine {
  readonly record: RequestRecord;
  /** The input calls it completed but not a valid response. */
  readonly toldInvalid: boolean;
  /** Keys that mean nothing here. */
  readonly unknown: readonly string[];
}

const KEYS = [
  'scheduled_ms',
  'dispatched_ms',
  'receipts_ms',
  'receipt_tokens',
  'first_answer_ms',
  'ended_ms',
  'tokens',
  'asked_tokens',
  'streamed',
  'outcome',
  'class',
] as const;

/** Outcomes as DEFINITIONS lists them. `invalid` is a completed one that the input already found wanting. */
const ACCEPTED: readonly string[] = [...OUTCOMES, 'invalid'];

/** Beyond this a float64 of milliseconds no longer holds whole microseconds. */
const MAX_STAMP: Millis = 9e12;

/** Reads one line. @param operation its number among the records. @throws InputError naming the line and the value. */
export function readJudgeLine(text: string, number: number, operation: number): JudgeLine {
  const where = `line ${number}`;
  const line = parse(text, where);
  const scheduled = stamp(line.scheduled_ms, where, 'scheduled_ms');
  if (scheduled === undefined) {
    throw new InputError(`${where}: scheduled_ms is missing; every operation needs the time it was meant to start`);
  }
  const { outcome, toldInvalid } = outcomeOf(line.outcome, where);
  const dispatched = stamp(line.dispatched_ms, where, 'dispatched_ms');
  inOrder(where, 'dispatched_ms', dispatched, 'scheduled_ms', scheduled);
  const start = dispatched ?? scheduled;
  const startName = dispatched === undefined ? 'scheduled_ms' : 'dispatched_ms';

  const receipts = receiptsOf(line.receipts_ms, where, outcome);
  inOrder(where, 'receipts_ms[0]', receipts[0], startName, start);
  const last = receipts.at(-1);
  const told = stamp(line.ended_ms, where, 'ended_ms');
  if (last === undefined) inOrder(where, 'ended_ms', told, startName, start);
  else inOrder(where, 'ended_ms', told, `the last receipt`, last);
  // A completed operation has ended; where nobody says when, its last receipt is the latest thing known of it.
  const ended = told ?? (outcome === 'completed' ? last : undefined);

  const firstAnswer = answerOf(line.first_answer_ms, receipts, where);
  const counts = countsOf(line.receipt_tokens, receipts.length, where);
  const tokens = count(line.tokens, where, 'tokens');
  const streamed = flag(line.streamed, where, 'streamed') ?? true;
  if (!streamed && receipts.length > 1) {
    throw new InputError(
      `${where}: streamed is false, yet there are ${receipts.length} receipts; a whole answer has one`,
    );
  }
  const timeline = new TimelineBuilder();
  receipts.forEach((at, i) => {
    timeline.push(at, counts?.[i] ?? -1, firstAnswer !== undefined && at >= firstAnswer ? 'text' : 'reasoning');
  });
  const stamps: Stamps = {
    scheduled,
    ...(dispatched !== undefined && { dispatched }),
    ...(receipts[0] !== undefined && { firstEvent: receipts[0], firstOutput: receipts[0] }),
    ...(firstAnswer !== undefined && { firstAnswer }),
    ...(last !== undefined && { lastOutput: last }),
    ...(ended !== undefined && { ended }),
  };
  return {
    toldInvalid,
    unknown: Object.keys(line).filter((key) => !(KEYS as readonly string[]).includes(key)),
    record: {
      operation,
      attempt: 0,
      attempts: outcome === 'unsent' ? 0 : 1,
      lostHedge: false,
      class: className(line.class, where),
      asked: { input: 0, output: count(line.asked_tokens, where, 'asked_tokens') ?? 0, choices: 1, stream: streamed },
      stamps,
      timeline: timeline.finish(),
      streamed,
      ...(tokens !== undefined && { usage: { output: tokens } }),
      unseenEndTokens: 0,
      outcome,
      reason: outcome === 'completed' ? '' : REASON[outcome],
      detail: '',
      phase: phaseOf(outcome, stamps),
      impliedEnd: false,
      events: receipts.length,
      coalesced: 0,
      unclassified: 0,
    },
  };
}

/** `unknown key 'x' (did you mean 'y'?)`, for a warning. */
export function unknownKeyText(key: string): string {
  return `unknown key '${oneLine(key, 60)}' is ignored${didYouMean(key, KEYS)}`;
}

/** The input says no more than the outcome; a deadline is given up at by whoever watched it. */
const REASON: Readonly<Record<Exclude<Outcome, 'completed'>, string>> = {
  rejected: 'rejected',
  failed: 'failed',
  truncated: 'no-finish',
  'timed-out': 'deadline',
  cancelled: 'caller',
  unsent: 'unsent',
  undecided: 'open',
};

type Line = Readonly<Record<string, unknown>>;

function parse(text: string, where: string): Line {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    const odd = /(?<![\w"])(NaN|-?Infinity)(?![\w"])/.exec(text)?.[1];
    if (odd) throw new InputError(`${where}: holds ${odd}, which is no time; leave out what was not measured`);
    throw new InputError(`${where}: not JSON: '${oneLine(text, 60)}'; write one object a line`);
  }
  if (Array.isArray(value)) throw new InputError(`${where}: an array; write one object a line (jq -c '.[]')`);
  if (value === null || typeof value !== 'object') {
    throw new InputError(`${where}: '${oneLine(text, 60)}' is not an object; write one object a line`);
  }
  return value as Line;
}

/** A stamp, on the microsecond grid; null is the same as absent. */
function stamp(value: unknown, where: string, name: string): Millis | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'number')
    throw new InputError(`${where}: ${name} is ${shown(value)}, not a number of milliseconds`);
  if (!Number.isFinite(value)) throw new InputError(`${where}: ${name} is not finite`);
  if (value < 0) throw new InputError(`${where}: ${name} is ${value}, and a stamp is not negative`);
  if (value > MAX_STAMP)
    throw new InputError(`${where}: ${name} is ${value}, too large for milliseconds; is it in another unit?`);
  return toMicroGrid(value);
}

function inOrder(where: string, name: string, at: Millis | undefined, beforeName: string, before: Millis): void {
  if (at !== undefined && at < before) {
    throw new InputError(`${where}: ${name} is ${at}, before ${beforeName} at ${before}; are they of one clock?`);
  }
}

function receiptsOf(value: unknown, where: string, outcome: Outcome): Millis[] {
  if (value === undefined || value === null) {
    if (outcome !== 'completed') return [];
    throw new InputError(
      `${where}: receipts_ms is missing; a completed operation needs it, [] when nothing was received`,
    );
  }
  if (!Array.isArray(value))
    throw new InputError(`${where}: receipts_ms is ${shown(value)}, not an array of milliseconds`);
  let previous = 0;
  return value.map((x, i) => {
    const at = stamp(x, where, `receipts_ms[${i}]`);
    if (at === undefined) throw new InputError(`${where}: receipts_ms[${i}] is null; leave out what was not received`);
    if (i > 0) inOrder(where, `receipts_ms[${i}]`, at, `receipts_ms[${i - 1}]`, previous);
    previous = at;
    return at;
  });
}

/** Absent: all output is answer. Null: none of it is. */
function answerOf(value: unknown, receipts: readonly Millis[], where: string): Millis | undefined {
  if (value === undefined) return receipts[0];
  const at = stamp(value, where, 'first_answer_ms');
  if (at === undefined) return undefined;
  const [first, last] = [receipts[0], receipts.at(-1)];
  if (first === undefined || last === undefined) {
    throw new InputError(`${where}: first_answer_ms is ${at}, yet nothing was received`);
  }
  if (at < first || at > last) {
    throw new InputError(`${where}: first_answer_ms is ${at}, outside the receipts from ${first} to ${last}`);
  }
  return at;
}

function countsOf(value: unknown, receipts: number, where: string): number[] | undefined {
  if (value === undefined || value === null) return undefined;
  if (!Array.isArray(value)) throw new InputError(`${where}: receipt_tokens is ${shown(value)}, not an array`);
  if (value.length !== receipts) {
    throw new InputError(`${where}: receipt_tokens has ${value.length} counts for ${receipts} receipts; give one each`);
  }
  return value.map((x, i) => {
    const n = count(x, where, `receipt_tokens[${i}]`);
    return n ?? -1;
  });
}

function count(value: unknown, where: string, name: string): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0 || value > 2 ** 31 - 1) {
    throw new InputError(`${where}: ${name} is ${shown(value)}, not a count of tokens`);
  }
  return value;
}

function flag(value: unknown, where: string, name: string): boolean | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'boolean') throw new InputError(`${where}: ${name} is ${shown(value)}, not true or false`);
  return value;
}

function className(value: unknown, where: string): string {
  if (value === undefined || value === null) return 'default';
  if (typeof value !== 'string' || value === '') throw new InputError(`${where}: class is ${shown(value)}, not a name`);
  return oneLine(value, 100);
}

function outcomeOf(value: unknown, where: string): { outcome: Outcome; toldInvalid: boolean } {
  if (value === undefined || value === null) return { outcome: 'completed', toldInvalid: false };
  const word = typeof value === 'string' ? value.replace('_', '-') : '';
  if (word === 'good' || word === 'late') {
    throw new InputError(`${where}: outcome '${word}' is the contract's to say; write 'completed'`);
  }
  if (!ACCEPTED.includes(word)) {
    const hint = typeof value === 'string' ? didYouMean(word, ACCEPTED) : '';
    throw new InputError(`${where}: outcome ${shown(value)} is not one${hint}; they are ${ACCEPTED.join(', ')}`);
  }
  if (word === 'invalid') return { outcome: 'completed', toldInvalid: true };
  return { outcome: word as Outcome, toldInvalid: false };
}

function phaseOf(outcome: Outcome, stamps: Stamps): Phase {
  if (outcome === 'completed') return 'done';
  if (outcome === 'unsent') return 'unsent';
  return stamps.firstOutput !== undefined ? 'streaming' : 'waiting';
}

const shown = (value: unknown): string => oneLine(JSON.stringify(value) ?? String(value), 60);
