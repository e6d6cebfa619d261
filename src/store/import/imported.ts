/** What every importer gives: records, what was asked, and what the file cannot tell. */
import { InputError, oneLine } from '../../base/errors.ts';
import { type Millis, toMicroGrid } from '../../base/units.ts';
import { type Outcome, outcomeOfStatus } from '../../core/outcome.ts';
import type { RequestRecord } from '../../core/record.ts';
import { timelineOf } from '../../core/timeline.ts';

export interface Imported {
  /** The tool whose results these are. */
  readonly tool: string;
  /** In any order; each is an operation, numbered by when it began. Read once. */
  readonly records: Iterable<RequestRecord> | AsyncIterable<RequestRecord>;
  readonly count: number;
  readonly model?: string;
  /** Offered load in words and numbers, as far as the file says. */
  readonly rate?: number;
  readonly concurrency?: number;
  /** Wall time of the epoch of the records, ms since 1970; absent where the file has only a monotonic clock. */
  readonly epochWall?: Millis;
  /** The chunks are the first and the last output alone: what lies between is unknown, and no gap is a gap. */
  readonly endsOnly: boolean;
  /** Sentences: what was assumed, and what must not be read out of the figures. */
  readonly cannotTell: readonly string[];
}

/** A request as the tools know it. Times are ms on the records' epoch. */
export interface Known {
  readonly start: Millis;
  readonly scheduled?: Millis;
  readonly headers?: Millis;
  /** Receipts of chunks, in order; empty when there was no output. */
  readonly receipts: readonly Millis[];
  readonly firstAnswer?: Millis;
  readonly ended?: Millis;
  readonly input?: number;
  /** Output tokens, and who counted them. */
  readonly output?: number;
  readonly countedBy: 'server' | 'tokenizer';
  readonly reasoning?: number;
  /** Default true. Of a whole answer the one receipt is its end. */
  readonly streamed?: boolean;
  readonly status?: number;
  readonly outcome: Outcome;
  readonly reason?: string;
  readonly detail?: string;
  readonly session?: number;
  readonly turn?: number;
}

export function recordOfKnown(operation: number, k: Known): RequestRecord {
  const grid = (t: Millis): Millis => toMicroGrid(t);
  const scheduled = grid(k.scheduled ?? k.start);
  const dispatched = Math.max(scheduled, grid(k.start));
  // Sums of rounded gaps may run backwards by less than a microsecond.
  const at: Millis[] = [];
  for (const t of k.receipts) at.push(Math.max(grid(t), at.at(-1) ?? dispatched));
  const first = at[0];
  const last = at.at(-1);
  const completed = k.outcome === 'completed';
  const ended = k.ended ?? last;
  return {
    operation,
    attempt: 0,
    attempts: 1,
    lostHedge: false,
    class: 'default',
    ...(k.session !== undefined && { session: k.session }),
    ...(k.turn !== undefined && { turn: k.turn }),
    asked: { input: k.input ?? 0, output: 0, choices: 1, stream: k.streamed ?? true },
    stamps: {
      scheduled,
      dispatched,
      ...(k.headers !== undefined &&
        first !== undefined && { headers: Math.min(Math.max(dispatched, grid(k.headers)), first) }),
      ...(first !== undefined &&
        last !== undefined && {
          firstEvent: first,
          firstOutput: first,
          firstAnswer: k.firstAnswer === undefined ? first : Math.min(last, Math.max(first, grid(k.firstAnswer))),
          lastOutput: last,
        }),
      ...(ended !== undefined && { ended: Math.max(grid(ended), last ?? dispatched) }),
    },
    ...(k.status !== undefined && { status: k.status }),
    timeline: timelineOf(at),
    streamed: k.streamed ?? true,
    ...(k.countedBy === 'server' &&
      completed &&
      k.output !== undefined && {
        usage: {
          ...(k.input !== undefined && { input: k.input }),
          output: k.output,
          ...(k.reasoning !== undefined && { reasoning: k.reasoning }),
        },
      }),
    unseenEndTokens: 0,
    ...(k.countedBy === 'tokenizer' && k.output !== undefined && { tokenized: k.output }),
    outcome: k.outcome,
    reason: completed ? '' : (k.reason ?? k.outcome),
    detail: oneLine(k.detail ?? '', 200),
    phase: completed ? 'done' : first !== undefined ? 'streaming' : 'waiting',
    ...(completed && { finish: 'other' as const }),
    impliedEnd: true,
    events: at.length,
    coalesced: 0,
    unclassified: 0,
  };
}

