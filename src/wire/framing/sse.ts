/**
 * Server-sent events (WHATWG HTML, 9.2.6), by our own hand: eventsource-parser loses a last event that no blank line
 * follows, keeps an event that a lone CR ends back until the next read (its stamp would be that read's), never dispatches
 * a CR-only stream's last event, and stops for good at its size bound.
 *
 * A read is searched for its last line end and decoded once up to there, so a character split over reads is never seen
 * in halves. Two deviations from the standard, both because a server's words must not be lost: an event is delivered at
 * the end of the body without its blank line, and an `error:` field (llama.cpp before 2025) is an event named `error`.
 */
import { HeldBytes } from './bytes.ts';
import { type FrameSink, type Framing, MAX_FRAME_BYTES, tooLarge } from './frame.ts';

const LF = 10;
const CR = 13;
const SPACE = 32;
const COLON = 58;
const BOM = 0xfeff;
/** Stands for the rest of a line that was dropped: an unknown field, neither blank nor a comment. */
const FILLER = Uint8Array.of(120);

export class SseFraming implements Framing {
  readonly name = 'sse';
  readonly #limit: number;
  readonly #held = new HeldBytes();
  #data: string | undefined;
  #event: string | undefined;
  #started = false;
  /** The last line ended in CR at the end of a read: an LF that comes next belongs to it. */
  #skipLf = false;
  /** Inside an event that was too large, until its blank line. */
  #dropping = false;
  #comments = 0;
  #events = 0;
  #stray: string | undefined;

  constructor(limit: number = MAX_FRAME_BYTES) {
    this.#limit = limit;
  }

  /** Nothing of an unfinished event or line is held: the next byte begins an event. */
  get between(): boolean {
    return (
      this.#data === undefined &&
      this.#event === undefined &&
      this.#held.size === 0 &&
      !this.#skipLf &&
      !this.#dropping &&
      this.#started
    );
  }

  get comments(): number {
    return this.#comments;
  }

  /** The first line that is no field of an event stream, when the body held nothing else. */
  get stray(): string | undefined {
    return this.#events === 0 && this.#comments === 0 ? this.#stray : undefined;
  }

  push(bytes: Uint8Array, emit: FrameSink): void {
    const n = bytes.length;
    if (n === 0) return;
    const last = bytes[n - 1];
    const end = last === LF || last === CR ? n : Math.max(bytes.lastIndexOf(LF), bytes.lastIndexOf(CR)) + 1;
    if (end > 0) this.#lines(this.#held.take(bytes, end), emit);
    if (end < n) this.#keep(bytes, end, emit);
  }

  end(emit: FrameSink): void {
    const cut = this.#held.size > 0;
    if (cut) this.#lines(`${this.#held.take()}\n`, emit);
    this.#dispatch(emit, cut);
  }

  #keep(bytes: Uint8Array, start: number, emit: FrameSink): void {
    if (!this.#dropping && this.#held.size + (bytes.length - start) + (this.#data?.length ?? 0) > this.#limit) {
      this.#drop(emit);
    }
    if (!this.#dropping) this.#held.hold(bytes, start);
    else if (this.#held.size === 0) this.#held.hold(FILLER);
  }

  #drop(emit: FrameSink): void {
    this.#held.clear();
    this.#data = undefined;
    this.#dropping = true;
    this.#events++;
    emit(tooLarge(this.#limit));
  }

  /** Whole lines: `text` ends in a line end. */
  #lines(text: string, emit: FrameSink): void {
    const n = text.length;
    let pos = 0;
    if (this.#skipLf) {
      this.#skipLf = false;
      if (text.charCodeAt(0) === LF) pos = 1;
    }
    if (!this.#started) {
      this.#started = true;
      if (text.charCodeAt(pos) === BOM) pos++;
    }
    let cr = text.indexOf('\r', pos);
    let lf = -1;
    while (pos < n) {
      if (lf < pos) {
        lf = text.indexOf('\n', pos);
        if (lf < 0) lf = n;
      }
      if (cr >= 0 && cr < pos) cr = text.indexOf('\r', pos);
      let end = lf;
      let next = lf + 1;
      if (cr >= 0 && cr < lf) {
        end = cr;
        next = lf < n && lf === cr + 1 ? cr + 2 : cr + 1;
        if (next === n && lf === n) this.#skipLf = true;
      }
      if (
        text.charCodeAt(pos) === 100 &&
        text.charCodeAt(pos + 4) === COLON &&
        text.charCodeAt(pos + 1) === 97 &&
        text.charCodeAt(pos + 2) === 116 &&
        text.charCodeAt(pos + 3) === 97
      ) {
        const from = text.charCodeAt(pos + 5) === SPACE ? pos + 6 : pos + 5;
        const value = text.slice(from, end);
        if (
          cr < 0 &&
          this.#data === undefined &&
          !this.#dropping &&
          text.charCodeAt(next) === LF &&
          value.length <= this.#limit
        ) {
          this.#data = value; // the common case: one data line and its blank line
          this.#dispatch(emit, false);
          next++;
        } else {
          this.#addData(value, emit);
        }
      } else if (end === pos) {
        this.#dispatch(emit, false);
      } else {
        this.#field(text, pos, end, emit);
      }
      pos = next;
    }
  }

  #field(text: string, pos: number, end: number, emit: FrameSink): void {
    if (text.charCodeAt(pos) === COLON) {
      this.#comments++;
      return;
    }
    const line = text.slice(pos, end);
    const colon = line.indexOf(':');
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(line.charCodeAt(colon + 1) === SPACE ? colon + 2 : colon + 1);
    if (name === 'data') this.#addData(value, emit);
    else if (name === 'event') this.#event = value === '' ? undefined : value;
    else if (name === 'error') {
      this.#event = 'error';
      this.#addData(value, emit);
    } else if (name !== 'id' && name !== 'retry' && !this.#dropping) this.#stray ??= line.slice(0, 200);
  }

  #addData(value: string, emit: FrameSink): void {
    if (this.#dropping) return;
    if ((this.#data?.length ?? 0) + value.length > this.#limit) this.#drop(emit);
    else this.#data = this.#data === undefined ? value : `${this.#data}\n${value}`;
  }

  #dispatch(emit: FrameSink, cut: boolean): void {
    const data = this.#data;
    const event = this.#event;
    this.#dropping = false;
    if (event !== undefined) this.#event = undefined;
    if (data === undefined) return;
    this.#data = undefined;
    this.#events++;
    if (cut) emit(event === undefined ? { data, cut } : { data, event, cut });
    else emit(event === undefined ? { data } : { data, event });
  }
}
