/**
 * Records as columns: what travels to the writing thread. Built as records come, a few microseconds each, so that a flush
 * has nothing left to encode; the buffers are handed over, not copied.
 */
import type { Millis } from '../base/units.ts';
import { OUTCOMES } from '../core/outcome.ts';
import { type RequestRecord, STAMPS } from '../core/record.ts';
import { FINISHES, NUMBERS, PHASES, SLOT, TEXTS } from './columns.ts';

/** Rows a batch: larger data chunks block longer without being faster. */
export const BATCH_ROWS = 256;

type ListArray =
  | Float64Array<ArrayBuffer>
  | Int32Array<ArrayBuffer>
  | Uint8Array<ArrayBuffer>
  | Uint16Array<ArrayBuffer>;

/** One list column: row i owns `values[ends[i−1] … ends[i])`. */
export interface ListBatch {
  readonly values: ListArray;
  readonly ends: Uint32Array<ArrayBuffer>;
}

export interface Batch {
  readonly rows: number;
  /** Number columns one after the other, `BATCH_ROWS` places each; NaN where missing. */
  readonly numbers: Float64Array<ArrayBuffer>;
  /** Text columns, in the order of `TEXTS`. */
  readonly texts: readonly (readonly (string | null)[])[];
  /** List columns, in the order of `LISTS`. */
  readonly lists: readonly ListBatch[];
}

/** Integer microseconds of a stamp that is on the microsecond grid. */
export const toMicros = (t: Millis): number => Math.round(t * 1000);

/** What a record weighs while it waits, bytes, nearly. */
export function weightOf(record: RequestRecord): number {
  return 8 * NUMBERS.length + 200 + 16 * record.timeline.length;
}

class ListBuilder<A extends ListArray> {
  #values: A;
  readonly #ends = new Uint32Array(BATCH_ROWS);
  #length = 0;

