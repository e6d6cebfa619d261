/** Writes scrapes to rotating segments, bounded in size: the oldest go first. A full disk drops scrapes, and counts them. */
import {
  closeSync,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { InputError, messageOf, oneLine } from '../../base/errors.ts';
import { type Scrape, SEGMENT, scrapeText, segmentName, withComment } from './segments.ts';

export interface WriterOptions {
  /** Compressed bytes after which a segment is closed. */
  readonly segmentBytes?: number;
  /** Compressed bytes the folder may hold. */
  readonly maxBytes?: number;
}

const MIB = 1024 * 1024;
const zip = promisify(gzip);

export class ScrapeWriter {
  readonly folder: string;
  readonly #segmentBytes: number;
  readonly #maxBytes: number;
  #number: number;
  #file: number | undefined;
  #size = 0;
  #last: Promise<void> = Promise.resolve();
  /** Scrapes that could not be written, and why the last one could not. */
  dropped = 0;
  problem: string | undefined;
  /** Segments removed to keep the bound. */
  removed = 0;

  /** @throws InputError where the folder cannot be made. */
  constructor(folder: string, options: WriterOptions = {}) {
    this.folder = folder;
    this.#segmentBytes = options.segmentBytes ?? 8 * MIB;
    this.#maxBytes = options.maxBytes ?? 512 * MIB;
    try {
      mkdirSync(folder, { recursive: true });
      this.#number = Math.max(0, ...this.#segments().map(({ n }) => n));
    } catch (error) {
      throw new InputError(
        `${oneLine(folder)}: the scrapes cannot be kept there (${messageOf(error)}); choose another with --out DIR`,
        { cause: error },
      );
    }
  }

  /** In the order of the calls. Never rejects. */
  add(scrape: Scrape): Promise<void> {
    this.#last = this.#last.then(() => this.#write(scrape));
    return this.#last;
  }

  async close(): Promise<void> {
    await this.#last;
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }

  async #write(scrape: Scrape): Promise<void> {
    try {
      const member = withComment(await zip(scrapeText(scrape)));
      if (this.#file === undefined || this.#size + member.length > this.#segmentBytes) this.#rotate();
      const file = this.#file!;
      const before = fstatSync(file).size;
      try {
        for (let at = 0; at < member.length; ) at += writeSync(file, member, at);
        this.#size = before + member.length;
      } catch (error) {
        ftruncateSync(file, before); // what was half written would spoil what follows
        throw error;
      }
    } catch (error) {
      this.dropped++;
      this.problem = messageOf(error);
    }
  }

  #rotate(): void {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
    this.#file = openSync(join(this.folder, segmentName(this.#number + 1)), 'a');
    this.#number++;
    this.#size = 0;
    const all = this.#segments();
    let total = all.reduce((sum, { size }) => sum + size, 0);
    for (const { name, n, size } of all) {
      if (total + this.#segmentBytes <= this.#maxBytes || n === this.#number) break;
      unlinkSync(join(this.folder, name));
      total -= size;
      this.removed++;
    }
  }

  #segments(): { name: string; n: number; size: number }[] {
    return readdirSync(this.folder)
      .flatMap((name) => {
        const n = SEGMENT.exec(name)?.[1];
        return n === undefined ? [] : [{ name, n: Number(n), size: statSync(join(this.folder, name)).size }];
      })
      .sort((a, b) => a.n - b.n);
  }
}
