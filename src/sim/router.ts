/** Several replicas behind a router: itself a cluster. */
import type { Millis } from '../base/units.ts';
import type { RequestSpec } from '../core/request.ts';
import { type Cluster, type DecodeCluster, type Finished, type Gauges, NO_GAUGES, TOO_LONG } from './cluster.ts';

/**
 * `round-robin` by turns; `least-loaded` to the fewest requests open; `prefix-affinity` to the replica that last served
 * the longest prefix the request shares, unless it is much fuller than the emptiest (as cache-aware routers do).
 */
export type RouterPolicy = 'round-robin' | 'least-loaded' | 'prefix-affinity';
export const ROUTER_POLICIES: readonly RouterPolicy[] = ['round-robin', 'least-loaded', 'prefix-affinity'];

/** Affinity yields when the home replica has this many requests more than the emptiest, and this many times as many. */
const IMBALANCE = { absolute: 16, ratio: 1.5 };
/** Prefix blocks remembered; the oldest are forgotten. */
const REMEMBERED = 200_000;

export class RoutedCluster<C extends Cluster = Cluster> implements Cluster {
  readonly replicas: readonly C[];
  readonly #policy: RouterPolicy;
  readonly #open: Int32Array;
  /** Each replica's next time, NaN when it must be asked again. */
  readonly #next: Float64Array;
  readonly #homes = new Map<number, number>();
  readonly #one: Finished[] = [];
  #turn = 0;
  #now: Millis = 0;

  constructor(replicas: readonly C[], policy: RouterPolicy) {
    if (replicas.length === 0) throw new Error('internal: a router without replicas');
    this.replicas = replicas;
    this.#policy = policy;
    this.#open = new Int32Array(replicas.length);
    this.#next = new Float64Array(replicas.length).fill(Number.NaN);
  }

  fits(spec: RequestSpec): boolean {
    return this.replicas.some((r) => r.fits(spec));
  }

  offer(spec: RequestSpec, t: Millis): number {
    return this.#place(spec, t, (r) => (this.replicas[r] as C).offer(spec, t));
  }

  cancel(handle: number, t: Millis): Finished | undefined {
    const n = this.replicas.length;
    const r = handle % n;
    this.#sync(r, t);
    this.#next[r] = Number.NaN;
    const f = (this.replicas[r] as C).cancel(Math.floor(handle / n), t);
    if (f) this.#done(f, r);
    return f;
  }

