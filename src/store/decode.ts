/**
 * Columns back to records. Flat typed arrays throughout, and whatever rows have in common is shared: 200,000 rows of 100
 * chunks are a few allocations a row, not four hundred.
 */
import { type DuckDBDataChunk, DuckDBListVector } from '@duckdb/node-api';
import { OUTCOMES } from '../core/outcome.ts';
import type { Passage, RequestRecord, Stamps } from '../core/record.ts';
import type { ServerTimes, Usage } from '../core/stream.ts';
import { EMPTY_TIMELINE, type Timeline } from '../core/timeline.ts';
import { COLUMNS, FINISHES, LISTS, NUMBERS, PHASES, SLOT, TEXT_SLOT, TEXTS } from './columns.ts';
import { flat, type Numbers, type TextReader, type Texts } from './vectors.ts';

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** Calls `each` with the record of each row in [from, to) of a chunk whose columns are `CARRIERS`. */
export function decodeChunk(
  chunk: DuckDBDataChunk,
  from: number,
  to: number,
  textReader: TextReader,
  each: (record: RequestRecord) => void,
): void {
  const rows = chunk.rowCount;
  const numbers = NUMBERS.map((_, c) => flat(chunk.getColumnVector(c), rows));
  const texts = textReader.of(
    TEXTS.map((_, c) => chunk.getColumnVector(NUMBERS.length + c)),
    chunk.getColumnVector(COLUMNS.length),
    rows,
  );
  const lists = LISTS.map((_, c) => {
    const vector = chunk.getColumnVector(NUMBERS.length + TEXTS.length + c);
    if (!(vector instanceof DuckDBListVector)) throw new Error('internal: a list column is not a list');
    return { vector, values: flat(vector.childVector, vector.childVector.itemCount) };
  });
  const timelines = timelinesOf(lists as [List, List, List, List], numbers[SLOT.scheduled_us]!, rows);
  for (let row = from; row < to; row++) each(recordOf(numbers, texts(row), row, timelines(row)));
}

interface List {
  readonly vector: DuckDBListVector;
  readonly values: Numbers;
}

/** Receipts of all rows of a chunk stand in one buffer. */
function timelinesOf(
  [us, tokens, kind, choice]: [List, List, List, List],
  scheduled: Numbers,
  rows: number,
): (row: number) => Timeline {
  const at = new Float64Array(us.vector.childVector.itemCount);
  for (let row = 0; row < rows; row++) {
    const start = scheduled[row]!;
    const first = us.vector.getEntryOffset(row);
    const end = first + us.vector.getEntryLength(row);
    for (let i = first; i < end; i++) at[i] = (start + us.values[i]!) / 1000;
  }
  return (row) => {
    const length = us.vector.getEntryLength(row);
    if (length === 0) return EMPTY_TIMELINE;
    const first = us.vector.getEntryOffset(row);
    return {
      length,
      at: at.subarray(first, first + length),
      tokens: expand(tokens, row, length, -1, TOKENS),
      kind: expand(kind, row, length, 0, KINDS),
      choice: expand(choice, row, length, 0, CHOICES),
    };
  };
}

/** One value a chunk again, from a list that may be shortened. */
function expand<A extends Small>(list: List, row: number, n: number, usual: number, uniform: Uniform<A>): A {
  const stored = list.vector.getEntryLength(row);
  if (stored === 0) return uniform.of(n, usual);
  const from = list.vector.getEntryOffset(row);
  if (stored === 1) return uniform.of(n, list.values[from]!);
  const values = new uniform.make(n);
  for (let i = 0; i < n; i++) values[i] = list.values[from + i]!;
  return values;
}

type Small = Int32Array | Uint8Array | Uint16Array;

/** Arrays of one value throughout. Timelines are read-only, so all of one value and length are the same array. */
class Uniform<A extends Small> {
  readonly make: new (
    length: number,
  ) => A;
  readonly #byValue = new Map<number, A[]>();

