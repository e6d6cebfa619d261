/**
 * What stands beside the path of one response: the decoder and the recorder, fed with the very bytes that were passed on,
 * after they were. Whatever goes wrong in here ends the recording, never the traffic.
 */
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import type { Millis } from '../../base/units.ts';
import type { Ending } from '../../core/engine.ts';
import type { StreamEvent } from '../../core/stream.ts';
import { errorIn } from '../../wire/errors.ts';
import { type DialectName, type StreamDecoder, streamDecoder } from '../../wire/index.ts';
import { isObject } from '../../wire/json.ts';
import type { Attempt, Operations } from '../cohorts/index.ts';
import { cleanDetail, withoutQuotes } from '../cohorts/redact.ts';

/** Chunks of one answer that are kept: 17 bytes each. A longer one is watched no further. */
const MOST_CHUNKS = 1 << 18;
const ERROR_BODY = 64 * 1024;
/** Decompressed bytes of one answer, and reads waiting to be decompressed. */
const MOST_INFLATED = 64 * 1024 * 1024;
const MOST_WAITING = 256;

/** What taps of one proxy share. */
export interface TapContext {
  readonly operations: Operations;
  readonly now: () => Millis;
  /** Counts responses that could not be read, by reason. */
  readonly unreadable: (reason: string) => void;
}

export class Tap {
  readonly attempt: Attempt;
  readonly #context: TapContext;
  readonly #dialect: DialectName;
  #decoder: StreamDecoder | undefined;
  #inflate: Inflate | undefined;
  #error: { status: number; parts: Buffer[]; size: number } | undefined;
  #at: Millis = 0;
  #eventsInRead = 0;
  #outputsBefore = 0;
  #outputs = 0;

  constructor(context: TapContext, attempt: Attempt, dialect: DialectName) {
    this.#context = context;
    this.attempt = attempt;
    this.#dialect = dialect;
  }

  /** The response's head. */
  head(t: Millis, status: number, contentType: string, encoding: string): void {
    this.#guarded(() => {
      const { recorder } = this.attempt;
      recorder.headers(t, status);
      const coding = encoding.trim().toLowerCase();
      const plain = coding === '' || coding === 'identity';
      if (status < 200 || status > 299) {
        this.#error = { status, parts: [], size: plain ? 0 : ERROR_BODY };
        return;
      }
      this.#decoder = streamDecoder(this.#dialect, contentType);
      if (plain) return;
      const make = INFLATERS[coding];
      if (make === undefined) this.#giveUp(t, `content-encoding ${cleanDetail(coding)}`);
      else this.#inflate = new Inflate(make(), this.#decoded, (why) => this.#giveUp(this.#context.now(), why));
    });
  }

  /** Data of one read. @param written when they had been passed on. */
  read(bytes: Buffer, t: Millis, written: Millis): void {
    if (!this.attempt.isOpen) return;
    try {
      if (this.#inflate !== undefined) {
        this.#inflate.push(Buffer.from(bytes), t);
        return;
      }
      if (this.#error !== undefined) {
        this.#keepError(bytes);
        return;
      }
      const decoder = this.#decoder;
      if (decoder === undefined) return;
      this.#at = t;
      this.#eventsInRead = 0;
      this.#outputsBefore = this.#outputs;
      decoder.push(bytes, this.#emit);
      if (this.#outputs > this.#outputsBefore) this.#written(written, t);
    } catch (error) {
      this.#broken(error);
    }
  }

  /** The response ended as the transport says. */
  ended(t: Millis, ending: Ending): void {
    const inflate = this.#inflate;
    if (!this.attempt.isOpen) {
      inflate?.stop();
      return;
    }
    if (inflate !== undefined) {
      this.#inflate = undefined;
      inflate.end(() => this.#finish(t, ending));
      return;
    }
    this.#finish(t, ending);
  }

  /** The client left before the end. */
  left(t: Millis): void {
    this.#inflate?.stop();
    this.#guarded(() => this.#context.operations.left(this.attempt, t));
  }

  #finish(t: Millis, ending: Ending): void {
    this.#guarded(() => {
      if (!this.attempt.isOpen) return;
      if (this.#error !== undefined) {
        this.#context.operations.ended(this.attempt, t, this.#errorEnding(this.#error));
        return;
      }
      if (ending.kind === 'closed') {
        this.#eventsInRead = this.#at === 0 ? 0 : this.#eventsInRead;
        this.#at = Math.max(this.#at, t);
        this.#decoder?.end(this.#emit);
      }
      this.#context.operations.ended(this.attempt, Math.max(t, this.#at), ending);
    });
  }

  readonly #emit = (event: StreamEvent): void => {
    if (!this.attempt.isOpen) return;
    this.attempt.recorder.event(this.#at, clean(event), this.#eventsInRead++ > 0);
    const { length } = event.outputs;
    if (length === 0) return;
    this.#outputs += length;
    if (this.#outputs > MOST_CHUNKS) this.#giveUp(this.#at, 'more chunks than are kept');
  };

  readonly #decoded = (bytes: Buffer, t: Millis): void => {
    try {
      if (!this.attempt.isOpen) return;
      if (t !== this.#at) this.#eventsInRead = 0;
      this.#at = t;
      this.#decoder?.push(bytes, this.#emit);
    } catch (error) {
      this.#broken(error);
    }
  };

  #written(written: Millis, received: Millis): void {
    const { passage } = this.attempt;
    const at = Math.max(written, received);
    if (passage.firstWritten === undefined) passage.firstWritten = at;
    passage.lastWritten = at;
  }

  #keepError(part: Buffer): void {
    const error = this.#error;
    if (error === undefined || error.size >= ERROR_BODY) return;
    error.parts.push(Buffer.from(part.subarray(0, ERROR_BODY - error.size)));
    error.size += part.length;
  }

  #errorEnding({ status, parts }: { status: number; parts: Buffer[] }): Ending {
    let detail = '';
    try {
      const json: unknown = JSON.parse(Buffer.concat(parts).toString('utf8'));
      // Only what is meant for people: validation errors also quote the input, which is the prompt.
      if (isObject(json))
        detail = typeof json.detail === 'object' ? 'validation error' : (errorIn(json)?.message ?? '');
    } catch {
      detail = ''; // a page or a text: its status says enough
    }
    return { kind: 'http-error', status, detail: cleanDetail(detail) };
  }

  #giveUp(t: Millis, reason: string): void {
    this.#context.unreadable(reason);
    this.#decoder = undefined;
    this.#inflate?.stop();
    this.#inflate = undefined;
    if (this.attempt.isOpen) this.#context.operations.lost(this.attempt, t, 'unreadable', reason);
  }

  #broken(error: unknown): void {
    this.#guarded(() => this.#giveUp(this.#context.now(), `a defect in reading it (${(error as Error)?.name})`));
  }

  #guarded(run: () => void): void {
    try {
      run();
    } catch {
      this.#context.unreadable('a defect in recording it');
    }
  }
}

