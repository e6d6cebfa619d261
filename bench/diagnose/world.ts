/**
 * One serving system under one load, as numbers: what a scenario changes. All of it is drawn from declared ranges; nothing
 * here knows how a diagnosis works, and the diagnosis may not import it.
 */
import { keyed, type Uniform } from '../../src/base/random.ts';

export interface World {
  readonly seed: number;
  readonly requests: number;
  /** Requests a second, and the shape of gamma inter-arrivals (1: Poisson; below: burstier). */
  readonly rate: number;
  readonly shape: number;
  readonly prompt: number;
  readonly promptCv: number;
  readonly output: number;
  readonly outputCv: number;
  /** Traffic classes, by weight; class 1 carries what one kind of request has (a schema, an image). */
  readonly classes: readonly number[];
  /** Share of each prompt that is one of `prefixGroups` common prefixes, and whether the cache works. */
  readonly prefixShare: number;
  readonly prefixGroups: number;
  readonly caching: boolean;
  /** Replicas, by share of the requests. */
  readonly replicas: readonly number[];
  readonly maxSeqs: number;
  readonly budget: number;
  /** KV blocks of 16 tokens a replica. */
  readonly kvBlocks: number;
  /** Step time, ms: base + a prefill token + a decoding sequence + a token of KV. */
  readonly base: number;
  readonly perToken: number;
  readonly perSequence: number;
  readonly perKv: number;
  readonly speculation?: { readonly draftTokens: number; readonly acceptance: number };
  readonly gpuClock: number;
  // ---- before the engine, ms ----
  /** Constant, and the service of one process that all requests pass in order. */
  readonly frontend: number;
  readonly frontendService: number;
  /** What requests of class 1 pay beside. */
  readonly classExtra: number;
  /** The scheduler admits only at multiples of this; 0: always. */
  readonly gate: number;
  /** The client's own service a request, and what opening a connection costs. */
  readonly clientService: number;
  readonly connect: number;
  /** A client gives up on the first token after this and asks again, three times at most; 0: never. */
  readonly retryAfter: number;
  /** Loading an adapter that is not among the two last used. */
  readonly swap: number;
  /** Loading the model: share of requests, and how long. */
  readonly reloadShare: number;
  readonly reload: number;
  /** The first share of requests pays so much each, falling to 0. */
  readonly coldShare: number;
  readonly cold: number;
  /** KV transfer: constant, and a prompt token. */
  readonly transfer: number;
  readonly transferPerToken: number;
  /** Between server and client. */
  readonly delivery: Delivery;
  readonly network: number;
  // ---- what is told ----
  readonly perRequestTimes: boolean;
  readonly metrics: boolean;
  readonly restarted: boolean;
  readonly hasClock: boolean;
}

export type Delivery =
  | { readonly kind: 'straight' }
  /** A proxy holds tokens until a block of so many is full, or the end. */
  | { readonly kind: 'block'; readonly tokens: number }
  /** The server sends so many tokens a chunk. */
  | { readonly kind: 'batch'; readonly tokens: number }
  /** The whole answer first, then all of it at once. */
  | { readonly kind: 'whole' }
  /** The sending process stops every `period` ms for `pause` ms, growing by `growth` over the run. */
  | { readonly kind: 'pauses'; readonly period: number; readonly pause: number; readonly growth: number };

export class Draw {
  readonly #u: Uniform;
  constructor(seed: number, purpose: string) {
    this.#u = keyed(seed, purpose);
  }
  share(): number {
    return this.#u();
  }
  chance(p: number): boolean {
    return this.#u() < p;
  }
  between(low: number, high: number): number {
    return low + (high - low) * this.#u();
  }
  /** Log-uniform. */
  scale(low: number, high: number): number {
    return low * (high / low) ** this.#u();
  }
  whole(low: number, high: number): number {
    return Math.floor(low + (high - low + 1) * this.#u());
  }
  pick<T>(from: readonly T[]): T {
    return from[Math.floor(this.#u() * from.length)] as T;
  }
}

/** Requests a second one replica of the world could serve, roughly: its utilisation's denominator. */
export function capacityOf(w: World): number {
  const context = w.prompt + w.output / 2;
  const batch = Math.max(1, Math.min(0.7 * w.maxSeqs, (16 * w.kvBlocks) / (w.prompt + w.output)));
  const computed = w.caching ? w.prompt * (1 - 0.9 * w.prefixShare) : w.prompt;
  const decode = w.output * (w.base / batch + w.perSequence + w.perKv * context);
  return 1000 / (computed * w.perToken + decode);
}

/** A healthy system, drawn. */
export function drawWorld(seed: number): World {
  const d = new Draw(seed, 'world');
  const replicas = Array.from({ length: d.pick([1, 1, 2, 3, 4]) }, () => 1);
  const prompt = Math.round(d.scale(250, 2500));
  const output = Math.round(d.scale(60, 220));
  const maxSeqs = d.whole(12, 48);
  const classes = d.pick([[1], [0.7, 0.3], [0.5, 0.3, 0.2]] as const);
  const base: World = {
    seed,
    requests: d.whole(700, 1300),
    rate: 1,
    shape: 1,
    prompt,
    promptCv: d.between(0.3, 0.9),
    output,
    outputCv: d.between(0.2, 0.7),
    classes,
    prefixShare: d.pick([0, d.between(0.3, 0.8), d.between(0.3, 0.8)]),
    prefixGroups: d.whole(2, 8),
    caching: true,
    replicas,
    maxSeqs,
    budget: d.pick([2048, 4096, 8192]),
    kvBlocks: Math.ceil(((prompt + output) * maxSeqs * d.between(1.3, 2.2)) / 16) + 600,
    base: d.scale(5, 18),
    perToken: d.scale(0.03, 0.12),
    perSequence: d.scale(0.05, 0.25),
    perKv: d.scale(5e-6, 5e-5),
    gpuClock: d.pick([1410, 1755, 1980]),
    frontend: d.between(2, 15),
    frontendService: d.between(0.1, 0.8),
    classExtra: 0,
    gate: 0,
    clientService: 0.05,
    connect: d.between(0.2, 2),
    retryAfter: 0,
    swap: 0,
    reloadShare: 0,
    reload: 0,
    coldShare: 0,
    cold: 0,
    transfer: 0,
    transferPerToken: 0,
    delivery: { kind: 'straight' },
    network: d.between(0.3, 8),
    perRequestTimes: d.chance(0.5),
    metrics: true,
    restarted: false,
    hasClock: d.chance(0.6),
  };
  const rate = capacityOf(base) * replicas.length * d.between(0.3, 0.7);
  return { ...base, rate };
}
