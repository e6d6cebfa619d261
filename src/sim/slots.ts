/** Requests inside a replica as columns, so that a step touches no objects. A slot is reused after its request is over. */
import type { Millis } from '../base/units.ts';
import type { RequestSpec } from '../core/request.ts';
import type { Stint } from './cluster.ts';
import type { Held } from './prefix-index.ts';

export const FREE = 0;
export const WAITING = 1;
export const PREFILL = 2;
export const DECODE = 3;
/** Cancelled while it waited: leaves when the queue comes to it. */
export const GONE = 4;

/** Handles carry the slot in their low bits and its use above, so that a stale one is told. */
const SLOT_SPAN = 2 ** 21;

const NONE = -1;

export class Slots {
  #capacity = 0;
  #free: number[] = [];
  spec: (RequestSpec | undefined)[] = [];
  stints: (Stint[] | undefined)[] = [];
  /** Cached prefix it holds in the KV pool. */
  held: (Held | undefined)[] = [];
  use = new Float64Array(0);
  state = new Uint8Array(0);
  /** Cancelled while running: leaves at the end of the step. */
  aborted = new Uint8Array(0);
  /** Its prompt was computed elsewhere: it joins the decodes at once. */
  ready = new Uint8Array(0);
  arrived = new Float64Array(0);
  scheduled = new Float64Array(0);
  firstToken = new Float64Array(0);
  /** Tokens to put through before the next token can be sampled, and how many are. */
  target = new Int32Array(0);
  computed = new Int32Array(0);
  /** Output tokens wanted, and got (while decoding: `genBase + step`). */
  output = new Int32Array(0);
  generated = new Int32Array(0);
  genBase = new Float64Array(0);
  /** While decoding, tokens in KV = `kvBase + step`. */
  kvBase = new Float64Array(0);
  /** Completed-step count at which the last token comes. */
  finishStep = new Float64Array(0);
  /** KV blocks of its own (held cached ones apart); while decoding derived from the tokens in KV. */
  blocks = new Int32Array(0);
  heldBlocks = new Int32Array(0);
  preemptions = new Int32Array(0);
  cached = new Int32Array(0);
  /** Where the current stint of tokens begins in the log. */
  segment = new Float64Array(0);
  fromStep = new Float64Array(0);
  /** Batch in order of admission, a doubly linked list. */
  before = new Int32Array(0);
  after = new Int32Array(0);
  first = NONE;
  last = NONE;

  get capacity(): number {
    return this.#capacity;
  }

  open(spec: RequestSpec, t: Millis): number {
    const slot = this.#free.pop() ?? this.#grow();
    this.spec[slot] = spec;
    this.stints[slot] = undefined;
    this.held[slot] = undefined;
    this.use[slot]!++;
    this.state[slot] = WAITING;
    this.aborted[slot] = 0;
    this.ready[slot] = 0;
    this.arrived[slot] = t;
    this.scheduled[slot] = Number.NaN;
    this.firstToken[slot] = Number.NaN;
    this.target[slot] = Math.max(1, spec.inputTokens);
    this.computed[slot] = 0;
    this.output[slot] = Math.max(1, spec.outputTokens);
    this.generated[slot] = 0;
    this.blocks[slot] = 0;
    this.heldBlocks[slot] = 0;
    this.preemptions[slot] = 0;
    this.cached[slot] = 0;
    this.segment[slot] = Number.POSITIVE_INFINITY;
    return slot;
  }

  close(slot: number): void {
    this.state[slot] = FREE;
    this.spec[slot] = undefined;
    this.stints[slot] = undefined;
    this.#free.push(slot);
  }

  handle(slot: number): number {
    return this.use[slot]! * SLOT_SPAN + slot;
  }

  /** The slot of a handle, −1 when its request is over. */
  find(handle: number): number {
    const slot = handle % SLOT_SPAN;
    return slot < this.#capacity && this.state[slot] !== FREE && this.handle(slot) === handle ? slot : NONE;
  }

  append(slot: number): void {
    this.before[slot] = this.last;
    this.after[slot] = NONE;
    if (this.last === NONE) this.first = slot;
    else this.after[this.last] = slot;
    this.last = slot;
  }

  remove(slot: number): void {
    const b = this.before[slot]!;
    const a = this.after[slot]!;
    if (b === NONE) this.first = a;
    else this.after[b] = a;
    if (a === NONE) this.last = b;
    else this.before[a] = b;
  }

  #grow(): number {
    const old = this.#capacity;
    const capacity = Math.max(64, old * 2);
    if (capacity > SLOT_SPAN) throw new Error('internal: more requests in flight than a replica can name');
    const f64 = (from: Float64Array): Float64Array<ArrayBuffer> => {
      const to = new Float64Array(capacity);
      to.set(from);
      return to;
    };
    const i32 = (from: Int32Array): Int32Array<ArrayBuffer> => {
      const to = new Int32Array(capacity);
      to.set(from);
      return to;
    };
    const u8 = (from: Uint8Array): Uint8Array<ArrayBuffer> => {
      const to = new Uint8Array(capacity);
      to.set(from);
      return to;
    };
    this.use = f64(this.use);
    this.state = u8(this.state);
    this.aborted = u8(this.aborted);
    this.ready = u8(this.ready);
    this.arrived = f64(this.arrived);
    this.scheduled = f64(this.scheduled);
    this.firstToken = f64(this.firstToken);
    this.target = i32(this.target);
    this.computed = i32(this.computed);
    this.output = i32(this.output);
    this.generated = i32(this.generated);
    this.genBase = f64(this.genBase);
    this.kvBase = f64(this.kvBase);
    this.finishStep = f64(this.finishStep);
    this.blocks = i32(this.blocks);
    this.heldBlocks = i32(this.heldBlocks);
    this.preemptions = i32(this.preemptions);
    this.cached = i32(this.cached);
    this.segment = f64(this.segment);
    this.fromStep = f64(this.fromStep);
    this.before = i32(this.before);
    this.after = i32(this.after);
    for (let i = capacity - 1; i > old; i--) this.#free.push(i);
    this.#capacity = capacity;
    return old;
  }
}
