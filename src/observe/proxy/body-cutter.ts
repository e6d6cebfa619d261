/**
 * Follows the framing of a response body through the reads it comes in, without touching a byte: says which bytes may be
 * passed on as they are, where the data in them lies (for the decoder), and where the body ends. Of a chunked body all but
 * the last, empty chunk passes on with its own framing, so that nothing is copied and nothing is framed anew.
 */
import { BadResponse, type BodyLength } from './response-head.ts';

const CR = 13;
const LF = 10;
/** A chunk's size line with its extensions, and all trailers. */
const MAX_LINE = 4096;
const MAX_TRAILERS = 16 * 1024;

type State = 'size' | 'data' | 'after-data' | 'trailers' | 'done';

export class BodyCutter {
  readonly kind: BodyLength['kind'];
  /** Data of the last read: `[from, to)` pairs, `count` numbers of them valid. Reused from read to read. */
  readonly ranges: number[] = [];
  count = 0;
  /** Bytes that must be written before those of the last read: a size line that began in an earlier one. */
  before = '';
  done = false;
  /** Once done: the offset in the last read behind the body. */
  rest = 0;
  /** Name, value, …; of a chunked body, once done. */
  trailers: string[] = [];
  #left: number;
  #state: State = 'size';
  /** An unfinished size line, or the trailers so far. */
  #line = '';

  constructor(length: BodyLength) {
    this.kind = length.kind;
    this.#left = length.kind === 'length' ? length.bytes : 0;
    this.done = length.kind === 'none' || (length.kind === 'length' && length.bytes === 0);
  }

  /** Takes a read. Gives the offset up to which its bytes may be passed on as they are. @throws BadResponse */
  read(bytes: Uint8Array, from: number, to: number): number {
    this.count = 0;
    this.before = '';
    switch (this.kind) {
      case 'chunked':
        return this.#chunked(bytes, from, to);
      case 'close':
        this.#data(from, to);
        return to;
      case 'length': {
        const end = Math.min(to, from + this.#left);
        this.#data(from, end);
        this.#left -= end - from;
        if (this.#left === 0) {
          this.done = true;
          this.rest = end;
        }
        return end;
      }
      case 'none':
        this.rest = from;
        return from;
    }
  }

  #data(from: number, to: number): void {
    if (to <= from) return;
    this.ranges[this.count++] = from;
    this.ranges[this.count++] = to;
  }

  #chunked(bytes: Uint8Array, from: number, to: number): number {
    let i = from;
    /** Everything before it may go. */
    let pass = from;
    while (i < to) {
      switch (this.#state) {
        case 'data': {
          const end = Math.min(to, i + this.#left);
          this.#data(i, end);
          this.#left -= end - i;
          i = pass = end;
          if (this.#left > 0) return pass;
          this.#state = 'after-data';
          break;
        }
        case 'after-data': {
          const byte = bytes[i++];
          if (byte === LF) this.#state = 'size';
          else if (byte !== CR) throw new BadResponse('a chunk is longer than it says');
          pass = i;
          break;
        }
        case 'size': {
          let size = 0;
          let digits = 0;
          const start = i;
          if (this.#line === '') {
            // The usual case: the whole line in this read, and no extension.
            for (; i < to; i++) {
              const digit = HEX[bytes[i]!]!;
              if (digit < 0) break;
              size = size * 16 + digit;
              digits++;
            }
            if (digits > 0 && digits < 8 && bytes[i] === CR && i + 1 < to && bytes[i + 1] === LF) {
              i += 2;
              if (size === 0) {
                this.#state = 'trailers';
                break;
              }
              this.#left = size;
              this.#state = 'data';
              pass = i;
              break;
            }
            i = start;
          }
          const lf = bytes.indexOf(LF, i);
          const end = lf < 0 || lf >= to ? to : lf + 1;
          this.#line += latin1(bytes, i, end);
          if (this.#line.length > MAX_LINE) throw new BadResponse('a chunk has no end of its size line');
          i = end;
          if (this.#line.charCodeAt(this.#line.length - 1) !== LF) return pass;
          const line = this.#line;
          this.#line = '';
          this.#left = sizeOf(line);
          if (this.#left === 0) this.#state = 'trailers';
          else {
            this.#state = 'data';
            if (start === from && line.length > end - start) this.before = line.slice(0, line.length - (end - start));
            pass = i;
          }
          break;
        }
        case 'trailers': {
          const lf = bytes.indexOf(LF, i);
          const end = lf < 0 || lf >= to ? to : lf + 1;
          this.#line += latin1(bytes, i, end);
          if (this.#line.length > MAX_TRAILERS) throw new BadResponse('its trailers have no end');
          i = end;
          if (!/(^|\n)\r?\n$/.test(this.#line)) break;
          this.trailers = trailersOf(this.#line);
          this.#state = 'done';
          this.done = true;
          this.rest = i;
          return pass;
        }
        case 'done':
          return pass;
      }
    }
    return pass;
  }
}

/** Value of a hex digit by its byte, else −1. */
const HEX = Int8Array.from({ length: 256 }, (_, i) => {
  const digit = '0123456789abcdef'.indexOf(String.fromCharCode(i).toLowerCase());
  return i === 0 ? -1 : digit;
});

function latin1(bytes: Uint8Array, from: number, to: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + from, to - from).toString('latin1');
}

function sizeOf(line: string): number {
  const m = /^([0-9a-fA-F]{1,8})[ \t]*(?:;[^\r\n]*)?\r?\n$/.exec(line);
  if (!m) throw new BadResponse('a chunk has no size');
  return Number.parseInt(m[1] as string, 16);
}

function trailersOf(text: string): string[] {
  const raw: string[] = [];
  for (const line of text.split(/\r?\n/)) {
    const colon = line.indexOf(':');
    if (colon > 0) raw.push(line.slice(0, colon), line.slice(colon + 1).trim());
  }
  return raw;
}
