/**
 * From bytes to stream events: the right framing for the body, then the dialect. What the content type says is a hint; what
 * the body begins with decides, since servers send JSON as an event stream, and pages of HTML as either.
 */
import { oneLine } from '../base/errors.ts';
import { NO_MEANING, type StreamEvent } from '../core/stream.ts';
import type { Decoder, Dialect, DialectName } from './dialect.ts';
import { DIALECTS } from './dialects/index.ts';
import { describe } from './errors.ts';
import {
  type Frame,
  type FrameSink,
  type Framing,
  type FramingName,
  MAX_FRAME_BYTES,
  tooLarge,
} from './framing/frame.ts';
import { JsonArrayFraming } from './framing/json-array.ts';
import { isCutShort, JsonBodyFraming } from './framing/json-body.ts';
import { NdjsonFraming } from './framing/ndjson.ts';
import { SseFraming } from './framing/sse.ts';
import { isObject, type Json } from './json.ts';
import { Repeated } from './repeat.ts';

/** Told each event; `frame` is what it was read from, absent where the end of the body itself means something. */
export type EmitEvent = (event: StreamEvent, frame?: Frame) => void;

export interface StreamDecoder {
  /** Feeds one read. `emit` is called for every event that ends in it, before `push` returns. */
  push(bytes: Uint8Array, emit: EmitEvent): void;
  /** The body ended cleanly. */
  end(emit: EmitEvent): void;
  /** SSE comments so far. */
  readonly comments: number;
  /** Undefined until the first byte that shows it. */
  readonly framing: FramingName | undefined;
}

/** A decoder for one response. @param contentType of the response, where there is one. */
export function streamDecoder(dialect: DialectName | Dialect, contentType?: string): StreamDecoder {
  return new BodyDecoder(typeof dialect === 'string' ? DIALECTS[dialect] : dialect, contentType ?? '');
}

/** What the content type declares. */
type Declared = 'sse' | 'ndjson' | 'json' | undefined;

function declaredBy(contentType: string): Declared {
  const type = contentType.split(';', 1)[0]!.trim().toLowerCase();
  if (type === 'text/event-stream') return 'sse';
  if (/ndjson|jsonl|json-?lines|stream\+json|json-seq/.test(type)) return 'ndjson';
  return /[/+]json$/.test(type) ? 'json' : undefined;
}

class BodyDecoder implements StreamDecoder {
  readonly #dialect: Dialect;
  readonly #decoder: Decoder;
  readonly #declared: Declared;
  readonly #repeated: Repeated | undefined;
  #framing: Framing | undefined;
  /** White space and a byte order mark before anything that shows the framing. */
  #before: Uint8Array = new Uint8Array(0);
  #emit: EmitEvent = () => {};
  /** An NDJSON line that would be a whole answer if nothing follows it. */
  #lone: { readonly frame: Frame; readonly json: Json } | undefined;
  #wasLone = false;
  #lines = 0;
  /** The lines of a body that began as lines and is one document; bounded. */
  #pieces: string[] | undefined;
  #size = 0;
  #tooLarge = false;

  readonly #onFrame: FrameSink = (frame) => this.#frame(frame);

  constructor(dialect: Dialect, contentType: string) {
    this.#dialect = dialect;
    this.#decoder = dialect.decoder();
    this.#repeated = this.#decoder.repeatable ? new Repeated() : undefined;
    this.#declared = declaredBy(contentType);
  }

  get comments(): number {
    return this.#framing?.comments ?? 0;
  }
  get framing(): FramingName | undefined {
    return this.#pieces !== undefined || this.#wasLone ? 'json' : this.#framing?.name;
  }

