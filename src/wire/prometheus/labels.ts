/**
 * Labels as they were written, each text read once: replicas and buckets repeat them thousands of times. A bucket's `le` is
 * taken out first, so that the buckets of a series share one reading.
 */
import { boundOf, type Labels } from './family.ts';

/** Labels without `le`: what tells the series of a histogram apart. Equal labels in any order are one object in a table. */
export interface Series {
  readonly labels: Labels;
  readonly id: number;
}

export interface LabelSet {
  readonly series: Series;
  readonly le?: string;
  /** What `le` says, where there is one; NaN where it is no number. */
  readonly bound?: number;
}

/** Beyond this many the table begins anew: hostile text must not fill the memory. */
const MOST = 200_000;
const NAME = /^[a-zA-Z_][\w.]*$/;

export class LabelTable {
  readonly none: LabelSet = { series: { labels: {}, id: 0 } };
  readonly #sets = new Map<string, LabelSet>();
  readonly #texts = new Map<string, Series>();
  readonly #keys = new Map<string, Series>([['', this.none.series]]);
  readonly #bounds = new Map<string, number>();
  readonly #names = new Set<string>();
  #next = 1;

  /** Call between texts: what is read of one text stays comparable. */
  prune(): void {
    if (this.#sets.size < MOST && this.#texts.size < MOST && this.#keys.size < MOST) return;
    for (const map of [this.#sets, this.#texts, this.#keys, this.#bounds, this.#names]) map.clear();
    this.#keys.set('', this.none.series);
  }

  /** `{a="b",le="1"}`, undefined where the plain form does not hold: escapes, blanks, quoted names, errors. */
  read(text: string): LabelSet | undefined {
    const known = this.#sets.get(text);
    if (known !== undefined) return known;
    if (text.includes('\\')) return undefined;
    const at = text.indexOf('le="');
    const before = at < 1 ? '' : text.charAt(at - 1);
    if ((before === ',' || before === '{') && isOutside(text, at)) {
      const end = text.indexOf('"', at + 4);
      const after = text.charAt(end + 1);
      if (end < 0 || (after !== ',' && after !== '}')) return undefined;
      const rest =
        before === ',' ? text.slice(0, at - 1) + text.slice(end + 1) : `{${text.slice(end + (after === ',' ? 2 : 1))}`;
      const series = this.#series(rest);
      if (series === undefined || Object.hasOwn(series.labels, 'le')) return undefined;
      const le = text.slice(at + 4, end);
      const set = { series, le, bound: this.#bound(le) };
      this.#sets.set(text, set);
      return set;
    }
    const series = this.#series(text);
    if (series === undefined || Object.hasOwn(series.labels, 'le')) return undefined;
    const set = { series };
    this.#sets.set(text, set);
    return set;
  }

  /** The set of labels that were read otherwise. */
  of({ le, ...labels }: Labels): LabelSet {
    const series = this.#intern(labels);
    return le === undefined ? { series } : { series, le, bound: this.#bound(le) };
  }

  #bound(le: string): number {
    let bound = this.#bounds.get(le);
    if (bound === undefined) {
      bound = boundOf(le);
      if (this.#bounds.size < MOST) this.#bounds.set(le, bound);
    }
    return bound;
  }

  #series(text: string): Series | undefined {
    let series = this.#texts.get(text);
    if (series === undefined) {
      const labels = this.#plain(text);
      if (labels === undefined) return undefined;
      series = this.#intern(labels);
      this.#texts.set(text, series);
    }
    return series;
  }

  #plain(text: string): Labels | undefined {
    const labels: Record<string, string> = {};
    const last = text.length - 1;
    for (let from = 1; from < last; ) {
      const equals = text.indexOf('="', from);
      if (equals < 0) return undefined;
      const name = text.slice(from, equals);
      if (!this.#names.has(name)) {
        if (!NAME.test(name)) return undefined;
        if (this.#names.size < MOST) this.#names.add(name);
      }
      const end = text.indexOf('"', equals + 2);
      if (end < 0 || end >= last || Object.hasOwn(labels, name)) return undefined;
      if (end + 1 !== last && text.charCodeAt(end + 1) !== 44) return undefined;
      labels[name] = text.slice(equals + 2, end);
      from = end + 2;
    }
    return labels;
  }

  #intern(labels: Labels): Series {
    const names = Object.keys(labels);
    for (let i = 1; i < names.length; i++) {
      if (names[i]! < names[i - 1]!) {
        names.sort();
        break;
      }
    }
    let key = '';
    for (const name of names) key += `${name.length} ${labels[name]!.length} ${name}${labels[name]}`;
    let series = this.#keys.get(key);
    if (series === undefined) {
      series = { labels, id: this.#next++ };
      this.#keys.set(key, series);
    }
    return series;
  }
}

/** Not within quotes: an even number of them stands before. */
function isOutside(text: string, at: number): boolean {
  let quotes = 0;
  for (let i = text.indexOf('"'); i >= 0 && i < at; i = text.indexOf('"', i + 1)) quotes++;
  return quotes % 2 === 0;
}