/** What every file without a schedule leaves unknown. */
export const UNSCHEDULED =
  'when requests were scheduled is not in the file: the clock starts at dispatch, so queueing in that client is in no figure';
export const NO_TRUNCATION = 'a stream cut short without an error counts as completed there, and so here';
export const ENDS_ONLY =
  'only the first and the last output of a request are in the file: chunk gaps, ITL and the largest gap are unknown; what is shown under those names is the whole decode time';

/** Which operation each request is, by when it began. */
export function ranks(starts: ArrayLike<number>): Uint32Array {
  const order = Uint32Array.from({ length: starts.length }, (_, i) => i).sort(
    (a, b) => starts[a]! - starts[b]! || a - b,
  );
  const rank = new Uint32Array(starts.length);
  order.forEach((i, operation) => {
    rank[i] = operation;
  });
  return rank;
}

/** What an error text or code of another tool amounts to. */
export function outcomeOfError(text: string, code?: number): { outcome: Outcome; reason: string } {
  if (/cancel/i.test(text) || code === 499) return { outcome: 'cancelled', reason: 'cancelled' };
  if (/time.?d? ?out|timeout/i.test(text)) return { outcome: 'timed-out', reason: 'deadline' };
  const status = code ?? Number(/\b([45]\d\d)\b/.exec(text)?.[1] ?? Number.NaN);
  if (status >= 400 && status < 600) return { outcome: outcomeOfStatus(status), reason: `http-${status}` };
  return { outcome: 'failed', reason: 'error' };
}

/** Reads fields of a parsed JSON value, and says where one is not what it should be. */
export class Fields {
  readonly #value: Readonly<Record<string, unknown>>;
  readonly #where: string;

  constructor(value: unknown, where: string) {
    this.#where = where;
    if (typeof value !== 'object' || value === null || Array.isArray(value)) throw this.#wrong('', 'an object', value);
    this.#value = value as Record<string, unknown>;
  }

  has(key: string): boolean {
    return this.#value[key] !== undefined && this.#value[key] !== null;
  }
  /** A finite number; undefined where absent or null. */
  number(key: string): number | undefined {
    const value = this.#value[key];
    if (value === undefined || value === null) return undefined;
    if (typeof value !== 'number' || !Number.isFinite(value)) throw this.#wrong(key, 'a number', value);
    return value;
  }
  /** A count; a negative or broken one is refused. */
  count(key: string): number | undefined {
    const value = this.number(key);
    if (value !== undefined && (value < 0 || !Number.isInteger(value))) throw this.#wrong(key, 'a count', value);
    return value;
  }
  text(key: string): string | undefined {
    const value = this.#value[key];
    return value === undefined || value === null ? undefined : String(value);
  }
  list(key: string): readonly unknown[] | undefined {
    const value = this.#value[key];
    if (value === undefined || value === null) return undefined;
    if (!Array.isArray(value)) throw this.#wrong(key, 'a list', value);
    return value;
  }
  /** Numbers ≥ 0 of a list. */
  numbers(key: string): number[] | undefined {
    return this.list(key)?.map((x, i) => this.#amount(x, `${key}[${i}]`));
  }
  lists(key: string): number[][] | undefined {
    return this.list(key)?.map((x, i) => {
      if (!Array.isArray(x)) throw this.#wrong(`${key}[${i}]`, 'a list of numbers', x);
      return x.map((y, j) => this.#amount(y, `${key}[${i}][${j}]`));
    });
  }
  object(key: string): Fields | undefined {
    return this.has(key) ? new Fields(this.#value[key], `${this.#where}: ${key}`) : undefined;
  }
  wrong(key: string, expected: string): InputError {
    return this.#wrong(key, expected, this.#value[key]);
  }

  #amount(x: unknown, key: string): number {
    if (typeof x !== 'number' || !(x >= 0) || !Number.isFinite(x)) throw this.#wrong(key, 'a number of 0 or more', x);
    return x;
  }
  #wrong(key: string, expected: string, found: unknown): InputError {
    const shown = found === undefined ? 'missing' : oneLine(JSON.stringify(found) ?? String(found), 40);
    return new InputError(
      `${this.#where}${key === '' ? '' : `: '${key}'`} is ${shown}, expected ${expected}; is the file whole?`,
    );
  }
}
