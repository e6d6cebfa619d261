/** A trace: when requests arrived elsewhere, and how long they were. Held in columns, some 20 bytes a request. */
import { InputError } from '../../base/errors.ts';
import type { Micros } from '../../base/units.ts';
import { MAX_LENGTH } from '../lengths.ts';

export interface Trace {
  /** The file, for people. */
  readonly name: string;
  readonly format: string;
  readonly length: number;
  /** Whole microseconds since the first request, ascending. */
  readonly at: Float64Array;
  readonly input: Int32Array;
  readonly output: Int32Array;
  /** Names of classes, and the class of each request. */
  readonly classes: readonly string[];
  readonly classOf: Uint8Array;
  /** Hashes of the prompt's leading blocks: those of request i are `ids[offsets[i]] … ids[offsets[i + 1] − 1]`. */
  readonly blocks?: { readonly offsets: Uint32Array; readonly ids: Float64Array; readonly tokens: number };
  /** Conversations: which session each request is a turn of (−1: of none). Only where they were asked for. */
  readonly sessions?: TraceSessions;
  /** What a user must know of how it was read. */
  readonly notes: readonly string[];
}

export interface TraceSessions {
  readonly of: Int32Array;
  /** Microseconds from the arrival to the end of the answer, where the trace ran; NaN: not told. */
  readonly elapsed: Float64Array;
}

/** More requests than this do not fit the memory allowed. */
export const MAX_REQUESTS = 20_000_000;
const MAX_CLASSES = 255;

/** Requests `[from, to)`, counted or by time since the first. */
export interface Slice {
  readonly by: 'count' | 'time';
  /** Requests, or microseconds. */
  readonly from: number;
  readonly to: number;
}

export interface TraceOptions {
  readonly slice?: Slice;
  /** Keep which session each request is of, where the format tells. */
  readonly sessions?: boolean;
}

/** What a request is besides its arrival and lengths. */
export interface RequestFacts {
  readonly class?: string | undefined;
  readonly blocks?: readonly number[];
  readonly blockTokens?: number;
  /** Its session's name, and how long it took there in microseconds. */
  readonly session?: string | undefined;
  readonly elapsed?: Micros | undefined;
}

/** Grows a trace request by request. Arrivals may come out of order; they are sorted at the end. */
export class TraceBuilder {
  readonly #name: string;
  readonly #format: string;
  readonly #slice: Slice | undefined;
  readonly #ordered: boolean;
  #at = new Float64Array(1024);
  #input = new Int32Array(1024);
  #output = new Int32Array(1024);
  #classOf = new Uint8Array(1024);
  #classes = new Map<string, number>();
  #offsets: Uint32Array | undefined;
  #ids = new Float64Array(0);
  #idCount = 0;
  #blockTokens = 0;
  #sessions: Map<string, number> | undefined;
  #sessionOf = new Int32Array(0);
  #elapsed = new Float64Array(0);
  #length = 0;
  #seen = 0;
  #first: Micros | undefined;
  #short = 0;
  #unasked = 0;
  readonly notes: string[] = [];

  /** @param ordered the format is written in order of arrival, so a slice can end the reading early. */
  constructor(name: string, format: string, options: TraceOptions = {}, ordered = true) {
    this.#name = name;
    this.#format = format;
    this.#slice = options.slice;
    this.#ordered = ordered;
    if (options.sessions) {
      this.#sessions = new Map();
      this.#sessionOf = new Int32Array(this.#at.length);
      this.#elapsed = new Float64Array(this.#at.length);
    }
  }

