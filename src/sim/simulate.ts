/** The door without a clock: a pull loop over a workload and a cluster. No callback a token, nothing expanded unasked. */
import { InputError } from '../base/errors.ts';
import { Heap } from '../base/heap.ts';
import { type Millis, toMicroGrid } from '../base/units.ts';
import type { ContractFor } from '../core/contract.ts';
import type { Offer, RequestSpec, Workload } from '../core/request.ts';
import type { Sink } from '../core/sink.ts';
import { type Cluster, type Finished, QUEUE_FULL } from './cluster.ts';
import { recordOf, type SimDone, type SimOutcome, unsentRecord } from './record-of.ts';

/** Told of each operation as it ends. Returning `true` stops the simulation there. */
export type SimConsumer = (done: SimDone) => unknown;

export interface SimOptions {
  /** Offers scheduled at or after this are not made; what is open then is served to its end. Default: all offers. */
  readonly until?: Millis;
  /** An operation still open this long after it was scheduled is taken out and ends `timed-out`. */
  readonly deadline?: Millis | ((spec: RequestSpec) => Millis | undefined);
  /** Contracts of the traffic classes, where `deadline` says nothing: each operation has the deadline of its class. */
  readonly contractFor?: ContractFor;
  /** Told of offers that are not to be sent (a turn whose predecessor failed); they count as offered and ended. */
  readonly unsent?: (offer: Offer, t: Millis) => void;
}

export interface SimSummary {
  /** Operations offered, and of them still open when a consumer stopped the run. */
  readonly offered: number;
  readonly open: number;
  /** Virtual time at the end. */
  readonly now: Millis;
}

/**
 * A simulation that can be run in slices. `simulate` runs it whole. Offers come on the microsecond grid, as `drive` makes
 * them, so that both schedule the same.
 */
export class Simulation {
  readonly #workload: Workload;
  readonly #cluster: Cluster;
  readonly #consume: SimConsumer;
  readonly #until: Millis;
  readonly #deadline: ((spec: RequestSpec) => Millis | undefined) | undefined;
  readonly #unsent: ((offer: Offer, t: Millis) => void) | undefined;
  readonly #released = new Heap<Offer>();
  readonly #deadlines = new Heap<number>();
  readonly #out: Finished[] = [];
  #next: Offer | undefined;
  #nextAt: Millis = Number.POSITIVE_INFINITY;
  #offered = 0;
  #ended = 0;
  #now: Millis = 0;
  #stopped = false;

  constructor(workload: Workload, cluster: Cluster, consume: SimConsumer, options: SimOptions = {}) {
    this.#workload = workload;
    this.#cluster = cluster;
    this.#consume = consume;
    this.#until = options.until ?? Number.POSITIVE_INFINITY;
    this.#unsent = options.unsent;
    this.#deadline = deadlineOf(options);
    this.#pull();
  }

  /** Runs until nothing is left, the consumer stops it, or `pause` says so between events. @returns whether it is over. */
  run(pause?: () => boolean): boolean {
    const cluster = this.#cluster;
    const out = this.#out;
    while (!this.#stopped) {
      const arrival = Math.min(this.#nextAt, this.#released.minKey);
      const t = Math.min(arrival, cluster.nextAt(), this.#deadlines.minKey);
      if (t === Number.POSITIVE_INFINITY) return true;
      this.#now = t;
      cluster.advance(t, out);
      for (let i = 0; i < out.length && !this.#stopped; i++) {
        const f = out[i]!;
        this.#end({ spec: f.spec, scheduled: f.arrived, ended: f.ended, outcome: 'completed', finished: f });
      }
      while (out.length > 0) out.pop(); // `length = 0` would free the array
      while (this.#deadlines.minKey <= t && !this.#stopped) {
        const f = cluster.cancel(this.#deadlines.pop() as number, t);
        if (f) this.#end({ spec: f.spec, scheduled: f.arrived, ended: t, outcome: 'timed-out', finished: f });
      }
      while (this.#nextAt <= t && !this.#stopped) {
        const offer = this.#next as Offer;
        this.#pull();
        this.#offer(offer, t);
      }
      while (this.#released.minKey <= t && !this.#stopped) this.#offer(this.#released.pop() as Offer, t);
      if (pause?.()) return this.#stopped;
    }
    return true;
  }

  summary(): SimSummary {
    return { offered: this.#offered, open: this.#offered - this.#ended, now: this.#now };
  }

  #pull(): void {
    this.#next = this.#workload.next();
    const at = this.#next?.at ?? Number.POSITIVE_INFINITY;
    this.#nextAt = at < this.#until ? toMicroGrid(at) : Number.POSITIVE_INFINITY;
  }

  #offer(offer: Offer, t: Millis): void {
    const { spec } = offer;
    if (offer.unsent !== undefined) {
      this.#offered++;
      this.#ended++;
      this.#unsent?.(offer, t);
      this.#release(this.#workload.ended(spec.operation, t, false));
      return;
    }
    if (spec.choices > 1) {
      throw new InputError(
        `operation ${spec.operation} asks for ${spec.choices} choices; simulate them as requests of one choice each`,
      );
    }
    this.#offered++;
    const handle = this.#cluster.offer(spec, t);
    if (handle < 0) {
      const outcome: SimOutcome = handle === QUEUE_FULL ? 'queue-full' : 'too-long';
      this.#end({ spec, scheduled: t, ended: t, outcome });
      return;
    }
    const deadline = this.#deadline?.(spec);
    if (deadline !== undefined) this.#deadlines.push(toMicroGrid(t) + deadline, handle);
  }

  #end(done: SimDone): void {
    this.#ended++;
    if (this.#consume(done) === true) this.#stopped = true;
    this.#release(this.#workload.ended(done.spec.operation, done.ended, done.outcome === 'completed'));
  }

  #release(released: readonly Offer[]): void {
    for (let i = 0; i < released.length; i++) {
      const offer = released[i]!;
      const at = Math.max(toMicroGrid(offer.at), this.#now);
      if (at < this.#until) this.#released.push(at, offer);
    }
  }
}

function deadlineOf({ deadline, contractFor }: SimOptions): ((spec: RequestSpec) => Millis | undefined) | undefined {
  if (typeof deadline === 'number') return () => deadline;
  if (deadline !== undefined || contractFor === undefined) return deadline;
  return (spec) => contractFor(spec.class).deadline;
}

export function simulate(
  workload: Workload,
  cluster: Cluster,
  consume: SimConsumer,
  options: SimOptions = {},
): SimSummary {
  const simulation = new Simulation(workload, cluster, consume, options);
  simulation.run();
  return simulation.summary();
}

/** As `simulate`, with every record built and handed to a sink, unsent ones too; waits while the sink is full. */
export async function simulateInto(
  workload: Workload,
  cluster: Cluster,
  sink: Sink,
  options: SimOptions = {},
): Promise<SimSummary> {
  const unsent = options.unsent ?? ((offer: Offer, t: Millis): void => sink.add(unsentRecord(offer, t)));
  const simulation = new Simulation(workload, cluster, (done) => sink.add(recordOf(done)), { ...options, unsent });
  while (!simulation.run(() => sink.full)) await sink.drained();
  return simulation.summary();
}
