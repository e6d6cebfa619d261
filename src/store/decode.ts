/** Columns back to records. Flat typed arrays throughout: a row costs a handful of reads and the objects it is made of. */
import { type DuckDBDataChunk, DuckDBListVector, type DuckDBVector } from '@duckdb/node-api';
import type { Connection } from '../core/engine.ts';
import { OUTCOMES } from '../core/outcome.ts';
import type { RequestRecord, Stamps } from '../core/record.ts';
import type { ServerTimes, Usage } from '../core/stream.ts';
import { EMPTY_TIMELINE, type Timeline } from '../core/timeline.ts';
import { FINISHES, LISTS, NUMBERS, PHASES, SLOT, TEXTS } from './columns.ts';

type Numbers = { readonly [i: number]: number };

/** Calls `each` with the record of each row in [from, to); the columns come in the order of `COLUMNS`, as carriers. */
export function decodeChunk(
  chunk: DuckDBDataChunk,
  from: number,
  to: number,
  each: (record: RequestRecord) => void,
): void {
  const rows = chunk.rowCount;
  const numbers = NUMBERS.map((_, c) => flat(chunk.getColumnVector(c), rows));
  const texts = TEXTS.map((_, c) => chunk.getColumnVector(NUMBERS.length + c) as DuckDBVector<string>);
  const lists = LISTS.map((_, c) => {
    const vector = chunk.getColumnVector(NUMBERS.length + TEXTS.length + c);
    if (!(vector instanceof DuckDBListVector)) throw new Error('internal: a list column is not a list');
    return { vector, values: flat(vector.childVector, vector.childVector.itemCount) };
  });
  const [us, tokens, kind, choice] = lists as [List, List, List, List];
  for (let row = from; row < to; row++) {
    const at = us.vector.getEntryOffset(row);
    const n = us.vector.getEntryLength(row);
    const scheduled = numbers[SLOT.scheduled_us]![row]!;
    const timeline = n === 0 ? EMPTY_TIMELINE : timelineFrom(us.values, at, n, scheduled, tokens, kind, choice, row);
    each(recordOf(numbers, texts, row, timeline));
  }
}

interface List {
  readonly vector: DuckDBListVector;
  readonly values: Numbers;
}

/**
 * A vector's numbers as they lie in memory. Its typed array is private to the binding; should that change, they are read
 * one by one.
 */
function flat(vector: DuckDBVector, n: number): Numbers {
  const items: unknown = Reflect.get(vector, 'items');
  if (ArrayBuffer.isView(items) && (items as Float64Array).length >= n) return items as Float64Array;
  const values = new Float64Array(n);
  for (let i = 0; i < n; i++) values[i] = Number(vector.getItem(i));
  return values;
}

function timelineFrom(
  us: Numbers,
  from: number,
  n: number,
  scheduled: number,
  tokens: List,
  kind: List,
  choice: List,
  row: number,
): Timeline {
  const at = new Float64Array(n);
  for (let i = 0; i < n; i++) at[i] = (scheduled + us[from + i]!) / 1000;
  return {
    length: n,
    at,
    tokens: expand(tokens, row, n, UNKNOWN_TOKENS, Int32Array),
    kind: expand(kind, row, n, ALL_TEXT, Uint8Array),
    choice: expand(choice, row, n, ONE_CHOICE, Uint16Array),
  };
}

/** One value a chunk again. Timelines are read-only, so those with the usual value throughout share memory. */
function expand<A extends Int32Array | Uint8Array | Uint16Array>(
  list: List,
  row: number,
  n: number,
  usual: Shared<A>,
  make: new (length: number) => A,
): A {
  const stored = list.vector.getEntryLength(row);
  if (stored === 0) return usual.of(n);
  const from = list.vector.getEntryOffset(row);
  const values = new make(n);
  if (stored === 1) values.fill(list.values[from]!);
  else for (let i = 0; i < n; i++) values[i] = list.values[from + i]!;
  return values;
}

