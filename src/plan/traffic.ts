/** What a plan is to serve, at any rate: a mix of classes under an arrival process, or a recorded trace made denser or thinner. */
import { Heap } from '../base/heap.ts';
import { keyedSource } from '../base/random.ts';
import type { Millis, PerSecond } from '../base/units.ts';
import type { Offer, RequestSpec, Workload } from '../core/request.ts';
import { type ArrivalPlan, closedMix, type MixPlan, meanTokens, openMix } from '../workload/index.ts';
import { replaySource } from '../workload/traces/replay.ts';
import { type Trace, traceSpan } from '../workload/traces/trace.ts';

/** Plain data: it is sent to worker threads. */
export type Traffic =
  | { readonly kind: 'mix'; readonly mix: MixPlan; readonly process: Pick<ArrivalPlan, 'process' | 'burstiness'> }
  | { readonly kind: 'trace'; readonly trace: Trace };

export function openTraffic(traffic: Traffic, rate: PerSecond, seed: number): Workload {
  return traffic.kind === 'mix'
    ? openMix(traffic.mix, { ...traffic.process, rate }, seed)
    : new TraceLoop(traffic.trace, rate, seed);
}

/** Its requests one by one, `concurrency` of them always under way. Sessions count as requests of their own. */
export function closedTraffic(traffic: Traffic, concurrency: number, seed: number): Workload {
  if (traffic.kind === 'mix') {
    const classes = traffic.mix.classes.map(({ session, ...rest }) => rest);
    return closedMix({ ...traffic.mix, classes }, concurrency, seed);
  }
  const { trace } = traffic;
  const spec = specOf(trace, seed);
  let next = startOf(trace, seed);
  let offered = 0;
  const offer = (at: Millis): Offer => ({ at, spec: { ...spec(next++ % trace.length), operation: offered++ } });
  return {
    next: () => (offered < concurrency ? offer(0) : undefined),
    ended: (_operation, t) => [offer(t)],
  };
}

/** Mean prompt and output tokens of a request. */
export function tokensOf(traffic: Traffic): { readonly input: number; readonly output: number } {
  if (traffic.kind === 'mix') {
    const { requests, input, output } = meanTokens(traffic.mix);
    return { input: input / requests, output: output / requests };
  }
  const { trace } = traffic;
  const mean = (column: ArrayLike<number>): number => {
    let sum = 0;
    for (let i = 0; i < trace.length; i++) sum += column[i] as number;
    return sum / trace.length;
  };
  return { input: mean(trace.input), output: mean(trace.output) };
}

/** Requests an arrival brings: the turns of a session. */
export function turnsOf(traffic: Traffic): number {
  return traffic.kind === 'mix' ? meanTokens(traffic.mix).requests : 1;
}

/** Requests a second of the trace as recorded. */
export function recordedRate(trace: Trace): PerSecond {
  return (1e6 * trace.length) / traceSpan(trace);
}

function specOf(trace: Trace, seed: number): (i: number) => RequestSpec {
  return replaySource({ trace, choices: 1, stream: true, ignoreEos: true, prompt: 'none' }, seed);
}

/** A replication begins at a request of its own: bursts and quiet stretches then fall differently in each. */
function startOf(trace: Trace, seed: number): number {
  return Math.floor(keyedSource(seed, 'trace-start')(0)() * trace.length);
}

/**
 * A trace without end at another rate, its clock kept: each request is left out by chance, or has copies an exponential delay
 * of one mean gap after it, as `--rate-scale` does. So a replica that gets a share of the traffic meets its bursts at the
 * pace they came. After the last request it begins again, with other copies and prefixes of their own.
 */
class TraceLoop implements Workload {
  readonly #trace: Trace;
  readonly #factor: number;
  readonly #seed: number;
  readonly #gap: Millis;
  readonly #chance: ReturnType<typeof keyedSource>;
  readonly #delay: ReturnType<typeof keyedSource>;
  readonly #due = new Heap<{ readonly seen: number; readonly copy: number }>();
  /** Specs by lap and copy: each has prefixes of its own. */
  readonly #specs = new Map<number, (i: number) => RequestSpec>();
  /** Requests of the trace looked at so far, from its first lap's beginning on; and where this began. */
  #seen: number;
  readonly #origin: Millis;
  #operation = 0;

  constructor(trace: Trace, rate: PerSecond, seed: number) {
    this.#trace = trace;
    this.#seed = seed;
    this.#gap = 1000 / recordedRate(trace);
    this.#factor = rate / recordedRate(trace);
    this.#chance = keyedSource(seed, 'trace-rate');
    this.#delay = keyedSource(seed, 'trace-copy');
    this.#seen = startOf(trace, seed);
    this.#origin = this.#at(this.#seen);
  }

  next(): Offer {
    // A copy may come before the trace's next request, never before those already seen.
    while (this.#due.minKey > this.#at(this.#seen)) this.#take(this.#seen++);
    const at = this.#due.minKey;
    const { seen, copy } = this.#due.pop() as { seen: number; copy: number };
    const { length } = this.#trace;
    const spec = this.#specs.get(this.#series(seen, copy)) ?? this.#open(this.#series(seen, copy));
    return { at: at - this.#origin, spec: { ...spec(seen % length), operation: this.#operation++ } };
  }

  ended(): readonly Offer[] {
    return [];
  }

  #take(seen: number): void {
    const whole = Math.floor(this.#factor);
    const n = whole + (this.#chance(seen)() < this.#factor - whole ? 1 : 0);
    const at = this.#at(seen);
    for (let copy = 0; copy < n; copy++) {
      const delay = copy === 0 ? 0 : -this.#gap * Math.log1p(-this.#delay(seen * 1024 + copy)());
      this.#due.push(at + delay, { seen, copy });
    }
  }

  #series(seen: number, copy: number): number {
    return this.#trace.blocks ? Math.floor(seen / this.#trace.length) * (Math.ceil(this.#factor) + 1) + copy : 0;
  }

  #open(series: number): (i: number) => RequestSpec {
    // Late copies of an earlier lap are few: what is dropped here is seldom made again.
    if (this.#specs.size >= 64) this.#specs.clear();
    const made = specOf(shifted(this.#trace, series), this.#seed);
    this.#specs.set(series, made);
    return made;
  }

  #at(seen: number): Millis {
    const { at, length } = this.#trace;
    return (at[seen % length] as number) / 1000 + Math.floor(seen / length) * length * this.#gap;
  }
}

/** The trace with other prefixes: a copy or a later lap does not find in the cache what the original left there. */
function shifted(trace: Trace, series: number): Trace {
  if (!trace.blocks || series === 0) return trace;
  const most = trace.blocks.ids.reduce((a, b) => Math.max(a, b), 0) + 1;
  return { ...trace, blocks: { ...trace.blocks, ids: trace.blocks.ids.map((id) => id + series * most) } };
}