  push(bytes: Uint8Array, emit: EmitEvent): void {
    this.#emit = emit;
    const framing = this.#framing;
    if (framing === undefined) {
      this.#begin(bytes);
      return;
    }
    if (this.#repeated !== undefined && framing instanceof SseFraming && framing.between) {
      const repeated = this.#repeated.matchRead(bytes);
      if (repeated !== undefined) {
        emit(repeated.event, repeated.frame);
        return;
      }
    }
    framing.push(bytes, this.#onFrame);
  }

  end(emit: EmitEvent): void {
    this.#emit = emit;
    const framing = this.#framing;
    if (framing === undefined) return;
    framing.end(this.#onFrame);
    const lone = this.#lone;
    this.#lone = undefined;
    this.#wasLone = lone !== undefined;
    if (lone !== undefined) emit(this.#dialect.whole(lone.json), lone.frame);
    if (this.#pieces !== undefined) this.#body(this.#document());
    if (framing instanceof SseFraming && framing.stray !== undefined) {
      emit(unreadable(`the body is not an event stream: it begins with '${oneLine(framing.stray, 80)}'`));
      return;
    }
    const end = this.framing === 'json' ? undefined : this.#decoder.end();
    if (end !== undefined) emit(end);
  }

  /** Chooses the framing at the first byte that is not white space. */
  #begin(bytes: Uint8Array): void {
    let all = bytes;
    if (this.#before.length > 0) {
      all = new Uint8Array(this.#before.length + bytes.length);
      all.set(this.#before);
      all.set(bytes, this.#before.length);
    }
    const first = firstByte(all);
    if (first === undefined) {
      // Only white space: a last part is enough to go on with, however much of it there is.
      this.#before = Uint8Array.prototype.slice.call(all, 0, 64);
      return;
    }
    this.#before = new Uint8Array(0);
    this.#framing = this.#choose(first);
    this.#framing.push(all, this.#onFrame);
  }

  #choose(first: number): Framing {
    switch (first) {
      case 0x7b: // {
        if (this.#declared === 'ndjson' || this.#dialect.framing === 'ndjson') return new NdjsonFraming();
        return new JsonBodyFraming();
      case 0x5b: // [
        return this.#dialect.name === 'gemini.stream' ? new JsonArrayFraming() : new JsonBodyFraming();
      case 0x3c: // <
      case 0x22: // "
        return new JsonBodyFraming();
    }
    return this.#declared === 'json' && !FIELD_STARTS.has(first) ? new JsonBodyFraming() : new SseFraming();
  }

  #frame(frame: Frame): void {
    const framing = this.#framing!.name;
    if (framing === 'json') this.#body(frame);
    else if (framing === 'ndjson') this.#line(frame);
    else this.#event(frame);
  }

  #event(frame: Frame): void {
    const { data } = frame;
    if (frame.malformed !== undefined) {
      this.#emit(unreadable(frame.malformed), frame);
      return;
    }
    const repeated = this.#repeated?.match(frame);
    if (repeated !== undefined) {
      this.#emit(repeated, frame);
      return;
    }
    let json: unknown;
    try {
      json = JSON.parse(data);
    } catch {
      this.#notJson(frame);
      return;
    }
    if (isObject(json)) {
      const event = this.#meaning(json, frame.event);
      this.#repeated?.learn(frame, event, this.#dialect.decoder);
      this.#emit(event, frame);
    } else if (json === '[DONE]') this.#emit(NO_MEANING, frame);
    else this.#emit(unreadable(`an event is not a JSON object: '${oneLine(data, 80)}'`), frame);
  }

  #meaning(json: Json, name: string | undefined): StreamEvent {
    const event = this.#decoder.event(json, name);
    return name === 'error' && event.error === undefined ? { ...event, error: describe(json) } : event;
  }

  #notJson(frame: Frame): void {
    const data = frame.data.trim();
    if (frame.event === 'error' && data !== '') {
      this.#emit({ outputs: [], error: { message: oneLine(data) } }, frame);
      return;
    }
    if (data === '' || data === '[DONE]' || (frame.event !== undefined && IDLE.test(frame.event))) {
      this.#emit(NO_MEANING, frame);
    } else if (!frame.cut) {
      this.#emit(unreadable(`an event is not JSON: '${oneLine(data, 80)}'`), frame);
    }
    // A frame that the end of the body cut is no event; without a finish before it the stream is truncated.
  }

  /**
   * A body of one line that no line end closes (or that declares itself one document) is an answer that was not streamed:
   * wait for what follows the first line only where it could be one.
   */
  #line(frame: Frame): void {
    if (this.#pieces !== undefined) {
      this.#piece(frame);
      return;
    }
    const lone = this.#lone;
    if (lone !== undefined) {
      this.#lone = undefined;
      this.#emit(this.#decoder.event(lone.json), lone.frame);
    }
    this.#lines++;
    if (this.#lines > 1 || this.#declared === 'ndjson' || frame.malformed !== undefined) {
      this.#event(frame);
      return;
    }
    const json = parsed(frame.data);
    if (isObject(json) && (frame.cut || (this.#declared === 'json' && json.done !== false))) {
      this.#lone = { frame, json };
    } else if (json === undefined && !frame.cut && isCutShort(frame.data)) {
      this.#pieces = [];
      this.#piece(frame);
    } else {
      this.#event(frame);
    }
  }

  #piece(frame: Frame): void {
    this.#size += frame.data.length + 1;
    if (this.#size > MAX_FRAME_BYTES || frame.malformed !== undefined) this.#tooLarge = true;
    if (this.#tooLarge) this.#pieces = [];
    else this.#pieces?.push(frame.data);
  }

  #document(): Frame {
    const data = this.#pieces?.join('\n') ?? '';
    if (this.#tooLarge) return tooLarge(MAX_FRAME_BYTES);
    return isCutShort(data) ? { data, cut: true } : { data };
  }

  #body(frame: Frame): void {
    if (frame.malformed !== undefined) {
      this.#emit(unreadable(frame.malformed, true), frame);
      return;
    }
    const json = parsed(frame.data);
    if (json === undefined) this.#notABody(frame);
    else if (typeof json === 'object' && json !== null) this.#emit(this.#dialect.whole(json), frame);
    else this.#emit(unreadable(`the body is not a JSON object: '${oneLine(frame.data, 80)}'`, true), frame);
  }

  #notABody(frame: Frame): void {
    const { data } = frame;
    if (data.startsWith('<')) {
      const title = /<title[^>]*>([^<]{1,200})/i.exec(data)?.[1];
      const what = title === undefined ? '' : `, titled '${oneLine(title, 80)}'`;
      this.#emit(
        unreadable(`the body is HTML${what}, not a model's answer: check the URL and any proxy before it`, true),
        frame,
      );
      return;
    }
    const lines = data
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '');
    if (lines.length > 1 && isObject(parsed(lines[0]!))) {
      // Lines of JSON under another name: told, though late.
      this.#framing = new NdjsonFraming();
      for (const [i, line] of lines.entries())
        this.#event(i === lines.length - 1 ? { data: line, cut: true } : { data: line });
      return;
    }
    if (frame.cut) return; // it began as JSON and ended early: truncated
    this.#emit(unreadable(`the body is not JSON: it begins with '${oneLine(data, 80)}'`, true), frame);
  }
}

/** The first letters of the fields of an event stream, and of its comments. */
const FIELD_STARTS: ReadonlySet<number> = new Set([...'deir:'].map((c) => c.charCodeAt(0)));

/** Events that only keep a connection open, whatever they carry. */
const IDLE = /^(ping|keep-?alive|heart-?beat)$/i;

function unreadable(reason: string, whole = false): StreamEvent {
  return whole ? { outputs: [], malformed: reason, whole } : { outputs: [], malformed: reason };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The first byte that is neither white space nor of a byte order mark; undefined while there is none. */
function firstByte(bytes: Uint8Array): number | undefined {
  let i = 0;
  if (bytes[0] === 0xef && (bytes.length === 1 || bytes[1] === 0xbb) && (bytes.length <= 2 || bytes[2] === 0xbf)) i = 3;
  while (i < bytes.length) {
    const b = bytes[i]!;
    if (b !== 0x20 && b !== 0x0a && b !== 0x0d && b !== 0x09) return b;
    i++;
  }
  return undefined;
}