  nextAt(): Millis {
    let min = Number.POSITIVE_INFINITY;
    for (let r = 0; r < this.#next.length; r++) {
      if (Number.isNaN(this.#next[r]!)) {
        this.#sync(r, this.#now);
        this.#next[r] = (this.replicas[r] as C).nextAt();
      }
      if (this.#next[r]! < min) min = this.#next[r]!;
    }
    return min;
  }

  nextStepAt(): Millis {
    let min = Number.POSITIVE_INFINITY;
    for (let r = 0; r < this.replicas.length; r++) {
      this.#sync(r, this.#now);
      const t = (this.replicas[r] as C).nextStepAt();
      if (t < min) min = t;
    }
    return min;
  }

  advance(to: Millis, out: Finished[]): void {
    const before = out.length;
    let contributors = 0;
    for (let r = 0; r < this.replicas.length; r++) {
      if (this.#next[r]! > to) continue; // nothing of its happens until then
      const replica = this.replicas[r] as C;
      const one = this.#one;
      replica.advance(to, one);
      this.#next[r] = Number.NaN;
      if (one.length > 0) contributors++;
      for (let i = 0; i < one.length; i++) {
        this.#done(one[i]!, r);
        out.push(one[i]!);
      }
      one.length = 0;
    }
    if (contributors > 1) {
      const sorted = out.splice(before).sort((a, b) => a.ended - b.ended);
      for (const f of sorted) out.push(f);
    }
    if (to > this.#now) this.#now = to;
  }

  forEachDecoding(visit: (handle: number, generated: number) => void): void {
    const n = this.replicas.length;
    for (let r = 0; r < n; r++) {
      this.#sync(r, this.#now);
      (this.replicas[r] as C).forEachDecoding((handle, generated) => visit(handle * n + r, generated));
    }
  }

  gauges(): Gauges {
    let sum: Gauges = NO_GAUGES;
    for (let r = 0; r < this.replicas.length; r++) {
      this.#sync(r, this.#now);
      sum = addGauges(sum, (this.replicas[r] as C).gauges());
    }
    return sum;
  }

  /** @param give offers the request to the chosen replica. */
  protected placeWith(spec: RequestSpec, t: Millis, give: (replica: C) => number): number {
    return this.#place(spec, t, (r) => give(this.replicas[r] as C));
  }

  #place(spec: RequestSpec, t: Millis, give: (r: number) => number): number {
    this.#now = Math.max(this.#now, t);
    const r = this.#choose(spec);
    if (r < 0) return TOO_LONG;
    this.#sync(r, t);
    const handle = give(r);
    if (handle < 0) return handle;
    this.#next[r] = Number.NaN;
    this.#open[r]!++;
    return handle * this.replicas.length + r;
  }

  #choose(spec: RequestSpec): number {
    const n = this.replicas.length;
    if (this.#policy === 'round-robin') {
      for (let i = 0; i < n; i++) {
        const r = this.#turn;
        this.#turn = (this.#turn + 1) % n;
        if ((this.replicas[r] as C).fits(spec)) return r;
      }
      return -1;
    }
    let least = -1;
    for (let r = 0; r < n; r++) {
      if ((least < 0 || this.#open[r]! < this.#open[least]!) && (this.replicas[r] as C).fits(spec)) least = r;
    }
    const hashes = spec.prefixBlocks;
    if (this.#policy === 'least-loaded' || least < 0 || !hashes) return least;
    let home = -1;
    for (let i = hashes.length - 1; i >= 0 && home < 0; i--) home = this.#homes.get(hashes[i]!) ?? -1;
    const few = this.#open[least]!;
    const far = home < 0 || (this.#open[home]! > few + IMBALANCE.absolute && this.#open[home]! > few * IMBALANCE.ratio);
    const chosen = far || !(this.replicas[home] as C).fits(spec) ? least : home;
    for (const hash of hashes) {
      this.#homes.delete(hash);
      this.#homes.set(hash, chosen);
    }
    for (const oldest of this.#homes.keys()) {
      if (this.#homes.size <= REMEMBERED) break;
      this.#homes.delete(oldest);
    }
    return chosen;
  }

  /** Brings a replica that had nothing to do to `t`: its time stands where it was last needed. */
  #sync(r: number, t: Millis): void {
    const before = this.#one.length;
    (this.replicas[r] as C).advance(t, this.#one);
    if (this.#one.length > before) throw new Error('internal: a replica was left behind its own events');
  }

  #done(f: Finished, r: number): void {
    f.handle = f.handle * this.replicas.length + r;
    this.#open[r]!--;
  }
}

/** A router over replicas that can take over decodes. */
export class RoutedDecodeCluster extends RoutedCluster<DecodeCluster> implements DecodeCluster {
  offerReady(spec: RequestSpec, t: Millis): number {
    return this.placeWith(spec, t, (replica) => replica.offerReady(spec, t));
  }
}

export function addGauges(a: Gauges, b: Gauges): Gauges {
  const kvUsed = a.kvUsed + b.kvUsed;
  const kvBlocks = a.kvBlocks + b.kvBlocks;
  return {
    running: a.running + b.running,
    waiting: a.waiting + b.waiting,
    kvUsed,
    kvBlocks,
    kvUsage: kvBlocks > 0 ? kvUsed / kvBlocks : 0,
    preemptions: a.preemptions + b.preemptions,
    promptTokens: a.promptTokens + b.promptTokens,
    generationTokens: a.generationTokens + b.generationTokens,
    steps: a.steps + b.steps,
    prefixQueries: a.prefixQueries + b.prefixQueries,
    prefixHits: a.prefixHits + b.prefixHits,
  };
}