  constructor(make: new (length: number) => A) {
    this.make = make;
  }
  of(n: number, value: number): A {
    let byLength = this.#byValue.get(value);
    if (!byLength) {
      if (this.#byValue.size >= 16) return new this.make(n).fill(value) as A;
      byLength = [];
      this.#byValue.set(value, byLength);
    }
    const known = byLength[n];
    if (known) return known;
    const values = new this.make(n).fill(value) as A;
    if (n <= 4096) byLength[n] = values; // bounds what is kept for good
    return values;
  }
}
const TOKENS = new Uniform(Int32Array);
const KINDS = new Uniform(Uint8Array);
const CHOICES = new Uniform(Uint16Array);

/** Optional keys are set one by one: a literal with conditional spreads costs several times as much. */
function recordOf(c: readonly Numbers[], texts: Texts, row: number, timeline: Timeline): RequestRecord {
  const record: Mutable<RequestRecord> = {
    operation: c[SLOT.operation]![row]!,
    attempt: c[SLOT.attempt]![row]!,
    attempts: c[SLOT.attempts]![row]!,
    lostHedge: c[SLOT.lost_hedge]![row] === 1,
    class: texts[TEXT_SLOT.class] ?? '',
    asked: {
      input: c[SLOT.asked_input]![row]!,
      output: c[SLOT.asked_output]![row]!,
      choices: c[SLOT.asked_choices]![row]!,
      stream: c[SLOT.asked_stream]![row] === 1,
    },
    stamps: stampsOf(c, row),
    timeline,
    streamed: c[SLOT.streamed]![row] === 1,
    unseenEndTokens: c[SLOT.unseen_end_tokens]![row]!,
    outcome: OUTCOMES[c[SLOT.outcome]![row]!]!,
    reason: texts[TEXT_SLOT.reason] ?? '',
    detail: texts[TEXT_SLOT.detail] ?? '',
    phase: PHASES[c[SLOT.phase]![row]!]!,
    impliedEnd: c[SLOT.implied_end]![row] === 1,
    events: c[SLOT.events]![row]!,
    coalesced: c[SLOT.coalesced]![row]!,
    unclassified: c[SLOT.unclassified]![row]!,
  };
  let x: number;
  if (has((x = c[SLOT.session]![row]!))) record.session = x;
  if (has((x = c[SLOT.turn]![row]!))) record.turn = x;
  if (has((x = c[SLOT.connection_reused]![row]!))) {
    const http = texts[TEXT_SLOT.connection_http];
    record.connection = http === undefined ? { reused: x === 1 } : { reused: x === 1, http };
  }
  if (has((x = c[SLOT.status]![row]!))) record.status = x;
  const usage = usageOf(c, row);
  if (usage) record.usage = usage;
  if (has((x = c[SLOT.tokenized]![row]!))) record.tokenized = x;
  if (has((x = c[SLOT.finish]![row]!))) record.finish = FINISHES[x]!;
  const finishReason = texts[TEXT_SLOT.finish_reason];
  if (finishReason !== undefined) record.finishReason = finishReason;
  const model = texts[TEXT_SLOT.model];
  if (model !== undefined) record.model = model;
  const server = serverOf(c, row);
  if (server) record.server = server;
  const passage = passageOf(c, texts, row);
  if (passage) record.passage = passage;
  return record;
}

function passageOf(c: readonly Numbers[], texts: Texts, row: number): Passage | undefined {
  const upstream = texts[TEXT_SLOT.upstream];
  const tenant = texts[TEXT_SLOT.tenant];
  const requestId = texts[TEXT_SLOT.request_id];
  const traceId = texts[TEXT_SLOT.trace_id];
  // A proxy's row has at least one of these, or was refused before it had.
  const queued = c[SLOT.queued_ms]![row]!;
  if (
    upstream === undefined &&
    tenant === undefined &&
    requestId === undefined &&
    traceId === undefined &&
    !has(queued)
  )
    return undefined;
  const passage: Mutable<Passage> = {};
  if (tenant !== undefined) passage.tenant = tenant;
  if (upstream !== undefined) passage.upstream = upstream;
  if (requestId !== undefined) passage.requestId = requestId;
  if (traceId !== undefined) passage.traceId = traceId;
  if (has(queued)) passage.queued = queued;
  let x: number;
  if (has((x = c[SLOT.first_written_us]![row]!))) passage.firstWritten = x / 1000;
  if (has((x = c[SLOT.last_written_us]![row]!))) passage.lastWritten = x / 1000;
  if (has((x = c[SLOT.stalled_ms]![row]!))) passage.stalled = x;
  return passage;
}

/** Not NaN, which stands for what is missing. */
const has = (x: number): boolean => !Number.isNaN(x);

function stampsOf(c: readonly Numbers[], row: number): Stamps {
  const stamps: Mutable<Stamps> = { scheduled: c[SLOT.scheduled_us]![row]! / 1000 };
  let us: number;
  if (has((us = c[SLOT.dispatched_us]![row]!))) stamps.dispatched = us / 1000;
  if (has((us = c[SLOT.connected_us]![row]!))) stamps.connected = us / 1000;
  if (has((us = c[SLOT.sent_us]![row]!))) stamps.sent = us / 1000;
  if (has((us = c[SLOT.headers_us]![row]!))) stamps.headers = us / 1000;
  if (has((us = c[SLOT.first_event_us]![row]!))) stamps.firstEvent = us / 1000;
  if (has((us = c[SLOT.first_output_us]![row]!))) stamps.firstOutput = us / 1000;
  if (has((us = c[SLOT.first_answer_us]![row]!))) stamps.firstAnswer = us / 1000;
  if (has((us = c[SLOT.last_output_us]![row]!))) stamps.lastOutput = us / 1000;
  if (has((us = c[SLOT.ended_us]![row]!))) stamps.ended = us / 1000;
  return stamps;
}

function usageOf(c: readonly Numbers[], row: number): Usage | undefined {
  const input = c[SLOT.usage_input]![row]!;
  const output = c[SLOT.usage_output]![row]!;
  const reasoning = c[SLOT.usage_reasoning]![row]!;
  const cachedInput = c[SLOT.usage_cached_input]![row]!;
  if (!has(input) && !has(output) && !has(reasoning) && !has(cachedInput)) return undefined;
  const usage: Mutable<Usage> = {};
  if (has(input)) usage.input = input;
  if (has(output)) usage.output = output;
  if (has(reasoning)) usage.reasoning = reasoning;
  if (has(cachedInput)) usage.cachedInput = cachedInput;
  return usage;
}

function serverOf(c: readonly Numbers[], row: number): ServerTimes | undefined {
  const queue = c[SLOT.server_queue_ms]![row]!;
  const prefill = c[SLOT.server_prefill_ms]![row]!;
  const decode = c[SLOT.server_decode_ms]![row]!;
  const e2e = c[SLOT.server_e2e_ms]![row]!;
  const load = c[SLOT.server_load_ms]![row]!;
  if (!has(queue) && !has(prefill) && !has(decode) && !has(e2e) && !has(load)) return undefined;
  const server: Mutable<ServerTimes> = {};
  if (has(queue)) server.queue = queue;
  if (has(prefill)) server.prefill = prefill;
  if (has(decode)) server.decode = decode;
  if (has(e2e)) server.e2e = e2e;
  if (has(load)) server.load = load;
  return server;
}