  constructor(start: A) {
    this.#values = start;
  }
  get length(): number {
    return this.#length;
  }
  /** Room for `n` more; writes through the returned array from the returned place on. */
  room(n: number): { values: A; from: number } {
    const from = this.#length;
    if (from + n > this.#values.length) {
      const make = this.#values.constructor as new (length: number) => A;
      const grown = new make(Math.max(2 * this.#values.length, from + n, 1024));
      grown.set(this.#values as never);
      this.#values = grown;
    }
    this.#length = from + n;
    return { values: this.#values, from };
  }
  /**
   * One value a chunk, shortened: nothing where all are `usual`, one where all are alike. A row of one chunk is the same
   * either way.
   */
  pushShortened(source: { readonly [i: number]: number }, n: number, usual: number): void {
    if (n === 0) return;
    const first = source[0]!;
    let alike = true;
    for (let i = 1; i < n && alike; i++) alike = source[i] === first;
    if (alike && first === usual) return;
    const count = alike ? 1 : n;
    const { values, from } = this.room(count);
    for (let i = 0; i < count; i++) values[from + i] = source[i]!;
  }
  endRow(row: number): void {
    this.#ends[row] = this.#length;
  }
  finish(): ListBatch {
    return { values: this.#values, ends: this.#ends };
  }
}

const STAMP_SLOT = SLOT.scheduled_us;

export class BatchBuilder {
  #rows = 0;
  readonly #numbers = new Float64Array(NUMBERS.length * BATCH_ROWS).fill(Number.NaN);
  readonly #texts: (string | null)[][] = TEXTS.map(() => []);
  readonly #us: ListBuilder<Float64Array<ArrayBuffer>>;
  readonly #tokens = new ListBuilder(new Int32Array(0));
  readonly #kind = new ListBuilder(new Uint8Array(0));
  readonly #choice = new ListBuilder(new Uint16Array(0));

  /** @param chunks how many the batch will hold, as a guess (the last one's `chunks`): growing copies. */
  constructor(chunks: number) {
    this.#us = new ListBuilder(new Float64Array(chunks));
  }

  get rows(): number {
    return this.#rows;
  }
  get chunks(): number {
    return this.#us.length;
  }
  get isFull(): boolean {
    return this.#rows === BATCH_ROWS;
  }

  add(r: RequestRecord): void {
    const row = this.#rows++;
    const { asked, stamps, usage, server, connection, timeline } = r;
    this.#set(row, SLOT.operation, r.operation);
    this.#set(row, SLOT.attempt, r.attempt);
    this.#set(row, SLOT.attempts, r.attempts);
    this.#set(row, SLOT.lost_hedge, +r.lostHedge);
    this.#set(row, SLOT.session, r.session);
    this.#set(row, SLOT.turn, r.turn);
    this.#set(row, SLOT.asked_input, asked.input);
    this.#set(row, SLOT.asked_output, asked.output);
    this.#set(row, SLOT.asked_choices, asked.choices);
    this.#set(row, SLOT.asked_stream, +asked.stream);
    for (let i = 0; i < STAMPS.length; i++) {
      const at = stamps[STAMPS[i]!];
      if (at !== undefined) this.#set(row, STAMP_SLOT + i, toMicros(at));
    }
    if (connection) this.#set(row, SLOT.connection_reused, +connection.reused);
    this.#set(row, SLOT.status, r.status);
    this.#set(row, SLOT.streamed, +r.streamed);
    if (usage) {
      this.#set(row, SLOT.usage_input, usage.input);
      this.#set(row, SLOT.usage_output, usage.output);
      this.#set(row, SLOT.usage_reasoning, usage.reasoning);
      this.#set(row, SLOT.usage_cached_input, usage.cachedInput);
    }
    this.#set(row, SLOT.unseen_end_tokens, r.unseenEndTokens);
    this.#set(row, SLOT.tokenized, r.tokenized);
    this.#set(row, SLOT.outcome, OUTCOMES.indexOf(r.outcome));
    this.#set(row, SLOT.phase, PHASES.indexOf(r.phase));
    if (r.finish !== undefined) this.#set(row, SLOT.finish, FINISHES.indexOf(r.finish));
    this.#set(row, SLOT.implied_end, +r.impliedEnd);
    this.#set(row, SLOT.events, r.events);
    this.#set(row, SLOT.coalesced, r.coalesced);
    this.#set(row, SLOT.unclassified, r.unclassified);
    if (server) {
      this.#setFloat(row, SLOT.server_queue_ms, server.queue);
      this.#setFloat(row, SLOT.server_prefill_ms, server.prefill);
      this.#setFloat(row, SLOT.server_decode_ms, server.decode);
      this.#setFloat(row, SLOT.server_e2e_ms, server.e2e);
      this.#setFloat(row, SLOT.server_load_ms, server.load);
    }
    const { passage } = r;
    if (passage) {
      this.#setFloat(row, SLOT.queued_ms, passage.queued);
      if (passage.firstWritten !== undefined) this.#set(row, SLOT.first_written_us, toMicros(passage.firstWritten));
      if (passage.lastWritten !== undefined) this.#set(row, SLOT.last_written_us, toMicros(passage.lastWritten));
      this.#setFloat(row, SLOT.stalled_ms, passage.stalled);
    }
    const texts = [
      r.class,
      connection?.http,
      r.reason || null,
      r.detail || null,
      r.finishReason,
      r.model,
      passage?.tenant,
      passage?.upstream,
      passage?.requestId,
      passage?.traceId,
    ];
    for (let i = 0; i < texts.length; i++) this.#texts[i]!.push(texts[i] ?? null);

    const n = timeline.length;
    const start = toMicros(stamps.scheduled);
    const { values, from } = this.#us.room(n);
    for (let i = 0; i < n; i++) values[from + i] = toMicros(timeline.at[i]!) - start;
    this.#tokens.pushShortened(timeline.tokens, n, -1);
    this.#kind.pushShortened(timeline.kind, n, 0);
    this.#choice.pushShortened(timeline.choice, n, 0);
    this.#us.endRow(row);
    this.#tokens.endRow(row);
    this.#kind.endRow(row);
    this.#choice.endRow(row);
  }

  /** The batch; the builder must not be used afterwards. */
  finish(): Batch {
    return {
      rows: this.#rows,
      numbers: this.#numbers,
      texts: this.#texts,
      lists: [this.#us.finish(), this.#tokens.finish(), this.#kind.finish(), this.#choice.finish()],
    };
  }

  /** Integers only: a count that is not one (a server may say anything) is not stored. */
  #set(row: number, slot: number, value: number | undefined): void {
    if (Number.isSafeInteger(value)) this.#numbers[slot * BATCH_ROWS + row] = value as number;
  }
  #setFloat(row: number, slot: number, value: number | undefined): void {
    if (value !== undefined) this.#numbers[slot * BATCH_ROWS + row] = value;
  }
}

/** The buffers a batch hands over. */
export function buffersOf(batch: Batch): ArrayBuffer[] {
  return [batch.numbers.buffer, ...batch.lists.flatMap((list) => [list.values.buffer, list.ends.buffer])];
}