  /**
   * @param at microseconds, of any origin. @param where `FILE:LINE`, for errors.
   * @returns false once the slice is complete: nothing later is needed.
   */
  add(at: Micros, input: number, output: number, where: string, facts: RequestFacts = {}): boolean {
    if (input !== 0) length(input, 'input', where);
    if (output !== 0) length(output, 'output', where);
    if (!Number.isFinite(at)) throw new InputError(`${where}: the arrival time is not a number`);
    this.#first ??= at;
    const seen = this.#seen++;
    const slice = this.#slice;
    if (slice && this.#ordered) {
      const x = slice.by === 'count' ? seen : at - this.#first;
      // Arrivals may be a little out of order; a second's slack loses none of the slice.
      if (x >= slice.to + (slice.by === 'time' ? 1e6 : 0)) return false;
      if (x < slice.from || x >= slice.to) return true;
    }
    if (this.#length >= MAX_REQUESTS) {
      throw new InputError(`${where}: more than ${MAX_REQUESTS} requests; take a part of them with --slice`);
    }
    if (this.#length === this.#at.length) this.#grow();
    const i = this.#length++;
    if (input === 0) this.#unasked++;
    if (output === 0) this.#short++;
    this.#at[i] = at;
    this.#input[i] = Math.max(1, input);
    this.#output[i] = Math.max(1, output);
    this.#classOf[i] = this.#class(facts.class ?? 'default', where);
    if (this.#sessions) {
      this.#sessionOf[i] = this.#session(facts.session);
      this.#elapsed[i] = facts.elapsed ?? Number.NaN;
    }
    if (facts.blocks) this.#blocks(i, facts.blocks, facts.blockTokens ?? 0);
    else if (this.#offsets) this.#offsets.fill(this.#idCount, i, i + 2);
    return true;
  }

  /** @throws InputError when there is nothing to replay. */
  finish(): Trace {
    const n = this.#length;
    if (n === 0) {
      throw new InputError(
        `${this.#name}: ${this.#seen === 0 ? 'holds no request' : 'the slice holds no request'}; nothing to replay`,
      );
    }
    if (this.#short > 0) {
      this.notes.push(`${this.#short} requests with no output in the trace are asked for 1 token`);
    }
    if (this.#unasked > 0) {
      this.notes.push(`${this.#unasked} requests with no prompt tokens in the trace are asked with 1 token`);
    }
    if (this.#sessions?.size === 0) {
      throw new InputError(
        `${this.#name}: names no sessions (${this.#format}); replay it without them, each request at its own time`,
      );
    }
    let trace = this.#columns(n);
    if (!ascending(trace.at)) trace = sorted(trace);
    if (this.#slice && !this.#ordered) trace = sliced(trace, this.#slice, this.#name);
    const first = trace.at[0] as number;
    return { ...trace, at: trace.at.map((x) => x - first) };
  }

  #columns(n: number): Trace {
    const offsets = this.#offsets;
    if (offsets) offsets.fill(this.#idCount, n);
    return {
      name: this.#name,
      format: this.#format,
      length: n,
      at: this.#at.slice(0, n),
      input: this.#input.slice(0, n),
      output: this.#output.slice(0, n),
      classes: this.#classes.size === 0 ? ['default'] : [...this.#classes.keys()],
      classOf: this.#classOf.slice(0, n),
      ...(offsets && {
        blocks: {
          offsets: offsets.slice(0, n + 1),
          ids: this.#ids.slice(0, this.#idCount),
          tokens: this.#blockTokens,
        },
      }),
      ...(this.#sessions && {
        sessions: { of: this.#sessionOf.slice(0, n), elapsed: this.#elapsed.slice(0, n) },
      }),
      notes: this.notes,
    };
  }

  #session(name: string | undefined): number {
    const sessions = this.#sessions as Map<string, number>;
    if (name === undefined) return -1;
    let number = sessions.get(name);
    if (number === undefined) sessions.set(name, (number = sessions.size));
    return number;
  }

  #class(name: string, where: string): number {
    const known = this.#classes.get(name);
    if (known !== undefined) return known;
    if (this.#classes.size >= MAX_CLASSES) throw new InputError(`${where}: more than ${MAX_CLASSES} classes`);
    this.#classes.set(name, this.#classes.size);
    return this.#classes.size - 1;
  }

  #blocks(i: number, ids: readonly number[], tokens: number): void {
    this.#blockTokens = tokens;
    this.#offsets ??= new Uint32Array(this.#at.length + 1);
    this.#offsets[i] = this.#idCount;
    const need = this.#idCount + ids.length;
    if (need > this.#ids.length) {
      const grown = new Float64Array(Math.max(need, 2 * this.#ids.length));
      grown.set(this.#ids);
      this.#ids = grown;
    }
    for (const id of ids) this.#ids[this.#idCount++] = id;
    this.#offsets[i + 1] = this.#idCount;
  }

  #grow(): void {
    const size = 2 * this.#at.length;
    this.#at = copied(new Float64Array(size), this.#at);
    this.#input = copied(new Int32Array(size), this.#input);
    this.#output = copied(new Int32Array(size), this.#output);
    this.#classOf = copied(new Uint8Array(size), this.#classOf);
    if (this.#offsets) this.#offsets = copied(new Uint32Array(size + 1), this.#offsets);
    if (this.#sessions) {
      this.#sessionOf = copied(new Int32Array(size), this.#sessionOf);
      this.#elapsed = copied(new Float64Array(size), this.#elapsed);
    }
  }
}

function copied<T extends Float64Array | Int32Array | Uint8Array | Uint32Array>(to: T, from: T): T {
  to.set(from);
  return to;
}

function length(n: number, what: string, where: string): void {
  if (!Number.isInteger(n) || n < 1 || n > MAX_LENGTH) {
    throw new InputError(`${where}: ${what} length ${n} is not a whole number from 1 to ${MAX_LENGTH}`);
  }
}

function ascending(x: Float64Array): boolean {
  for (let i = 1; i < x.length; i++) if (x[i]! < x[i - 1]!) return false;
  return true;
}

/** The trace in the order of arrival; requests of one instant keep their order. */
export function sorted(trace: Trace): Trace {
  const order = Uint32Array.from(trace.at.keys()).sort((a, b) => trace.at[a]! - trace.at[b]! || a - b);
  return picked(trace, order);
}

/** The requests `order` names, in that order. */
export function picked(trace: Trace, order: Uint32Array): Trace {
  const { blocks } = trace;
  let moved: Trace['blocks'];
  if (blocks) {
    const offsets = new Uint32Array(order.length + 1);
    let total = 0;
    order.forEach((from, i) => {
      offsets[i] = total;
      total += blocks.offsets[from + 1]! - blocks.offsets[from]!;
    });
    offsets[order.length] = total;
    const ids = new Float64Array(total);
    order.forEach((from, i) => {
      ids.set(blocks.ids.subarray(blocks.offsets[from], blocks.offsets[from + 1]), offsets[i]);
    });
    moved = { offsets, ids, tokens: blocks.tokens };
  }
  return {
    ...trace,
    length: order.length,
    at: Float64Array.from(order, (i) => trace.at[i]!),
    input: Int32Array.from(order, (i) => trace.input[i]!),
    output: Int32Array.from(order, (i) => trace.output[i]!),
    classOf: Uint8Array.from(order, (i) => trace.classOf[i]!),
    ...(moved && { blocks: moved }),
    ...(trace.sessions && {
      sessions: {
        of: Int32Array.from(order, (i) => trace.sessions!.of[i]!),
        elapsed: Float64Array.from(order, (i) => trace.sessions!.elapsed[i]!),
      },
    }),
  };
}

function sliced(trace: Trace, slice: Slice, name: string): Trace {
  const first = trace.at[0] as number;
  const order = Uint32Array.from(trace.at.keys()).filter((i) => {
    const x = slice.by === 'count' ? i : trace.at[i]! - first;
    return x >= slice.from && x < slice.to;
  });
  if (order.length === 0) throw new InputError(`${name}: the slice holds no request; nothing to replay`);
  return picked(trace, order);
}

/** Length of a trace as a window for rates: span·N/(N−1), whole microseconds; a second for a lone request. */
export function traceSpan(trace: Pick<Trace, 'length' | 'at'>): Micros {
  const n = trace.length;
  const span = trace.at[n - 1] as number;
  return n < 2 || span === 0 ? 1e6 : Math.round((span * n) / (n - 1));
}