/** An event whose words hold neither keys nor answers. */
function clean(event: StreamEvent): StreamEvent {
  if (event.error === undefined && event.malformed === undefined) return event;
  return {
    ...event,
    ...(event.error && { error: { ...event.error, message: cleanDetail(event.error.message) } }),
    ...(event.malformed !== undefined && { malformed: withoutQuotes(event.malformed) }),
  };
}

type Inflater = ReturnType<typeof createGunzip>;

const INFLATERS: Readonly<Record<string, () => Inflater>> = {
  gzip: () => createGunzip(),
  'x-gzip': () => createGunzip(),
  deflate: () => createInflate(),
  br: () => createBrotliDecompress() as unknown as Inflater,
};

/**
 * Decompresses beside the path. Reads go in one after another, so that what comes out of one carries that read's stamp;
 * a compressor that holds tokens back thereby shows in the gaps, as it does for the user.
 */
class Inflate {
  readonly #stream: Inflater;
  readonly #out: (bytes: Buffer, t: Millis) => void;
  readonly #fail: (why: string) => void;
  readonly #queue: { bytes: Buffer; t: Millis }[] = [];
  #busy = false;
  #at: Millis = 0;
  #size = 0;
  #stopped = false;
  #ended: (() => void) | undefined;

  constructor(stream: Inflater, out: (bytes: Buffer, t: Millis) => void, fail: (why: string) => void) {
    this.#stream = stream;
    this.#out = out;
    this.#fail = fail;
    stream.on('data', (bytes: Buffer) => {
      this.#size += bytes.length;
      if (this.#stopped) return;
      if (this.#size > MOST_INFLATED) this.#broken('a compressed body too large to read');
      else this.#out(bytes, this.#at);
    });
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'Z_BUF_ERROR' && this.#ended !== undefined) {
        // The body ended without the compressor's own end: what came before it has been read.
        this.stop();
        this.#settle();
      } else this.#broken('a compressed body that is damaged');
    });
    stream.on('end', () => this.#settle());
  }

  push(bytes: Buffer, t: Millis): void {
    if (this.#stopped) return;
    if (this.#queue.length >= MOST_WAITING) this.#broken('a compressed body faster than it can be read');
    else {
      this.#queue.push({ bytes, t });
      this.#next();
    }
  }

  end(done: () => void): void {
    this.#ended = done;
    if (this.#stopped) this.#settle();
    else this.#next();
  }

  stop(): void {
    this.#stopped = true;
    this.#queue.length = 0;
    this.#stream.destroy();
  }

  #next(): void {
    if (this.#busy || this.#stopped) return;
    const next = this.#queue.shift();
    if (next === undefined) {
      if (this.#ended !== undefined) this.#stream.end();
      return;
    }
    this.#busy = true;
    this.#at = next.t;
    // All that this read completes comes out before the callback.
    this.#stream.write(next.bytes, () => {
      this.#busy = false;
      this.#next();
    });
  }

  #broken(why: string): void {
    if (this.#stopped) return;
    this.stop();
    this.#fail(why);
    this.#settle();
  }

  #settle(): void {
    const done = this.#ended;
    this.#ended = undefined;
    done?.();
  }
}
