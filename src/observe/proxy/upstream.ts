/** An upstream: its connections, how much it has in flight, and whether it is fit to be chosen. */
import type { Millis } from '../../base/units.ts';
import { Connection, type ConnectionEvents, type Destination } from './connection.ts';

/** Failures in a row after which an upstream is passed over, and for how long: doubled at each further one. */
const FAILURES = 3;
const PAUSE: Millis = 1000;
const LONGEST_PAUSE: Millis = 30_000;
/** Idle connections kept, and for how long: below what common servers keep theirs (uvicorn: 5 s). */
const MOST_IDLE = 4096;
const IDLE: Millis = 4000;

export interface UpstreamTarget extends Destination {
  /** As shown: scheme, host and port, no user, password or query. */
  readonly url: string;
  /** For the `Host` header. */
  readonly authority: string;
  /** Path put before the request's, without a trailing slash. */
  readonly prefix: string;
}

interface Idle {
  readonly connection: Connection;
  readonly since: Millis;
}

export class Upstream {
  readonly target: UpstreamTarget;
  /** Requests it may have in flight, +∞ without a cap. */
  readonly maxConcurrency: number;
  inFlight = 0;
  requests = 0;
  failures = 0;
  #failuresInRow = 0;
  #pausedUntil: Millis = Number.NEGATIVE_INFINITY;
  readonly #idle: Idle[] = [];

  constructor(target: UpstreamTarget, maxConcurrency: number = Number.POSITIVE_INFINITY) {
    this.target = target;
    this.maxConcurrency = maxConcurrency;
  }

  get hasRoom(): boolean {
    return this.inFlight < this.maxConcurrency;
  }
  isHealthy(now: Millis): boolean {
    return now >= this.#pausedUntil;
  }
  get pausedUntil(): Millis {
    return this.#pausedUntil;
  }

  /** An idle connection, else a new one. `fresh` passes idle ones by. */
  connection(fresh = false): Connection {
    for (let idle = fresh ? undefined : this.#idle.pop(); idle !== undefined; idle = this.#idle.pop()) {
      if (idle.connection.isOpen && !idle.connection.socket.readableEnded) return idle.connection;
      idle.connection.destroy();
    }
    return new Connection(this.target);
  }

  /** Gives a connection back that is at rest after a whole exchange. */
  keep(connection: Connection, now: Millis): void {
    if (this.#idle.length >= MOST_IDLE) {
      connection.destroy();
      return;
    }
    connection.listen(whileIdle(connection));
    connection.resume();
    this.#idle.push({ connection, since: now });
  }

  /** Drops connections that have been idle too long. */
  sweep(now: Millis): void {
    let old = 0;
    while (old < this.#idle.length && now - this.#idle[old]!.since > IDLE) old++;
    for (const { connection } of this.#idle.splice(0, old)) connection.destroy();
  }

  succeeded(): void {
    this.#failuresInRow = 0;
  }

  /** A connection refused, reset or broken: the request's own end says nothing of the next one's, three in a row do. */
  failed(now: Millis): void {
    this.failures++;
    this.#failuresInRow++;
    const over = this.#failuresInRow - FAILURES;
    if (over >= 0) this.#pausedUntil = now + Math.min(LONGEST_PAUSE, PAUSE * 2 ** Math.min(over, 10));
  }

  close(): void {
    for (const { connection } of this.#idle.splice(0)) connection.destroy();
  }
}

/** An upstream that speaks or closes while nothing is asked is done with. */
function whileIdle(connection: Connection): ConnectionEvents {
  const drop = (): void => connection.destroy();
  return { connected: drop, read: drop, end: drop, closed: () => {}, drain: () => {} };
}

/**
 * The one to ask: of the healthy ones with room, that with the fewest in flight, in turn among equals. Where none is
 * healthy, the one whose pause ends first: refusing everything would be worse than trying. Undefined when all are full.
 */
export function choose(
  upstreams: readonly Upstream[],
  turn: number,
  now: Millis,
  not?: Upstream,
): Upstream | undefined {
  let best: Upstream | undefined;
  let resting: Upstream | undefined;
  for (let i = 0; i < upstreams.length; i++) {
    const upstream = upstreams[(turn + i) % upstreams.length] as Upstream;
    if (!upstream.hasRoom || upstream === not) continue;
    if (!upstream.isHealthy(now)) {
      if (resting === undefined || upstream.pausedUntil < resting.pausedUntil) resting = upstream;
    } else if (best === undefined || upstream.inFlight < best.inFlight) best = upstream;
  }
  return best ?? resting;
}
