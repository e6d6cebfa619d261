/**
 * The sample lines of a body as columns: for each its name, its series, its bound and its value. Plain lines,
 * `name{label="value",…} number`, are read from the bytes without a string or an object each; all else, and all that is
 * wrong, goes to the reader of characters, which decides.
 */
import { PRIME, SEED } from './byte-table.ts';
import {
  BLANK,
  BRACE,
  boundIn,
  CLASS,
  COMMA,
  CR,
  END_BRACE,
  EQUALS,
  isAgain,
  LABEL_PART,
  LABEL_START,
  LF,
  MOST_DIGITS,
  MOST_LABELS,
  MOST_TEXT,
  NAME_PART,
  NAME_START,
  POINT,
  POWERS,
  QUOTE,
  quoteAfter,
  withoutComma,
} from './characters.ts';
import type { CompositeValue } from './composite.ts';
import { boundOf, type Exemplar, numberOf } from './family.ts';
import { finished, type LabelTable } from './labels.ts';
import { readSample } from './line.ts';

/** A name of the text. */
export interface ScannedName {
  readonly text: string;
  /** Some sample of it has a bound. */
  hasBound: boolean;
}

/** What few samples have: a timestamp, an exemplar, a bound written with escapes. */
export interface Extra {
  readonly le?: string;
  readonly timestamp?: number;
  readonly exemplar?: Exemplar;
}

/** A whole histogram in one line. */
export interface CompositeLine {
  /** The index of its name. */
  readonly name: number;
  readonly series: number;
  readonly line: number;
  readonly value: CompositeValue;
}

/** How a sample has its bound. */
const NO_BOUND = -1;
const IN_EXTRA = -2;

const DECODER = new TextDecoder();
const ENCODER = new TextEncoder();

/** What is kept of a sample: so many numbers, in this order. */
const FIELDS = 6;
const NAME = 0;
const SERIES = 1;
const BOUND = 2;
const VALUE = 3;
const LINE = 4;
/** Where `le` is written. */
const LE = 5;

/** The samples of a body, in the order of their lines. */
export class Scan {
  readonly #b: Uint8Array;
  readonly #table: LabelTable;
  #kept: Float64Array;
  rows = 0;
  readonly names: ScannedName[] = [];
  readonly composites: CompositeLine[] = [];
  readonly #extras = new Map<number, Extra>();
  readonly #seen = new Set<string>();
  /** By the table's number of a name: its index here, + 1. */
  #indexOf = new Int32Array(256);

  // Of the last sample: where its line, its bound and its value begin, and its bound ends.
  #start = 0;
  #le = NO_BOUND;
  #leEnd = 0;
  #value = 0;
  /** The number read last. */
  #read = 0;
  // Of the labels read last: how many, their hashes, their hash in any order; where the bound is cut out.
  #labels = 0;
  readonly #labelHashes = new Int32Array(MOST_LABELS);
  #set = 0;
  #cutFrom = 0;
  #cutTo = 0;

  constructor(bytes: Uint8Array, table: LabelTable) {
    this.#b = bytes;
    this.#table = table;
    this.#kept = table.room(((bytes.length >> 6) + 16) * FIELDS);
  }

