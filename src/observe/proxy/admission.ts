/**
 * Who is sent on now, who waits, who is refused. Without a cap everyone goes at once. With one, a request that would miss
 * its contract by waiting is refused while its caller can still go elsewhere: queueing it would only make those behind it
 * late as well.
 */
import type { Millis } from '../../base/units.ts';
import { choose, type Upstream } from './upstream.ts';

export interface Admitted {
  /** When it was received. */
  readonly at: Millis;
  /** The TTFT limit of its class, from receipt; +∞ without one. */
  readonly ttftLimit: Millis;
  dispatch(upstream: Upstream): void;
  /** @param retryAfter whole seconds. */
  refuse(retryAfter: number, why: string): void;
}

export interface AdmissionOptions {
  /** Refused when it has waited this long, +∞ without a bound. */
  readonly maxQueueAge: Millis;
  /** Requests that may wait. */
  readonly maxQueue: number;
}

/** The last so many observations: enough to know a rate, few enough to follow it. */
const KEPT = 64;

export class Admission {
  readonly #upstreams: readonly Upstream[];
  readonly #options: AdmissionOptions;
  readonly #now: () => Millis;
  /** Insertion order is arrival order. */
  readonly #queue = new Set<Admitted>();
  readonly #releases = new Ring(KEPT);
  readonly #ttfts = new Ring(KEPT);
  #turn = 0;

  constructor(upstreams: readonly Upstream[], options: AdmissionOptions, now: () => Millis) {
    this.#upstreams = upstreams;
    this.#options = options;
    this.#now = now;
  }

  get queued(): number {
    return this.#queue.size;
  }

  enter(request: Admitted): void {
    const now = this.#now();
    const upstream = this.#queue.size === 0 ? choose(this.#upstreams, this.#turn++, now) : undefined;
    if (upstream !== undefined) {
      request.dispatch(upstream);
      return;
    }
    const wait = this.#waitOf(this.#queue.size);
    const why = this.#queue.size >= this.#options.maxQueue ? 'the queue is full' : this.#hopeless(request, now, wait);
    if (why === undefined) this.#queue.add(request);
    else request.refuse(retryAfter(wait), why);
  }

  /** Its caller left while it waited. */
  leave(request: Admitted): void {
    this.#queue.delete(request);
  }

  /** A request is done with an upstream: the next in line may go. */
  released(): void {
    if (this.#queue.size === 0) return;
    const now = this.#now();
    this.#releases.push(now);
    this.#serve(now);
  }

  /** From dispatch to the first output, as served just now. */
  served(ttft: Millis): void {
    this.#ttfts.push(ttft);
  }

  /** Refuses those that have become hopeless while they waited. To be called a few times a second. */
  sweep(): void {
    if (this.#queue.size === 0) return;
    const now = this.#now();
    this.#serve(now);
    for (const request of this.#queue) {
      const why = this.#hopeless(request, now, 0);
      if (why === undefined) continue;
      this.#queue.delete(request);
      request.refuse(retryAfter(this.#waitOf(this.#queue.size)), why);
    }
  }

  #serve(now: Millis): void {
    for (const request of this.#queue) {
      const why = this.#hopeless(request, now, 0);
      if (why !== undefined) {
        this.#queue.delete(request);
        request.refuse(retryAfter(this.#waitOf(this.#queue.size)), why);
        continue;
      }
      const upstream = choose(this.#upstreams, this.#turn++, now);
      if (upstream === undefined) return;
      this.#queue.delete(request);
      request.dispatch(upstream);
    }
  }

  /** Why waiting `wait` more would be for nothing; undefined while there is hope. */
  #hopeless(request: Admitted, now: Millis, wait: Millis): string | undefined {
    const age = now - request.at + wait;
    if (age > this.#options.maxQueueAge) return 'it would wait longer than requests may';
    // The best it could hope for is what the quickest tenth are served in.
    if (age + (this.#ttfts.low(0.1) ?? 0) > request.ttftLimit) return 'it would miss its TTFT limit';
    return undefined;
  }

  /** How long the request at `place` will wait, by how often others were released; 0 where that is not known yet. */
  #waitOf(place: number): Millis {
    const span = this.#releases.span();
    return span === undefined ? 0 : (place + 1) * span;
  }
}

const retryAfter = (wait: Millis): number => Math.max(1, Math.ceil(wait / 1000));

class Ring {
  readonly #size: number;
  readonly #values: number[] = [];
  #next = 0;
  constructor(size: number) {
    this.#size = size;
  }
  push(x: number): void {
    this.#values[this.#next] = x;
    this.#next = (this.#next + 1) % this.#size;
  }
  /** Mean difference of values that only grow. */
  span(): number | undefined {
    const n = this.#values.length;
    if (n < 8) return undefined;
    return (Math.max(...this.#values) - Math.min(...this.#values)) / (n - 1);
  }
  low(p: number): number | undefined {
    if (this.#values.length < 8) return undefined;
    const sorted = [...this.#values].sort((a, b) => a - b);
    return sorted[Math.floor(p * (sorted.length - 1))];
  }
}
