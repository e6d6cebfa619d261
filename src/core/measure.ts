/** A record's metrics, by DEFINITIONS. What is undefined or cannot be measured is absent, never 0, and says why. */
import { between, type Millis, type Share } from '../base/units.ts';
import type { Boundary, LimitName, SmoothnessSchedule } from './contract.ts';
import type { RequestRecord } from './record.ts';
import { isAnswer, OUTPUT_KINDS } from './stream.ts';
import { type StreamedTokens, streamedTokens, type TokenExactness, type TokenSource } from './tokens.ts';

/**
 * Why a metric is absent. Only `one-token` (and `one-chunk` of a one-token answer) is undefined by nature and may be met
 * vacuously; the rest could not be measured.
 */
export type Absence =
  | 'no-output'
  | 'no-answer'
  | 'not-ended'
  | 'not-streamed'
  | 'one-token'
  | 'one-chunk'
  | 'one-receipt'
  | 'unknown-tokens'
  | 'no-limit';

export interface Metrics {
  /** From the boundary's start. */
  readonly ttft?: Millis;
  readonly ttfa?: Millis;
  /** Mean of the n−1 later token gaps. */
  readonly tpot?: Millis;
  /** The largest chunk gap. */
  readonly gap?: Millis;
  readonly smoothness?: Share;
  /** Last-token latency: `lastOutput − start`. */
  readonly latency?: Millis;
  /** `ended − start`; of an operation that did not complete, the time it was observed. */
  readonly e2e?: Millis;
  /** TTFT and E2E from `dispatched`, printed beside those from `scheduled`. */
  readonly ttftDispatched?: Millis;
  readonly e2eDispatched?: Millis;
  /** The same from `scheduled`, set where the boundary is `dispatched`. */
  readonly ttftScheduled?: Millis;
  readonly e2eScheduled?: Millis;
  /** `dispatched − scheduled`. */
  readonly sendLag?: Millis;
  /** Streamed tokens of the worst choice's span; absent when unknown. */
  readonly n?: number;
  readonly chunks: number;
  /** Fewest streamed tokens (chunks, where unknown) of any choice asked for: 0 when one of them gave nothing. */
  readonly fewest?: number;
  readonly tokenSource: TokenSource;
  readonly exactness: TokenExactness;
  /** Tokens in the first chunk / n: above 0.1 TPOT deserves a mark. */
  readonly firstChunkShare?: Share;
  readonly absent: Readonly<Partial<Record<LimitName, Absence>>>;
}

/** What of a contract changes a measurement: where the clock starts, and the schedule smoothness is held against. */
export interface MeasureOptions {
  readonly boundary: Boundary;
  readonly smoothness?: SmoothnessSchedule;
}

const FROM_SCHEDULED: MeasureOptions = { boundary: 'scheduled' };

type Draft = { -readonly [K in keyof Metrics]: Metrics[K] } & { absent: Partial<Record<LimitName, Absence>> };