  /** A sample of this name was read. */
  hasSeen(name: string): boolean {
    return this.#seen.has(name);
  }
  /** The index of a sample's name in `names`. */
  name(row: number): number {
    return this.#kept[row * FIELDS + NAME]!;
  }
  /** The table's number of its labels without `le`. */
  series(row: number): number {
    return this.#kept[row * FIELDS + SERIES]!;
  }
  /** What `le` says; NaN where there is none, or it is no number. */
  bound(row: number): number {
    return this.#kept[row * FIELDS + BOUND]!;
  }
  value(row: number): number {
    return this.#kept[row * FIELDS + VALUE]!;
  }
  line(row: number): number {
    return this.#kept[row * FIELDS + LINE]!;
  }
  extra(row: number): Extra | undefined {
    return this.#extras.get(row);
  }
  hasLe(row: number): boolean {
    return this.#kept[row * FIELDS + LE] !== NO_BOUND;
  }
  le(row: number): string | undefined {
    const at = this.#kept[row * FIELDS + LE]!;
    if (at === NO_BOUND) return undefined;
    if (at === IN_EXTRA) return this.#extras.get(row)!.le;
    return DECODER.decode(this.#b.subarray(at, this.#b.indexOf(QUOTE, at)));
  }

  /**
   * The buckets that follow the last line: the same bytes but for bound and value. Says where the first other line begins.
   * @param line of `from`.
   */
  buckets(from: number, line: number): number {
    const b = this.#b;
    let at = from;
    for (let n = line; this.#le >= 0; n++) {
      const before = this.#le - this.#start;
      if (!isAgain(b, this.#start, this.#le, at)) break;
      const le = at + before;
      const leEnd = quoteAfter(b, le);
      if (leEnd < 0 || !isAgain(b, this.#leEnd, this.#value, leEnd)) break;
      const value = leEnd + this.#value - this.#leEnd;
      const next = this.#number(value);
      if (next < 0) break;
      const own = this.#add();
      const kept = this.#kept;
      kept[own + NAME] = kept[own - FIELDS + NAME]!;
      kept[own + SERIES] = kept[own - FIELDS + SERIES]!;
      kept[own + BOUND] = boundIn(b, le, leEnd);
      kept[own + VALUE] = this.#read;
      kept[own + LINE] = n;
      kept[own + LE] = le;
      this.#start = at;
      this.#le = le;
      this.#leEnd = leEnd;
      this.#value = value;
      at = next;
    }
    return at;
  }

  /** Reads the line that begins at `from`, which is ended by a line feed. Says where the next one begins, or −1. */
  plain(from: number, line: number): number {
    const b = this.#b;
    if ((CLASS[b[from]!]! & NAME_START) === 0) return -1;
    let at = from;
    let hash = SEED;
    for (let c = b[at]!; (CLASS[c]! & NAME_PART) !== 0; c = b[++at]!) hash = Math.imul(hash ^ c, PRIME);
    const nameEnd = at;
    this.#le = NO_BOUND;
    let series = this.#table.none;
    if (b[at] === BRACE) {
      at = this.#labelsAt(nameEnd + 1);
      if (at < 0) return -1;
      series = this.#seriesOf(nameEnd + 1, at - 1);
      if (series < 0) return -1;
    }
    const next = b[at] === BLANK ? this.#number(at + 1) : -1;
    if (next < 0) {
      this.#le = NO_BOUND;
      return -1;
    }
    const name = this.#nameOf(hash, b, from, nameEnd);
    const le = this.#le;
    this.#keep(name, series, le === NO_BOUND ? Number.NaN : boundIn(b, le, this.#leEnd), this.#read, line, le);
    this.#start = from;
    this.#value = at + 1;
    return next;
  }

  #keep(name: number, series: number, bound: number, value: number, line: number, le: number): void {
    const own = this.#add();
    const kept = this.#kept;
    kept[own + NAME] = name;
    kept[own + SERIES] = series;
    kept[own + BOUND] = bound;
    kept[own + VALUE] = value;
    kept[own + LINE] = line;
    kept[own + LE] = le;
    if (le !== NO_BOUND) this.names[name]!.hasBound = true;
  }

  /** Reads labels up to their brace, and says what stands behind it; −1 where the plain form does not hold. */
  #labelsAt(from: number): number {
    const b = this.#b;
    let labels = 0;
    let set = 0;
    this.#cutFrom = from;
    this.#cutTo = from;
    for (let at = from; ; ) {
      let c = b[at]!;
      if (c === END_BRACE) {
        this.#labels = labels;
        this.#set = set;
        return at + 1;
      }
      if ((CLASS[c]! & LABEL_START) === 0 || labels === MOST_LABELS) break;
      const start = at;
      let hash = SEED;
      for (; (CLASS[c]! & LABEL_PART) !== 0; c = b[++at]!) hash = Math.imul(hash ^ c, PRIME);
      if (c !== EQUALS || b[at + 1] !== QUOTE) break;
      this.#labelHashes[labels] = hash;
      const isBound = at - start === 2 && b[start] === 108 && b[start + 1] === 101;
      const value = at + 2;
      at = quoteAfter(b, value);
      if (at < 0) break;
      if (isBound) {
        if (this.#le !== NO_BOUND) break;
        this.#le = value;
        this.#leEnd = at;
        this.#cutFrom = start;
      } else {
        for (let i = value; i < at; i++) hash = Math.imul(hash ^ b[i]!, PRIME);
        set = (set + finished(hash)) | 0;
        labels++;
      }
      c = b[++at]!;
      if (c === COMMA) at++;
      else if (c !== END_BRACE) break;
      if (isBound) this.#cutTo = at;
    }
    this.#le = NO_BOUND;
    return -1;
  }

  /** The series of the labels read last, [from, to) without their bound, or −1 where a name may stand twice. */
  #seriesOf(from: number, to: number): number {
    const b = this.#b;
    const isBound = this.#le !== NO_BOUND;
    const second = isBound ? this.#cutTo : to;
    const secondEnd = withoutComma(b, second, to);
    let firstEnd = isBound ? this.#cutFrom : to;
    if (second === secondEnd) firstEnd = withoutComma(b, from, firstEnd);
    if (from === firstEnd && second === secondEnd) return this.#table.none;
    const known = this.#table.find(this.#set, b, from, firstEnd, second, secondEnd);
    if (known >= 0) return known;
    const hashes = this.#labelHashes.subarray(0, this.#labels);
    if (hashes.some((hash, i) => hashes.indexOf(hash) < i)) {
      this.#le = NO_BOUND;
      return -1;
    }
    return this.#table.add(this.#set, b, from, firstEnd, second, secondEnd);
  }

  /** Reads the value that begins at `from`, and says where the next line begins; −1 where something else stands there. */
  #number(from: number): number {
    const b = this.#b;
    // Digits alone; any other number is left to Number().
    let whole = 0;
    let digits = 0;
    let point = -1;
    let at = from;
    let c = b[at]!;
    for (; ; c = b[++at]!) {
      if (c >= 48 && c <= 57) {
        whole = whole * 10 + (c - 48);
        digits++;
      } else if (c === POINT && point < 0) point = digits;
      else break;
    }
    if (digits === 0 || digits > MOST_DIGITS || c > BLANK) {
      at = from;
      let text = '';
      for (c = b[at]!; c > BLANK && at - from < MOST_TEXT; c = b[++at]!) text += String.fromCharCode(c);
      const other = numberOf(text);
      if (other === undefined) return -1;
      this.#read = other;
    } else this.#read = point < 0 ? whole : whole / POWERS[digits - point]!;
    if (c === CR) c = b[++at]!;
    return c === LF ? at + 1 : -1;
  }

  /** Reads any line. @throws LineError, after which nothing is added. */
  odd(text: string, line: number): void {
    const { name: told, labels, value, composite, timestamp, exemplar } = readSample(text);
    const { le, ...others } = labels;
    const bytes = ENCODER.encode(told);
    const hash = bytes.reduce((h, c) => Math.imul(h ^ c, PRIME), SEED);
    const name = this.#nameOf(hash, bytes, 0, bytes.length);
    const series = this.#table.of(others);
    this.#le = NO_BOUND;
    if (composite !== undefined) {
      this.composites.push({ name, series, line, value: composite });
      return;
    }
    this.#keep(
      name,
      series,
      le === undefined ? Number.NaN : boundOf(le),
      value,
      line,
      le === undefined ? NO_BOUND : IN_EXTRA,
    );
    if (le !== undefined || timestamp !== undefined || exemplar !== undefined) {
      this.#extras.set(this.rows - 1, {
        ...(le !== undefined && { le }),
        ...(timestamp !== undefined && { timestamp }),
        ...(exemplar !== undefined && { exemplar }),
      });
    }
  }

  #nameOf(hash: number, bytes: Uint8Array, from: number, to: number): number {
    const { names } = this.#table;
    let id = names.find(hash, bytes, from, to, 0, 0);
    if (id < 0) id = names.add(hash, bytes, from, to, 0, 0);
    const known = id < this.#indexOf.length ? this.#indexOf[id]! : 0;
    return known > 0 ? known - 1 : this.#newName(id);
  }

  #newName(id: number): number {
    if (id >= this.#indexOf.length) {
      const more = new Int32Array(2 * id);
      more.set(this.#indexOf);
      this.#indexOf = more;
    }
    const text = this.#table.names.text(id);
    this.#seen.add(text);
    this.#indexOf[id] = this.names.push({ text, hasBound: false });
    return this.names.length - 1;
  }

  /** Room for one more sample: where its numbers are kept. */
  #add(): number {
    const own = this.rows++ * FIELDS;
    if (own + FIELDS > this.#kept.length) this.#kept = this.#table.moreRoom();
    return own;
  }
}
