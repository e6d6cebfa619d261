/**
 * Labels as they were written, each text kept once: replicas and buckets repeat them thousands of times. A bucket's `le` is
 * taken out first, so that the buckets of a series share one text. Labels are read from it when they are asked for.
 */
import { ByteTable, PRIME, SEED } from './byte-table.ts';
import type { Labels } from './family.ts';
import { readLabels } from './line.ts';

/** Beyond this many texts, or bytes of them, the table begins anew: hostile text must not fill the memory. */
const MOST = 200_000;
const MOST_BYTES = 64 * 1024 * 1024;
/** Bounds kept to be shared. */
const MOST_BOUNDS = 10_000;

const ENCODER = new TextEncoder();
const NOTHING = new Uint8Array(0);
const PLAIN_NAME = /^[a-zA-Z_][\w.]*$/;

/** Texts of one reader. Numbers of names and series stay the same until `prune`. */
export class LabelTable {
  readonly names = new ByteTable();
  readonly #sets = new ByteTable();
  /** By text: its series. Texts that say the same labels in another order are one. */
  #series = new Int32Array(256);
  readonly #labels: (Labels | undefined)[] = [];
  readonly #bounds = new Map<string, readonly number[]>();
  /** The series of no label. */
  readonly none: number;
  #room = new Float64Array(0);
  /** How many texts have been read: the numbers of one make room for those of the next. */
  texts = 0;

  constructor() {
    this.none = this.add(0, NOTHING, 0, 0, 0, 0);
  }

  /** Call between texts: what is read of one text stays comparable. */
  prune(): void {
    const held = this.names.size + this.#sets.size;
    if (held < MOST && this.names.bytes + this.#sets.bytes < MOST_BYTES) return;
    this.names.clear();
    this.#sets.clear();
    this.#room = new Float64Array(0);
    this.#labels.length = 0;
    this.add(0, NOTHING, 0, 0, 0, 0);
  }

  /** Room for the numbers of the text that is read next: at least so many. */
  room(length: number): Float64Array {
    this.texts++;
    return length <= this.#room.length ? this.#room : (this.#room = new Float64Array(length));
  }

  /** More room, with what it holds. */
  moreRoom(): Float64Array {
    const more = new Float64Array(2 * this.#room.length);
    more.set(this.#room);
    return (this.#room = more);
  }

  /** The series of labels that stand in [from, to) and [from2, to2), without `le`, or −1. */
  find(hash: number, b: Uint8Array, from: number, to: number, from2: number, to2: number): number {
    const text = this.#sets.find(hash, b, from, to, from2, to2);
    return text < 0 ? -1 : this.#series[text]!;
  }

  /** What `find` did not find. @param hash the same for the same labels in any order. */
  add(hash: number, b: Uint8Array, from: number, to: number, from2: number, to2: number): number {
    const others = this.#sets.alike(hash);
    const text = this.#sets.add(hash, b, from, to, from2, to2);
    if (text === this.#series.length) {
      const more = new Int32Array(2 * text);
      more.set(this.#series);
      this.#series = more;
    }
    const same = others.find((other) => isSame(this.labels(this.#series[other]!), this.labels(text)));
    return (this.#series[text] = same === undefined ? text : this.#series[same]!);
  }

  /** The series of labels that were read otherwise; without `le`. */
  of(labels: Labels): number {
    let hash = 0;
    const parts: string[] = [];
    for (const [name, value] of Object.entries(labels)) {
      const told = [PLAIN_NAME.test(name) ? name : `"${escaped(name)}"`, escaped(value)] as const;
      hash = (hash + finished(hashOf([ENCODER.encode(told[0]), ENCODER.encode(told[1])]))) | 0;
      parts.push(`${told[0]}="${told[1]}"`);
    }
    const text = ENCODER.encode(parts.join(','));
    const known = this.find(hash, text, 0, text.length, 0, 0);
    return known < 0 ? this.add(hash, text, 0, text.length, 0, 0) : known;
  }

  labels(series: number): Labels {
    return (this.#labels[series] ??= readLabels(this.#sets.text(series)));
  }

  /** The bounds a family had last, for others of the same to share. */
  boundsOf(family: string): readonly number[] | undefined {
    return this.#bounds.get(family);
  }

  keepBounds(family: string, bounds: readonly number[]): void {
    if (this.#bounds.size < MOST_BOUNDS || this.#bounds.has(family)) this.#bounds.set(family, bounds);
  }
}

/** As a scan makes it of the same label: the name's bytes and the value's. */
function hashOf([name, value]: readonly [Uint8Array, Uint8Array]): number {
  let h = SEED;
  for (const c of name) h = Math.imul(h ^ c, PRIME);
  for (const c of value) h = Math.imul(h ^ c, PRIME);
  return h;
}

/** Ends a label's hash, so that the sum over labels tells their set. */
export function finished(h: number): number {
  let x = h;
  x = Math.imul(x ^ (x >>> 16), 0x85ebca6b);
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
  return x ^ (x >>> 16);
}

function escaped(text: string): string {
  return text.replace(/[\\"\n]/g, (c) => (c === '\n' ? '\\n' : `\\${c}`));
}

function isSame(a: Labels, b: Labels): boolean {
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => Object.hasOwn(b, name) && a[name] === b[name]);
}
