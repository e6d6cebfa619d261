/**
 * Work that need not delay a byte on its way: what is to be recorded of the traffic. The path notes it here, with its
 * stamps, and goes on; it is done after the reads of the event loop's turn, a slice at a time and not in the midst of a
 * burst, so that bytes and requests that came meanwhile go first. Bounded: when the notes are full, each new one first does
 * an old one.
 */
import type { Millis } from '../../base/units.ts';

/** Takes the data of one read, in order. `bytes` are valid during the call. */
export interface ReadSink {
  read(bytes: Buffer, t: Millis, written: Millis): void;
}

/** Data of reads that wait; a token event is a few hundred bytes. */
const ARENA_BYTES = 1 << 20;
const MOST_NOTES = 8192;
/** So long a slice of the work holds the event loop. */
const SLICE: Millis = 0.3;
/** The clock is read once in so many notes. */
const LOOK = 8;
/** More notes than this in one turn are a burst: what follows it goes first, for so many turns at most. */
const BURST = 2;
const MOST_TURNS = 16;

export class Later {
  readonly #now: () => Millis;
  readonly #defect: () => void;
  readonly #schedule: (run: () => void) => void;
  readonly #arena: Buffer;
  /** A ring; the oldest note at `#first`. A sink's note has data `[#from, #to)` in the arena. */
  readonly #notes: (ReadSink | (() => void) | undefined)[];
  readonly #from: Int32Array;
  readonly #to: Int32Array;
  readonly #at: Float64Array;
  readonly #written: Float64Array;
  #first = 0;
  #count = 0;
  /** Where the next data goes. */
  #end = 0;
  #scheduled = false;
  /** Notes of this turn, and turns that did none of the work. */
  #fresh = 0;
  #turnsLeft = MOST_TURNS;

  /**
   * @param now any monotonic clock.
   * @param defect told when a note threw: it is lost, the others are done.
   * @param schedule runs something once the loop has looked for input.
   */
  constructor(
    now: () => Millis,
    defect: () => void,
    schedule: (run: () => void) => void = setImmediate,
    bounds: { readonly notes?: number; readonly bytes?: number } = {},
  ) {
    const notes = bounds.notes ?? MOST_NOTES;
    this.#now = now;
    this.#defect = defect;
    this.#schedule = schedule;
    this.#arena = Buffer.allocUnsafeSlow(bounds.bytes ?? ARENA_BYTES);
    this.#notes = new Array(notes).fill(undefined);
    this.#from = new Int32Array(notes);
    this.#to = new Int32Array(notes);
    this.#at = new Float64Array(notes);
    this.#written = new Float64Array(notes);
  }

  get waiting(): number {
    return this.#count;
  }

  do(run: () => void): void {
    while (this.#count === this.#notes.length) this.#one();
    const i = this.#next(run);
    this.#from[i] = this.#to[i] = this.#end;
  }

  /** Notes the data of one read: `[from, to)` pairs in `ranges`, `count` numbers of them. They are copied. */
  read(sink: ReadSink, bytes: Buffer, ranges: readonly number[], count: number, t: Millis, written: Millis): void {
    let size = 0;
    for (let i = 0; i < count; i += 2) size += ranges[i + 1]! - ranges[i]!;
    if (size === 0) return;
    if (size >= this.#arena.length) {
      this.drain();
      try {
        for (let i = 0; i < count; i += 2) sink.read(bytes.subarray(ranges[i]!, ranges[i + 1]!), t, written);
      } catch {
        this.#defect();
      }
      return;
    }
    while (this.#count === this.#notes.length) this.#one();
    const start = this.#room(size);
    let at = start;
    for (let i = 0; i < count; i += 2) at += bytes.copy(this.#arena, at, ranges[i]!, ranges[i + 1]!);
    const i = this.#next(sink);
    this.#from[i] = start;
    this.#to[i] = at;
    this.#at[i] = t;
    this.#written[i] = written;
    this.#end = at;
  }

  /** Does everything noted so far: before anyone asks how things stand. */
  drain(): void {
    for (let left = this.#count; left > 0; left--) this.#one();
  }

  #next(what: ReadSink | (() => void)): number {
    const i = (this.#first + this.#count++) % this.#notes.length;
    this.#notes[i] = what;
    this.#fresh++;
    if (!this.#scheduled) {
      this.#scheduled = true;
      this.#schedule(this.#slice);
    }
    return i;
  }

  /** Where `size` bytes fit. Data never fill the arena wholly, so that `#end` tells full from empty. */
  #room(size: number): number {
    for (;;) {
      if (this.#count === 0) return 0;
      const oldest = this.#from[this.#first] as number;
      if (this.#end >= oldest) {
        if (this.#end + size <= this.#arena.length) return this.#end;
        if (size < oldest) return 0;
      } else if (this.#end + size < oldest) return this.#end;
      this.#one();
    }
  }

  readonly #slice = (): void => {
    this.#scheduled = false;
    const isBurst = this.#fresh > BURST && 2 * this.#count < this.#notes.length;
    this.#fresh = 0;
    if (isBurst && this.#turnsLeft-- > 0) {
      this.#scheduled = true;
      this.#schedule(this.#slice);
      return;
    }
    this.#turnsLeft = MOST_TURNS;
    const until = this.#now() + SLICE;
    for (let left = this.#count, n = 1; left > 0; left--, n++) {
      this.#one();
      if (n % LOOK === 0 && this.#now() >= until) break;
    }
    if (this.#count > 0 && !this.#scheduled) {
      this.#scheduled = true;
      this.#schedule(this.#slice);
    }
  };

  #one(): void {
    const i = this.#first;
    const what = this.#notes[i];
    if (this.#count === 0 || what === undefined) return;
    this.#notes[i] = undefined;
    this.#first = i + 1 === this.#notes.length ? 0 : i + 1;
    this.#count--;
    try {
      // Nothing is read from a socket meanwhile, so what lies at its place in the arena stays there.
      if (typeof what === 'function') what();
      else what.read(this.#arena.subarray(this.#from[i], this.#to[i]), this.#at[i]!, this.#written[i]!);
    } catch {
      this.#defect();
    }
  }
}
