/**
 * Connections to one target. A lane is one undici client, so one socket at a time and one request at a time; as many as
 * there are requests in flight. Its own pool, not undici's, because we must know which socket a request went out on, have
 * connections open beforehand, and be able to give up one that is still connecting.
 */
import type { Socket } from 'node:net';
import { Client } from 'undici';
import type { Millis } from '../base/units.ts';
import type { Cancel, Clock } from '../core/clock.ts';
import type { Dial } from './dial.ts';

export interface LaneLimits {
  /** How long an idle connection is kept. A server's own `keep-alive: timeout` hint wins. */
  readonly keepAlive: Millis;
  readonly maxResponseBytes: number;
}

/** One client. `socket`, `openedAt` and `served` are of its present connection. */
export class Lane {
  readonly client: Client;
  socket: Socket | undefined;
  openedAt: Millis = 0;
  /** Requests sent on this connection so far. */
  served = 0;
  #cancelDial: Cancel = () => {};

  constructor(origin: string, limits: LaneLimits, connect: (lane: Lane, done: Parameters<Dial>[0]) => Cancel) {
    this.client = new Client(origin, {
      pipelining: 1,
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: limits.keepAlive,
      maxResponseSize: limits.maxResponseBytes,
      connect: (_, callback) => {
        this.#cancelDial = connect(this, (error, socket) => {
          if (error) callback(error, null);
          else callback(null, socket as Socket);
        });
      },
    });
  }

  destroy(): void {
    this.#cancelDial();
    void this.client.destroy().catch(() => {});
  }
}

export class Lanes {
  readonly #origin: string;
  readonly #dial: Dial;
  readonly #clock: Clock;
  readonly #limits: LaneLimits;
  /** Idle lanes; the last used is taken first, so that idle connections are few and fresh. */
  readonly #idle: Lane[] = [];
  readonly #all = new Set<Lane>();
  /** Connections opened beforehand that no lane has taken yet. */
  readonly #spare = new Set<Spare>();
  readonly #dialing = new Set<Cancel>();
  #closed = false;
  /** Connections opened so far, those beforehand included. */
  opened = 0;

  constructor(origin: string, dial: Dial, clock: Clock, limits: LaneLimits) {
    this.#origin = origin;
    this.#dial = dial;
    this.#clock = clock;
    this.#limits = limits;
  }

  take(): Lane {
    const idle = this.#idle.pop();
    if (idle !== undefined) return idle;
    const lane = new Lane(this.#origin, this.#limits, (l, done) => this.#connect(l, done));
    this.#all.add(lane);
    return lane;
  }

  /** The lane's response came to its clean end. */
  give(lane: Lane): void {
    if (this.#all.has(lane)) this.#idle.push(lane);
  }

  /** The lane's request was given up or failed: its connection is destroyed. Doing so twice does nothing. */
  drop(lane: Lane): void {
    if (this.#all.delete(lane)) lane.destroy();
  }

  /**
   * Opens connections until `count` are open and idle, some at a time. Gives how many are; the error of the first that
   * could not be opened, after which no more are tried.
   */
  async warm(count: number, atOnce = 64): Promise<{ readonly open: number; readonly error?: Error }> {
    let error: Error | undefined;
    const one = async (): Promise<void> => {
      while (!this.#closed && error === undefined && this.#spare.size + this.#dialing.size < count) {
        error ??= await this.#dialSpare();
      }
    };
    await Promise.all(Array.from({ length: Math.min(atOnce, count) }, one));
    return { open: this.#spare.size, ...(error && { error }) };
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const cancel of this.#dialing) cancel();
    for (const spare of this.#spare) spare.socket.destroy();
    this.#spare.clear();
    const lanes = [...this.#all];
    this.#all.clear();
    this.#idle.length = 0;
    await Promise.all(lanes.map((lane) => lane.client.destroy().catch(() => {})));
  }

  #connect(lane: Lane, done: Parameters<Dial>[0]): Cancel {
    const use = (socket: Socket, openedAt: Millis): void => {
      lane.socket = socket;
      lane.openedAt = openedAt;
      lane.served = 0;
      done(null, socket);
    };
    const spare = this.#takeSpare();
    if (spare !== undefined) {
      let cancelled = false;
      // undici resumes a client's queue only after the call to its connector has returned.
      queueMicrotask(() => {
        if (cancelled) spare.socket.destroy();
        else use(spare.socket, spare.openedAt);
      });
      return () => {
        cancelled = true;
      };
    }
    return this.#dial((error, socket) => {
      if (error || socket === undefined) return done(plain(error), undefined);
      this.opened++;
      use(socket, this.#clock.now());
    });
  }

  #takeSpare(): Spare | undefined {
    for (const spare of this.#spare) {
      this.#spare.delete(spare);
      spare.release();
      if (!spare.socket.destroyed && spare.socket.readable && spare.socket.writable) return spare;
      spare.socket.destroy();
    }
    return undefined;
  }

  #dialSpare(): Promise<Error | undefined> {
    return new Promise((resolve) => {
      const cancel = this.#dial((error, socket) => {
        this.#dialing.delete(stop);
        if (error || socket === undefined) return resolve(error ?? new Error('no socket'));
        this.opened++;
        const spare = new Spare(socket, this.#clock.now(), () => this.#spare.delete(spare));
        this.#spare.add(spare);
        resolve(undefined);
      });
      const stop = (): void => {
        cancel();
        this.#dialing.delete(stop);
        resolve(new Error('closed'));
      };
      this.#dialing.add(stop);
    });
  }
}

/** A connection nobody uses yet. It leaves when the server closes it. */
class Spare {
  readonly socket: Socket;
  readonly openedAt: Millis;
  readonly #gone: () => void;

  constructor(socket: Socket, openedAt: Millis, gone: () => void) {
    this.socket = socket;
    this.openedAt = openedAt;
    this.#gone = gone;
    socket.on('close', gone); // its errors are swallowed by the connector's own listener
  }

  release(): void {
    this.socket.off('close', this.#gone);
  }
}

/**
 * undici takes a connector's `UND_ERR_SOCKET` for a connection lost in passing and dials again without end; under
 * another code it fails the request, as it should.
 */
function plain(error: Error | null): Error {
  if (error === null) return new Error('no socket');
  if ((error as { code?: unknown }).code !== 'UND_ERR_SOCKET') return error;
  return Object.assign(new Error(error.message, { cause: error }), { code: 'ECONNRESET' });
}
