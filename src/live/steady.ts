/**
 * A short way for the many events of a stream that differ in nothing but their text. When a read is one whole event whose
 * bytes equal the last one's but for the inside of one string, and that string was the text of its one output, then its
 * meaning is the last one's with the new text: no JSON needs to be parsed, which is most of what an event costs.
 *
 * Sound only for decoders whose state such an event would not change; of the dialects those are `STEADY`: a chunk without
 * a count (`tokens`, usage) leaves theirs as it is. Anything else, down to a different timestamp, goes the long way.
 */
import type { OutputKind, StreamEvent } from '../core/stream.ts';
import type { DialectName } from '../wire/index.ts';
import type { Decoder } from './attempt.ts';

export const STEADY: ReadonlySet<DialectName> = new Set<DialectName>(['openai.chat', 'openai.completions']);

/** After so many patterns that no event followed, streams of this kind are not looked at any more. */
const PATIENCE = 12;

/** Text that stands in JSON as it is: no quote, backslash or control character. */
const PLAIN = /^[^"\\\u0000-\u001f\u007f]+$/;
/** What stands before the text's string. */
const TEXT_KEY = /"(?:content|text|reasoning_content|reasoning)": ?$/;

const LF = 10;
const CR = 13;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SPACE = 0x20;
const DEL = 0x7f;

type Emit = (event: StreamEvent) => void;

export function steady(inner: Decoder): Decoder {
  return new SteadyDecoder(inner);
}

class SteadyDecoder implements Decoder {
  readonly #inner: Decoder;
  /** The bytes around the text, quotes included. */
  #before: Buffer | undefined;
  #after: Buffer = Buffer.alloc(0);
  #choice = 0;
  #kind: OutputKind = 'text';
  /** The inner decoder holds nothing: its last read ended in an event's end. */
  #clean = true;
  #followed = false;
  #patience = PATIENCE;
  #emit: Emit = () => {};
  #events = 0;
  #last: StreamEvent | undefined;

  constructor(inner: Decoder) {
    this.#inner = inner;
  }

  push(bytes: Buffer, emit: Emit): void {
    if (this.#before !== undefined && this.#clean) {
      const text = this.#textOf(bytes, this.#before);
      if (text !== undefined) {
        this.#followed = true;
        emit({ outputs: [{ choice: this.#choice, kind: this.#kind, text }] });
        return;
      }
    }
    if (this.#patience === 0) {
      this.#inner.push(bytes, emit);
      return;
    }
    this.#events = 0;
    this.#emit = emit;
    this.#inner.push(bytes, this.#note);
    const n = bytes.length;
    const whole = this.#clean && bytes.indexOf(LF) === n - 2; // one event, in one line
    this.#clean = n >= 2 && bytes[n - 1] === LF && bytes[n - 2] === LF;
    if (whole && this.#clean && this.#events === 1) this.#learn(bytes, this.#last as StreamEvent);
  }

  end(emit: Emit): void {
    this.#inner.end(emit);
  }

  readonly #note = (event: StreamEvent): void => {
    this.#events++;
    this.#last = event;
    this.#emit(event);
  };

  /** The text, when all else is as it was. */
  #textOf(bytes: Buffer, before: Buffer): string | undefined {
    const after = this.#after;
    const start = before.length;
    const end = bytes.length - after.length;
    if (end <= start) return undefined;
    for (let i = start; i < end; i++) {
      const b = bytes[i]!;
      if (b === QUOTE || b === BACKSLASH || b < SPACE || b === DEL) return undefined;
    }
    if (bytes.compare(after, 0, after.length, end) !== 0 || bytes.compare(before, 0, start, 0, start) !== 0) {
      return undefined;
    }
    return bytes.toString('utf8', start, end);
  }

  #learn(bytes: Buffer, event: StreamEvent): void {
    const part = event.outputs[0];
    if (event.outputs.length !== 1 || part === undefined || Object.keys(event).length !== 1) return;
    const { text, choice, kind } = part;
    if (text === undefined || part.tokens !== undefined || part.field !== undefined || !PLAIN.test(text)) return;
    if (bytes.indexOf(CR) >= 0 || bytes[0] !== 0x64) return; // `data:` comes first
    const quoted = Buffer.from(`"${text}"`);
    const at = bytes.indexOf(quoted);
    if (at < 0 || bytes.indexOf(quoted, at + 1) >= 0) return; // elsewhere too: we cannot tell which it came from
    if (!TEXT_KEY.test(bytes.toString('latin1', Math.max(0, at - 24), at))) return;
    if (this.#before !== undefined && !this.#followed && --this.#patience === 0) {
      this.#before = undefined; // from here on everything goes the long way
      return;
    }
    this.#followed = false;
    this.#before = Buffer.from(bytes.subarray(0, at + 1));
    this.#after = Buffer.from(bytes.subarray(at + quoted.length - 1));
    this.#choice = choice;
    this.#kind = kind;
  }
}