export function measure(record: RequestRecord, options: MeasureOptions = FROM_SCHEDULED): Metrics {
  const { stamps, timeline } = record;
  const absent: Partial<Record<LimitName, Absence>> = {};
  const m: Draft = { chunks: timeline.length, tokenSource: 'unknown', exactness: 'no', absent };
  const start = options.boundary === 'scheduled' ? stamps.scheduled : stamps.dispatched;

  if (stamps.dispatched !== undefined) m.sendLag = between(stamps.scheduled, stamps.dispatched);
  if (start === undefined) {
    for (const name of ['ttft', 'ttfa', 'tpot', 'gap', 'smoothness', 'latency', 'e2e'] as const)
      absent[name] = 'no-output';
    return m;
  }
  if (stamps.ended === undefined) absent.e2e = 'not-ended';
  else {
    m.e2e = between(start, stamps.ended);
    if (options.boundary === 'dispatched') m.e2eScheduled = between(stamps.scheduled, stamps.ended);
    if (stamps.dispatched !== undefined) m.e2eDispatched = between(stamps.dispatched, stamps.ended);
  }
  const first = stamps.firstOutput;
  const last = stamps.lastOutput;
  if (first === undefined || last === undefined) {
    for (const name of ['ttft', 'ttfa', 'tpot', 'gap', 'smoothness', 'latency'] as const) absent[name] = 'no-output';
    return m;
  }
  const tokens = streamedTokens(record);
  m.tokenSource = tokens.source;
  m.exactness = record.streamed ? tokens.exactness : 'no';
  const choices = choicesOf(record);
  m.fewest = fewestOf(record, choices, tokens);
  if (!record.streamed) {
    if (tokens.n !== undefined) m.n = tokens.n;
    m.latency = between(start, last);
    for (const name of ['ttft', 'ttfa', 'tpot', 'gap', 'smoothness'] as const) absent[name] = 'not-streamed';
    return m;
  }
  m.ttft = between(start, first);
  if (options.boundary === 'dispatched') m.ttftScheduled = between(stamps.scheduled, first);
  if (stamps.dispatched !== undefined) m.ttftDispatched = between(stamps.dispatched, first);
  if (stamps.firstAnswer === undefined) absent.ttfa = 'no-answer';
  else m.ttfa = between(start, stamps.firstAnswer);
  m.latency = between(start, last);

  if (choices.length === 1) measureChoice(record, tokens, undefined, m);
  else measureWorst(record, choices, m);

  const schedule = options.smoothness;
  if (!schedule) absent.smoothness = 'no-limit';
  else {
    const shares = choices.map((choice) =>
      choices.length > 1
        ? smoothness(record, start, schedule, choice)
        : smoothness(record, start, schedule, undefined, tokens),
    );
    if (shares.every((s) => s !== undefined)) m.smoothness = Math.min(...(shares as number[]));
    else absent.smoothness = 'unknown-tokens';
  }
  return m;
}

/** TPOT, gap and n of one choice (`undefined`: the only one) into `m`. */
function measureChoice(record: RequestRecord, tokens: StreamedTokens, choice: number | undefined, m: Draft): void {
  const { timeline } = record;
  let spanFirst: Millis | undefined;
  let spanLast: Millis | undefined;
  let firstTokens = -1;
  let previous: Millis | undefined;
  let maxGap = -1;
  let chunks = 0;
  for (let i = 0; i < timeline.length; i++) {
    if (choice !== undefined && timeline.choice[i] !== choice) continue;
    const at = timeline.at[i]!;
    chunks++;
    if (previous !== undefined && at - previous > maxGap) maxGap = at - previous;
    previous = at;
    if (tokens.span === 'answer' && !isAnswer(OUTPUT_KINDS[timeline.kind[i]!]!)) continue;
    if (spanFirst === undefined) {
      spanFirst = at;
      firstTokens = timeline.tokens[i]!;
    }
    spanLast = at;
  }
  const n = tokens.n;
  if (n !== undefined) {
    m.n = n;
    if (firstTokens >= 0) m.firstChunkShare = firstTokens / n;
    else if (chunks === 1) m.firstChunkShare = 1;
  }
  if (maxGap >= 0) m.gap = between(0, maxGap);
  else m.absent.gap = n === 1 ? 'one-token' : 'one-chunk';

  if (n === undefined || spanFirst === undefined || spanLast === undefined) m.absent.tpot = 'unknown-tokens';
  else if (n <= 1) m.absent.tpot = 'one-token';
  else if (spanLast === spanFirst) m.absent.tpot = 'one-receipt';
  else m.tpot = between(spanFirst, spanLast) / (n - 1);
}

