/** The time a request takes from the server's door to the engine's queue: HTTP, tokenizer, hand-over. */
import type { Millis } from '../base/units.ts';
import type { RequestSpec } from '../core/request.ts';
import { type Cluster, type Finished, type Gauges, QUEUE_FULL, TOO_LONG } from './cluster.ts';

interface Entering {
  readonly id: number;
  readonly spec: RequestSpec;
  readonly arrived: Millis;
  /** When it reaches the queue. */
  readonly at: Millis;
  over: boolean;
}

/**
 * A cluster whose requests reach `inner` a constant time after they came. `Finished.arrived` is when they came, so that
 * queueing includes it. A maximum queue belongs here, not to `inner`, and counts those on their way.
 */
export class FrontendCluster implements Cluster {
  readonly #inner: Cluster;
  readonly #delay: Millis;
  readonly #maxQueue: number;
  #entering: Entering[] = [];
  /** How many at the front of `#entering` are through. */
  #head = 0;
  readonly #byId = new Map<number, { readonly entering: Entering; handle: number }>();
  readonly #byHandle = new Map<number, number>();
  readonly #tmp: Finished[] = [];
  #next = 1;

  constructor(inner: Cluster, delay: Millis, maxQueue = Number.POSITIVE_INFINITY) {
    this.#inner = inner;
    this.#delay = delay;
    this.#maxQueue = maxQueue;
  }

  fits(spec: RequestSpec): boolean {
    return this.#inner.fits(spec);
  }

  offer(spec: RequestSpec, t: Millis): number {
    if (!this.#inner.fits(spec)) return TOO_LONG;
    if (this.#maxQueue < Number.POSITIVE_INFINITY && this.gauges().waiting >= this.#maxQueue) return QUEUE_FULL;
    const entering: Entering = { id: this.#next++, spec, arrived: t, at: t + this.#delay, over: false };
    this.#byId.set(entering.id, { entering, handle: -1 });
    this.#entering.push(entering);
    return entering.id;
  }

  cancel(id: number, t: Millis): Finished | undefined {
    const known = this.#byId.get(id);
    if (!known) return undefined;
    this.#byId.delete(id);
    if (known.handle < 0) {
      // Taken in and out again at once: the inner cluster makes the record of what never began.
      known.entering.over = true;
      const handle = this.#inner.offer(known.entering.spec, t);
      return this.#renamed(this.#inner.cancel(handle, t) as Finished, known.entering);
    }
    this.#byHandle.delete(known.handle);
    const f = this.#inner.cancel(known.handle, t);
    return f && this.#renamed(f, known.entering);
  }

  nextAt(): Millis {
    return Math.min(this.#nextEntry(), this.#inner.nextAt());
  }

  nextStepAt(): Millis {
    return Math.min(this.#nextEntry(), this.#inner.nextStepAt());
  }

  advance(to: Millis, out: Finished[]): void {
    for (let t = this.nextAt(); t < to; t = this.nextAt()) this.#to(t, out);
    this.#to(to, out);
  }

  forEachDecoding(visit: (handle: number, generated: number) => void): void {
    this.#inner.forEachDecoding((handle, generated) => {
      const id = this.#byHandle.get(handle);
      if (id !== undefined) visit(id, generated);
    });
  }

  gauges(): Gauges {
    const inner = this.#inner.gauges();
    let on = 0;
    for (let i = this.#head; i < this.#entering.length; i++) if (!this.#entering[i]!.over) on++;
    return { ...inner, waiting: inner.waiting + on };
  }

  #to(t: Millis, out: Finished[]): void {
    const done = this.#tmp;
    this.#inner.advance(t, done);
    for (const f of done) {
      const id = this.#byHandle.get(f.handle) as number;
      const known = this.#byId.get(id);
      this.#byHandle.delete(f.handle);
      this.#byId.delete(id);
      if (known) out.push(this.#renamed(f, known.entering));
    }
    done.length = 0;
    while (this.#nextEntry() <= t) {
      const entering = this.#entering[this.#head++] as Entering;
      const known = this.#byId.get(entering.id);
      if (!known) continue;
      known.handle = this.#inner.offer(entering.spec, t);
      if (known.handle < 0) throw new Error('internal: the cluster behind a frontend refused a request it could hold');
      this.#byHandle.set(known.handle, entering.id);
    }
    if (this.#head > 1024 && this.#head * 2 > this.#entering.length) {
      this.#entering = this.#entering.slice(this.#head);
      this.#head = 0;
    }
  }

  #nextEntry(): Millis {
    while (this.#head < this.#entering.length && this.#entering[this.#head]!.over) this.#head++;
    return this.#entering[this.#head]?.at ?? Number.POSITIVE_INFINITY;
  }

  #renamed(f: Finished, entering: Entering): Finished {
    f.handle = entering.id;
    f.arrived = entering.arrived;
    return f;
  }
}
