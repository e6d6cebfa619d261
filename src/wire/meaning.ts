/** Puts a stream event together; events that mean nothing are one shared object. */
import {
  type Finish,
  NO_MEANING,
  type OutputPart,
  type ServerTimes,
  type StreamError,
  type StreamEvent,
  type Usage,
} from '../core/stream.ts';

export interface Meaning {
  outputs?: readonly OutputPart[] | undefined;
  finishes?: readonly Finish[] | undefined;
  usage?: Usage | undefined;
  error?: StreamError | undefined;
  terminal?: boolean | undefined;
  whole?: boolean | undefined;
  model?: string | undefined;
  server?: ServerTimes | undefined;
}

const NO_OUTPUT: readonly OutputPart[] = [];

export function eventOf(m: Meaning): StreamEvent {
  const event: { -readonly [K in keyof StreamEvent]: StreamEvent[K] } = { outputs: m.outputs ?? NO_OUTPUT };
  let empty = event.outputs.length === 0;
  if (m.finishes !== undefined && m.finishes.length > 0) {
    event.finishes = m.finishes;
    empty = false;
  }
  if (m.usage !== undefined) {
    event.usage = m.usage;
    empty = false;
  }
  if (m.error !== undefined) {
    event.error = m.error;
    empty = false;
  }
  if (m.terminal || m.whole) {
    if (m.terminal) event.terminal = true;
    if (m.whole) event.whole = true;
    empty = false;
  }
  if (m.model !== undefined) {
    event.model = m.model;
    empty = false;
  }
  if (m.server !== undefined) {
    event.server = m.server;
    empty = false;
  }
  return empty ? NO_MEANING : event;
}

/** Lets each choice finish once: some servers repeat the reason on a later chunk. */
export class Finishes {
  readonly #done = new Set<number>();
  has(choice: number): boolean {
    return this.#done.has(choice);
  }
  once(choice: number, reason: string, unseenEndTokens = 0): Finish | undefined {
    if (this.#done.has(choice)) return undefined;
    this.#done.add(choice);
    return unseenEndTokens > 0 ? { choice, reason, unseenEndTokens } : { choice, reason };
  }
}

/** Tells the model once, on the first event that names it. */
export class ModelOnce {
  #told = false;
  tell(name: unknown): string | undefined {
    if (this.#told || typeof name !== 'string' || name === '') return undefined;
    this.#told = true;
    return name;
  }
}