/** Arrays of one value, by length, out of one buffer. */
class Shared<A extends Int32Array | Uint8Array | Uint16Array> {
  readonly #make: new (
    length: number,
  ) => A;
  readonly #value: number;
  #buffer: A;
  readonly #byLength: A[] = [];

  constructor(make: new (length: number) => A, value: number) {
    this.#make = make;
    this.#value = value;
    this.#buffer = new make(0);
  }
  of(n: number): A {
    if (n > 65_536) return new this.#make(n).fill(this.#value) as A;
    const known = this.#byLength[n];
    if (known) return known;
    if (n > this.#buffer.length) this.#buffer = new this.#make(Math.max(1024, 2 * n)).fill(this.#value) as A;
    return (this.#byLength[n] = this.#buffer.subarray(0, n) as A);
  }
}
const UNKNOWN_TOKENS = new Shared(Int32Array, -1);
const ALL_TEXT = new Shared(Uint8Array, 0);
const ONE_CHOICE = new Shared(Uint16Array, 0);

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

function recordOf(
  c: readonly Numbers[],
  texts: readonly DuckDBVector<string>[],
  row: number,
  timeline: Timeline,
): RequestRecord {
  const num = (slot: number): number => c[slot]![row]!;
  const opt = (slot: number): number | undefined => {
    const value = c[slot]![row]!;
    return Number.isNaN(value) ? undefined : value;
  };
  const word = (column: number): string | undefined => texts[column]!.getItem(row) ?? undefined;

  const session = opt(SLOT.session);
  const turn = opt(SLOT.turn);
  const reused = opt(SLOT.connection_reused);
  const status = opt(SLOT.status);
  const usage = usageOf(opt);
  const tokenized = opt(SLOT.tokenized);
  const finish = opt(SLOT.finish);
  const finishReason = word(4);
  const model = word(5);
  const server = serverOf(opt);
  return {
    operation: num(SLOT.operation),
    attempt: num(SLOT.attempt),
    attempts: num(SLOT.attempts),
    lostHedge: num(SLOT.lost_hedge) === 1,
    class: word(0) ?? 'default',
    ...(session !== undefined && { session }),
    ...(turn !== undefined && { turn }),
    asked: {
      input: num(SLOT.asked_input),
      output: num(SLOT.asked_output),
      choices: num(SLOT.asked_choices),
      stream: num(SLOT.asked_stream) === 1,
    },
    stamps: stampsOf(c, row),
    ...(reused !== undefined && { connection: connectionOf(reused, word(1)) }),
    ...(status !== undefined && { status }),
    timeline,
    streamed: num(SLOT.streamed) === 1,
    ...(usage && { usage }),
    unseenEndTokens: num(SLOT.unseen_end_tokens),
    ...(tokenized !== undefined && { tokenized }),
    outcome: OUTCOMES[num(SLOT.outcome)]!,
    reason: word(2) ?? '',
    detail: word(3) ?? '',
    phase: PHASES[num(SLOT.phase)]!,
    ...(finish !== undefined && { finish: FINISHES[finish]! }),
    ...(finishReason !== undefined && { finishReason }),
    impliedEnd: num(SLOT.implied_end) === 1,
    events: num(SLOT.events),
    coalesced: num(SLOT.coalesced),
    unclassified: num(SLOT.unclassified),
    ...(model !== undefined && { model }),
    ...(server && { server }),
  };
}

type Optional = (slot: number) => number | undefined;

const STAMP_KEYS = [
  ['dispatched', SLOT.dispatched_us],
  ['connected', SLOT.connected_us],
  ['sent', SLOT.sent_us],
  ['headers', SLOT.headers_us],
  ['firstEvent', SLOT.first_event_us],
  ['firstOutput', SLOT.first_output_us],
  ['firstAnswer', SLOT.first_answer_us],
  ['lastOutput', SLOT.last_output_us],
  ['ended', SLOT.ended_us],
] as const;

function stampsOf(c: readonly Numbers[], row: number): Stamps {
  const stamps: Mutable<Stamps> = { scheduled: c[SLOT.scheduled_us]![row]! / 1000 };
  for (const [key, slot] of STAMP_KEYS) {
    const us = c[slot]![row]!;
    if (!Number.isNaN(us)) stamps[key] = us / 1000;
  }
  return stamps;
}

function connectionOf(reused: number, http: string | undefined): Connection {
  return { reused: reused === 1, ...(http !== undefined && { http }) };
}

function usageOf(opt: Optional): Usage | undefined {
  const input = opt(SLOT.usage_input);
  const output = opt(SLOT.usage_output);
  const reasoning = opt(SLOT.usage_reasoning);
  const cachedInput = opt(SLOT.usage_cached_input);
  if (input === undefined && output === undefined && reasoning === undefined && cachedInput === undefined) {
    return undefined;
  }
  return {
    ...(input !== undefined && { input }),
    ...(output !== undefined && { output }),
    ...(reasoning !== undefined && { reasoning }),
    ...(cachedInput !== undefined && { cachedInput }),
  };
}

const SERVER_KEYS = [
  ['queue', SLOT.server_queue_ms],
  ['prefill', SLOT.server_prefill_ms],
  ['decode', SLOT.server_decode_ms],
  ['e2e', SLOT.server_e2e_ms],
  ['load', SLOT.server_load_ms],
] as const;

function serverOf(opt: Optional): ServerTimes | undefined {
  let server: Mutable<ServerTimes> | undefined;
  for (const [key, slot] of SERVER_KEYS) {
    const value = opt(slot);
    if (value !== undefined) (server ??= {})[key] = value;
  }
  return server;
}
