/**
 * The stamps file: one NDJSON line a request, at its end. Times are milliseconds of the machine's monotonic clock,
 * unshifted, so that a client on the same machine can hold its own stamps against them. Lines are put together off the
 * hot path, one a turn of the event loop, and written in order.
 */
import { closeSync, openSync, writeSync } from 'node:fs';
import { InputError, type Millis, messageOf } from '../base/index.ts';

/** What is known of one request at its end. */
export interface Stamped {
  /** The response's id: the request's `x-request-id`, where it had one, behind the API's prefix. */
  readonly id: string;
  /** Requests to the two completion endpoints counted from 0; faults are drawn by it. */
  readonly request: number;
  readonly received: Millis;
  readonly ended: Millis;
  /** One a chunk that carried tokens: when its bytes were handed to the socket. */
  readonly at: Float64Array;
  /** Tokens in each chunk, those that are not shown included. */
  readonly tokens: Uint16Array;
  /** Whether the chunk had visible text. */
  readonly shown: Uint8Array;
  readonly choice: Uint16Array;
  readonly choices: number;
  readonly faults: readonly string[];
  /** `completed`, `cancelled` (by the client), `failed`, or the name of the fault that ended it. */
  readonly outcome: string;
  readonly promptTokens: number;
}

export class StampsFile {
  readonly #path: string;
  readonly #fd: number;
  #waiting: Stamped[] = [];
  #lines: string[] = [];
  #turn: NodeJS.Immediate | undefined;
  #later: NodeJS.Timeout | undefined;
  #failure: string | undefined;

  /** @throws InputError when the file cannot be written. */
  constructor(path: string) {
    this.#path = path;
    try {
      this.#fd = openSync(path, 'w');
    } catch (error) {
      throw new InputError(
        `--stamps ${path}: cannot be written (${messageOf(error)}); name a file in a folder that can`,
      );
    }
  }

  /** Why lines were lost, when some were: a full disk, say. */
  get failure(): string | undefined {
    return this.#failure;
  }

  add(stamped: Stamped): void {
    this.#waiting.push(stamped);
    this.#turn ??= setImmediate(this.#one);
  }

  /** Writes what is left and closes. */
  close(): void {
    if (this.#turn) clearImmediate(this.#turn);
    clearTimeout(this.#later);
    for (const stamped of this.#waiting) this.#lines.push(lineOf(stamped));
    this.#waiting = [];
    this.#flush();
    closeSync(this.#fd);
  }

  #one = (): void => {
    this.#turn = undefined;
    const stamped = this.#waiting.shift();
    if (stamped) this.#lines.push(lineOf(stamped));
    if (this.#lines.length >= LINES_A_WRITE) this.#flush();
    else this.#later ??= setTimeout(this.#flush, 500).unref();
    if (this.#waiting.length > 0) this.#turn = setImmediate(this.#one);
  };

  #flush = (): void => {
    clearTimeout(this.#later);
    this.#later = undefined;
    const text = this.#lines.join('');
    this.#lines = [];
    if (text === '' || this.#failure !== undefined) return;
    try {
      // Into the page cache: tens of microseconds for some tens of kilobytes.
      const bytes = Buffer.from(text);
      for (let at = 0; at < bytes.length; ) at += writeSync(this.#fd, bytes, at);
    } catch (error) {
      this.#failure = `${this.#path}: ${messageOf(error)}`;
    }
  };
}

const LINES_A_WRITE = 64;

function lineOf(s: Stamped): string {
  const visible = (i: number): boolean => s.shown[i] === 1;
  return `${JSON.stringify({
    id: s.id,
    request: s.request,
    received_ms: micro(s.received),
    stamps_ms: Array.from(s.at, micro),
    tokens: [...s.tokens],
    ...(s.shown.includes(0) && { shown: Array.from(s.shown, (_, i) => visible(i)) }),
    ...(s.choices > 1 && { choice: [...s.choice] }),
    faults: s.faults,
    outcome: s.outcome,
    prompt_tokens: s.promptTokens,
    ended_ms: micro(s.ended),
  })}\n`;
}

const micro = (t: Millis): number => Math.round(t * 1000) / 1000;
