/**
 * Clocks. Everything that waits or stamps is handed one of these, so the same code runs on the wall, in virtual time, and
 * paced (virtual time that follows a wall at some speed).
 */
import { Heap } from '../base/heap.ts';
import type { Millis } from '../base/units.ts';

/** Takes a planned thing back. Calling it late or twice does nothing. */
export type Cancel = () => void;

export interface Clock {
  /** Now, in milliseconds since the clock's epoch. Never goes back. */
  now(): Millis;
  /** Runs `run` once at or after `time`, never inside this call; things due at one time run in the order they were planned. */
  at(time: Millis, run: () => void): Cancel;
}

/** A clock that only moves when told to. */
export interface VirtualClock extends Clock {
  /** When the next planned thing is due, +∞ when there is none. */
  nextAt(): Millis;
  /** Runs everything due up to and including `to`, then stands at `to`. */
  advance(to: Millis): void;
  /** Runs until nothing is planned. `limit` guards against a loop that never ends: past it this throws. */
  runAll(limit?: number): void;
}

export function virtualClock(start: Millis = 0): VirtualClock {
  const queue = new EventQueue();
  let now = start;
  const step = (): void => {
    now = Math.max(now, queue.nextAt());
    queue.pop()?.();
  };
  return {
    now: () => now,
    at: (time, run) => queue.plan(time, run),
    nextAt: () => queue.nextAt(),
    advance(to) {
      while (queue.nextAt() <= to) step();
      now = Math.max(now, to);
    },
    runAll(limit = 100_000_000) {
      for (let i = 0; queue.nextAt() < Number.POSITIVE_INFINITY; i++) {
        if (i >= limit) throw new Error(`internal: virtual clock ran ${limit} events without coming to rest`);
        step();
      }
    },
  };
}

/** The few things of a host that a wall clock is made of; `node:` and browsers both have them. */
export interface HostTimers {
  /** A monotonic reading in milliseconds. */
  readonly now: () => Millis;
  readonly setTimeout: (run: () => void, ms: number) => unknown;
  readonly clearTimeout: (handle: never) => void;
  /** Runs as soon as the event loop has polled for I/O. */
  readonly setImmediate: (run: () => void) => unknown;
  readonly clearImmediate: (handle: never) => void;
}

/** Below this it is quicker to look at the time again than to go round the event loop. */
const BUSY_WAIT: Millis = 0.03;
/** A host whose time stands still while it is looked at is not waited for. */
const MOST_LOOKS = 10_000;

/**
 * A wall clock. One host timer is armed for the earliest planned time: coarse until `spin` milliseconds before it, then
 * by `setImmediate`, which keeps polling for I/O between looks. (`setTimeout` alone is up to 1–3 ms late; it is asked to come 1.2 ms early, which is a little more than it is late itself.)
 */
export function wallClock(host: HostTimers, spin: Millis = 1.2): Clock {
  return new WallClock(host, spin);
}

class WallClock implements Clock {
  readonly now: () => Millis;
  readonly #host: HostTimers;
  readonly #spin: Millis;
  readonly #queue = new EventQueue();
  /** What is armed: at most one of these, for `#armedFor`. */
  #timeout: unknown;
  #immediate: unknown;
  #armedFor = Number.POSITIVE_INFINITY;

  constructor(host: HostTimers, spin: Millis) {
    this.now = host.now;
    this.#host = host;
    this.#spin = spin;
  }

  at(time: Millis, run: () => void): Cancel {
    const cancel = this.#queue.plan(time, run);
    this.#arm();
    return () => {
      cancel();
      this.#arm();
    };
  }

  #arm(): void {
    const due = this.#queue.nextAt();
    if (due === this.#armedFor) return;
    this.#disarm();
    this.#armedFor = due;
    if (due !== Number.POSITIVE_INFINITY) this.#wait(due - this.#host.now());
  }

  /** Arms for something due in `left`. The spin goes through here tens of times a millisecond: it makes no closures. */
  #wait(left: Millis): void {
    const coarse = Math.floor(left - this.#spin);
    if (coarse >= 1) this.#timeout = this.#host.setTimeout(this.#fire, Math.min(coarse, 2 ** 31 - 1));
    else this.#immediate = this.#host.setImmediate(this.#fire);
  }

  #disarm(): void {
    if (this.#timeout !== undefined) this.#host.clearTimeout(this.#timeout as never);
    if (this.#immediate !== undefined) this.#host.clearImmediate(this.#immediate as never);
    this.#timeout = undefined;
    this.#immediate = undefined;
  }

  readonly #fire = (): void => {
    this.#timeout = undefined;
    this.#immediate = undefined;
    let now = this.#host.now();
    if (this.#armedFor - now <= BUSY_WAIT) {
      for (let looks = 0; now < this.#armedFor && looks < MOST_LOOKS; looks++) now = this.#host.now();
    }
    if (now < this.#armedFor) {
      this.#wait(this.#armedFor - now);
      return;
    }
    this.#armedFor = Number.POSITIVE_INFINITY;
    try {
      // What was due when we woke; what these plan for the same instant waits for the next turn, so I/O is never starved.
      for (let n = this.#queue.size; n > 0 && this.#queue.nextAt() <= now; n--) this.#queue.pop()?.();
    } finally {
      this.#arm();
    }
  };
}

/** Planned callbacks in time order. A cancelled one leaves when it reaches the top. */
class EventQueue {
  #heap = new Heap<{ run: (() => void) | undefined }>();

  get size(): number {
    return this.#heap.size;
  }
  plan(time: Millis, run: () => void): Cancel {
    if (Number.isNaN(time)) throw new Error('internal: a planned time is NaN');
    const entry: { run: (() => void) | undefined } = { run };
    this.#heap.push(time, entry);
    return () => {
      entry.run = undefined;
    };
  }
  nextAt(): Millis {
    while (this.#heap.size > 0 && this.#heap.peek()?.run === undefined) this.#heap.pop();
    return this.#heap.minKey;
  }
  pop(): (() => void) | undefined {
    const entry = this.#heap.pop();
    const run = entry?.run;
    if (entry) entry.run = undefined;
    return run;
  }
}