/** The worst choice's TPOT and gap: absent as soon as one choice's cannot be known, for that one might be the worst. */
function measureWorst(record: RequestRecord, choices: readonly number[], m: Draft): void {
  let exact = true;
  for (const choice of choices) {
    const tokens = streamedTokens(record, choice);
    const one: Draft = { chunks: 0, tokenSource: 'unknown', exactness: 'no', absent: {} };
    measureChoice(record, tokens, choice, one);
    exact &&= tokens.exactness === 'exact';
    worst(m, one, 'tpot');
    worst(m, one, 'gap');
    if (one.n !== undefined && one.n > (m.n ?? 0)) m.n = one.n;
    if (one.firstChunkShare !== undefined && one.firstChunkShare > (m.firstChunkShare ?? 0)) {
      m.firstChunkShare = one.firstChunkShare;
    }
  }
  m.exactness = exact ? 'exact' : 'no';
}

/** Vacuous absences (one token) give way to any figure; the others win over it. */
function worst(into: Draft, one: Draft, name: 'tpot' | 'gap'): void {
  const why = one.absent[name];
  const had = into.absent[name];
  if (why !== undefined && why !== 'one-token') {
    into.absent[name] = why;
    delete into[name];
  } else if (why === 'one-token') {
    if (into[name] === undefined && had === undefined) into.absent[name] = why;
  } else if (had === undefined || had === 'one-token') {
    delete into.absent[name];
    into[name] = Math.max(into[name] ?? 0, one[name] as number);
  }
}

/** An operation is valid only if all its choices are: the shortest decides, and one without output has none. */
function fewestOf(record: RequestRecord, choices: readonly number[], tokens: StreamedTokens): number {
  if (choices.length < record.asked.choices) return 0;
  if (choices.length === 1) return tokens.n ?? record.timeline.length;
  return Math.min(
    ...choices.map(
      (choice) =>
        streamedTokens(record, choice).n ?? record.timeline.choice.reduce((k, c) => k + (c === choice ? 1 : 0), 0),
    ),
  );
}

function choicesOf(record: RequestRecord): readonly number[] {
  const { timeline } = record;
  let single = true;
  for (let i = 1; i < timeline.length && single; i++) single = timeline.choice[i] === timeline.choice[0];
  if (single) return [timeline.choice[0] ?? 0];
  return [...new Set(timeline.choice)].sort((a, b) => a - b);
}

/**
 * Share of tokens received by their deadline (after Etalon's fluidity, Agrawal et al. 2024): the TTFT limit for the
 * first, then one TPOT limit after the previous deadline; a missed deadline restarts the schedule at the late receipt; a
 * chunk of k tokens meets each of its k deadlines that lies at or after it. Undefined when any chunk's count is unknown.
 */
export function smoothness(
  record: RequestRecord,
  start: Millis,
  schedule: SmoothnessSchedule,
  choice?: number,
  tokens: StreamedTokens = streamedTokens(record, choice),
): Share | undefined {
  const { timeline } = record;
  const inferred = tokens.exactness === 'inferred';
  let deadline = between(0, start + schedule.ttft);
  let met = 0;
  let total = 0;
  for (let i = 0; i < timeline.length; i++) {
    if (choice !== undefined && timeline.choice[i] !== choice) continue;
    const k = inferred ? 1 : timeline.tokens[i]!;
    if (k < 0) return undefined;
    const at = timeline.at[i]!;
    for (let j = 0; j < k; j++) {
      total++;
      if (at <= deadline) {
        met++;
        deadline = between(0, deadline + schedule.tpot);
      } else {
        deadline = between(0, at + schedule.tpot);
      }
    }
  }
  return total === 0 ? undefined : met / total;
}

/** Calls `each` with every chunk gap of the record, per choice, in order of receipt. */
export function forEachGap(record: RequestRecord, each: (gap: Millis) => void): void {
  const { timeline } = record;
  const choices = choicesOf(record);
  if (choices.length === 1) {
    const { at, length } = timeline;
    for (let i = 1; i < length; i++) each(between(at[i - 1]!, at[i]!));
    return;
  }
  const previous = new Map<number, Millis>();
  for (let i = 0; i < timeline.length; i++) {
    const choice = timeline.choice[i]!;
    const before = previous.get(choice);
    if (before !== undefined) each(between(before, timeline.at[i]!));
    previous.set(choice, timeline.at[i]!);
  }
}
