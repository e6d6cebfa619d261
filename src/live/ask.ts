/** One small request and its whole answer, bounded in time and size: what probing is made of. */
import type { Socket } from 'node:net';
import { Client } from 'undici';
import type { Millis } from '../base/units.ts';
import type { Dial } from './dial.ts';

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface Question {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

const ANSWER_BYTES = 1024 * 1024;

/** Thrown when there was no whole answer in time. */
export class NoAnswer extends Error {
  constructor(timeout: Millis) {
    super(`no answer within ${timeout / 1000} s`);
    this.name = 'NoAnswer';
  }
}

/** @throws the transport's error, or `NoAnswer`. */
export async function ask(origin: string, dial: Dial, question: Question, timeout: Millis): Promise<Answer> {
  let cancel = (): void => {};
  const client = new Client(origin, {
    pipelining: 0, // no keep-alive: one question
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: (_, callback) => {
      cancel = dial((error, socket) => {
        if (!error) callback(null, socket as Socket);
        // Under its own code undici would dial again without end.
        else callback(Object.assign(new Error(error.message, { cause: error }), { code: 'GOODPUT_DIAL' }), null);
      });
    },
  });
  const signal = AbortSignal.timeout(timeout);
  try {
    const { statusCode, headers, body } = await untilAborted(
      signal,
      client.request({
        method: question.method,
        path: question.path,
        headers: { ...question.headers },
        ...(question.body !== undefined && { body: question.body }),
        signal,
      }),
    );
    const parts: Buffer[] = [];
    let size = 0;
    for await (const part of body) {
      parts.push(part);
      size += part.length;
      if (size >= ANSWER_BYTES) break;
    }
    const flat = Object.entries(headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(', ') : (value ?? ''),
    ]);
    return { status: statusCode, headers: Object.fromEntries(flat), body: Buffer.concat(parts).toString('utf8') };
  } catch (error) {
    if (signal.aborted) throw new NoAnswer(timeout);
    const { code, cause } = error as { code?: unknown; cause?: unknown };
    throw code === 'GOODPUT_DIAL' ? cause : error;
  } finally {
    cancel();
    void client.destroy().catch(() => {});
  }
}

/** undici hears a signal only once the request is on a connection; a dial that hangs must end too. */
function untilAborted<T>(signal: AbortSignal, promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    promise.then(resolve, reject);
  });
}
