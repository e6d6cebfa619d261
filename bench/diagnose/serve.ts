/**
 * A world served: the simulator runs each replica's requests, mechanics outside the engine (declared in `World`) move the
 * stamps, and out come the records a client would have made and the metrics the servers would have shown.
 */
import { keyed } from '../../src/base/random.ts';
import type { Evidence, Gauged, Meaning, Observed, ReplicaEvidence } from '../../src/core/evidence.ts';
import type { RequestRecord } from '../../src/core/record.ts';
import type { RequestSpec } from '../../src/core/request.ts';
import { BUCKETS, oneTwoFive } from '../../src/emulate/metrics.ts';
import type { DecodePiece, StepBatch, StepModel } from '../../src/model/step.ts';
import type { Cluster, Finished } from '../../src/sim/cluster.ts';
import { ContinuousReplica } from '../../src/sim/continuous.ts';
import { limitsOf } from '../../src/sim/limits.ts';
import { SpeculativeReplica } from '../../src/sim/speculative.ts';
import { delivered } from './delivery.ts';
import type { World } from './world.ts';

/** One attempt on its way to an engine. Times in ms. */
interface Trip {
  readonly operation: number;
  readonly attempt: number;
  readonly scheduled: number;
  readonly dispatched: number;
  readonly sent: number;
  /** At the server's door, through its frontend (where the engine's queue begins), and when the engine may take it. */
  readonly door: number;
  readonly queued: number;
  readonly ready: number;
  readonly replica: number;
  readonly spec: RequestSpec;
  readonly class: number;
  readonly load: number;
  readonly cold: number;
}

export interface Served {
  readonly records: readonly RequestRecord[];
  readonly evidence: Evidence | undefined;
}

/** Wall time of the epoch of every gym run, Unix ms. */
export const EPOCH = 1_760_000_000_000;

export function serve(world: World): Served {
  const loads = plan(world);
  let trips = travel(world, loads);
  let finished = run(world, trips);
  if (world.retryAfter > 0) {
    // Who waits longer than that asks again; the first to answer is kept. Twice around settles the load.
    for (let i = 0; i < 2; i++) {
      trips = withRetries(world, loads, trips, finished.byTrip);
      finished = run(world, trips);
    }
  }
  const records = recordsOf(world, trips, finished.byTrip);
  return { records, evidence: world.metrics ? evidenceOf(world, trips, finished) : undefined };
}

interface Load {
  readonly operation: number;
  readonly at: number;
  readonly spec: RequestSpec;
  readonly class: number;
}

function plan(w: World): Load[] {
  const arrivals = keyed(w.seed, 'arrivals');
  const lengths = keyed(w.seed, 'lengths');
  let at = 0;
  return Array.from({ length: w.requests }, (_, operation) => {
    at += (1000 / w.rate) * gamma(w.shape, arrivals);
    const inputTokens = Math.max(8, Math.min(16_000, Math.round(lognormal(w.prompt, w.promptCv, lengths))));
    const outputTokens = Math.max(4, Math.min(4000, Math.round(lognormal(w.output, w.outputCv, lengths))));
    let pick = lengths();
    let cls = 0;
    while (cls < w.classes.length - 1 && pick >= w.classes[cls]!) pick -= w.classes[cls++]!;
    const group = Math.floor(lengths() * w.prefixGroups);
    const blocks = Math.floor(inputTokens / 16);
    const common = Math.floor(blocks * w.prefixShare);
    const prefixBlocks = Array.from({ length: blocks }, (_, i) =>
      i < common ? 1 + group * 1_000_000 + i : 1e9 + operation * 4096 + i,
    );
    return {
      operation,
      at,
      class: cls,
      spec: {
        operation,
        attempt: 0,
        class: `class-${cls}`,
        inputTokens,
        outputTokens,
        choices: 1,
        stream: true,
        ignoreEos: true,
        prefixBlocks,
      },
    };
  });
}

function travel(w: World, loads: readonly Load[]): Trip[] {
  const out: Trip[] = [];
  const draws = keyed(w.seed, 'mechanics');
  const credit = w.replicas.map(() => 0);
  const total = w.replicas.reduce((s, x) => s + x, 0);
  const adapters = w.replicas.map((): number[] => []);
  const busy = w.replicas.map(() => 0);
  let client = 0;
  for (const l of loads) {
    // The client sends one after the other.
    client = Math.max(client, l.at) + w.clientService;
    const connect = w.connect * (0.7 + 0.6 * draws());
    const sent = client + connect;
    for (let r = 0; r < credit.length; r++) credit[r]! += w.replicas[r]! / total;
    const replica = credit.indexOf(Math.max(...credit));
    credit[replica]! -= 1;
    const load = draws() < w.reloadShare ? w.reload * (0.8 + 0.4 * draws()) : 0;
    const fading = l.operation / loads.length;
    const cold = w.coldShare > 0 && fading < w.coldShare ? 2 * w.cold * (1 - fading / w.coldShare) * draws() : 0;
    const door = sent + w.network / 2;
    busy[replica] = Math.max(busy[replica]!, door) + w.frontendService;
    const queued = busy[replica]! + w.frontend + (l.class === 1 ? w.classExtra * (0.6 + 0.8 * draws()) : 0);
    let ready = queued + load;
    if (w.swap > 0) {
      const held = adapters[replica]!;
      const i = held.indexOf(l.class);
      if (i >= 0) held.splice(i, 1);
      else ready += w.swap * (0.8 + 0.4 * draws());
      held.push(l.class);
      if (held.length > 2) held.shift();
    }
    if (w.gate > 0) ready = Math.ceil(ready / w.gate) * w.gate;
    out.push({
      operation: l.operation,
      attempt: 0,
      scheduled: l.at,
      dispatched: client,
      sent,
      door,
      queued,
      ready,
      replica,
      spec: l.spec,
      class: l.class,
      load,
      cold,
    });
  }
  return out;
}

function withRetries(w: World, loads: readonly Load[], trips: readonly Trip[], done: Map<Trip, Finished>): Trip[] {
  const out = trips.filter((t) => t.attempt === 0);
  for (const trip of [...out]) {
    const first = done.get(trip);
    if (!first) continue;
    for (let k = 1; k <= 3; k++) {
      const at = trip.dispatched + k * w.retryAfter;
      if (first.firstToken <= at) break;
      const shift = k * w.retryAfter;
      out.push({
        ...trip,
        attempt: k,
        dispatched: at,
        sent: trip.sent + shift,
        door: trip.door + shift,
        queued: trip.queued + shift,
        ready: trip.ready + shift,
        replica: (trip.replica + k) % w.replicas.length,
      });
    }
  }
  void loads;
  return out.sort((a, b) => a.ready - b.ready);
}

function stepModel(w: World): StepModel {
  return {
    label: 'gym',
    stepMs: (b: StepBatch) =>
      w.base + w.perSequence * b.decodeTokens + w.perToken * b.prefillTokens + w.perKv * (b.decodeKv + b.prefillKv),
    decode(sequences: number, kv: number, into: DecodePiece) {
      into.ms = w.base + w.perSequence * sequences + w.perKv * kv;
      into.slope = w.perKv;
      into.untilKv = Number.POSITIVE_INFINITY;
    },
  };
}

interface Sample {
  readonly running: number;
  readonly waiting: number;
  readonly kv: number;
}

interface Ran {
  readonly byTrip: Map<Trip, Finished>;
  readonly stamps: Map<Trip, Float64Array>;
  readonly replicas: readonly {
    readonly samples: readonly Sample[];
    readonly steps: Map<number, number>;
    readonly preemptions: number;
    readonly queries: number;
    readonly hits: number;
  }[];
  readonly end: number;
}

const stampsOf = new WeakMap<Finished, Float64Array>();

function run(w: World, trips: readonly Trip[]): Ran {
  const byTrip = new Map<Trip, Finished>();
  const stamps = new Map<Trip, Float64Array>();
  const model = stepModel(w);
  const limits = limitsOf({
    kvBlocks: w.kvBlocks,
    maxSeqs: w.maxSeqs,
    maxBatchedTokens: Math.max(w.budget, w.maxSeqs * ((w.speculation?.draftTokens ?? 0) + 1)),
    prefixCaching: w.caching,
    reservePrompt: false,
  });
  const end = Math.max(...trips.map((t) => t.scheduled));
  const interval = Math.max(200, end / 240);
  const replicas = w.replicas.map((_, r) => {
    const steps = new Map<number, number>();
    const cluster: Cluster = w.speculation
      ? new SpeculativeReplica(model, limits, { ...w.speculation, seed: w.seed + r })
      : new ContinuousReplica(model, limits, (tokens, n) => void steps.set(tokens, (steps.get(tokens) ?? 0) + n));
    const own = trips.filter((t) => t.replica === r).sort((a, b) => a.ready - b.ready);
    const holds = own.filter((t) => t.ready > t.queued);
    const byHandle = new Map<number, Trip>();
    const samples: Sample[] = [];
    const out: Finished[] = [];
    let next = 0;
    let sampleAt = interval;
    for (;;) {
      const t = Math.min(
        own[next]?.ready ?? Number.POSITIVE_INFINITY,
        cluster.nextAt(),
        sampleAt <= end ? sampleAt : Number.POSITIVE_INFINITY,
      );
      if (t === Number.POSITIVE_INFINITY) break;
      cluster.advance(t, out);
      for (const f of out) {
        const trip = byHandle.get(f.handle) as Trip;
        byTrip.set(trip, f);
        const times = f.tokenTimes(new Float64Array(f.generated)).slice(0, f.generated);
        stamps.set(trip, times);
        stampsOf.set(f, times);
      }
      out.length = 0;
      while (next < own.length && own[next]!.ready <= t) {
        const trip = own[next++]!;
        const handle = cluster.offer(trip.spec, t);
        if (handle >= 0) byHandle.set(handle, trip);
      }
      if (t >= sampleAt && sampleAt <= end) {
        const g = cluster.gauges();
        const held = holds.filter((h) => h.queued <= t && t < h.ready).length;
        samples.push({ running: g.running, waiting: g.waiting + held, kv: g.kvUsage });
        sampleAt += interval;
      }
    }
    const g = cluster.gauges();
    return { samples, steps, preemptions: g.preemptions, queries: g.prefixQueries, hits: g.prefixHits };
  });
  return { byTrip, stamps, replicas, end };
}

/** What the engine did, moved by what lies between it and the metrics: cold compilation, KV transfer. */
function shiftOf(w: World, t: Trip): number {
  return t.cold + (w.transfer > 0 ? w.transfer + w.transferPerToken * t.spec.inputTokens : 0);
}

function recordsOf(w: World, trips: readonly Trip[], done: Map<Trip, Finished>): RequestRecord[] {
  const byOperation = new Map<number, Trip[]>();
  for (const t of trips) byOperation.set(t.operation, [...(byOperation.get(t.operation) ?? []), t]);
  const records: RequestRecord[] = [];
  for (const attempts of byOperation.values()) {
    const served = attempts
      .filter((t) => done.has(t))
      .sort((a, b) => done.get(a)!.firstToken - done.get(b)!.firstToken);
    const trip = served[0];
    const first = attempts.reduce((x, y) => (x.attempt < y.attempt ? x : y));
    if (!trip) continue;
    const f = done.get(trip) as Finished;
    const shift = shiftOf(w, trip);
    const { at, tokens } = delivered(w.delivery, stampsOf.get(f) as Float64Array, w.network / 2, shift);
    for (let i = 0; i < at.length; i++) at[i] = Math.round(at[i]! * 1000) / 1000;
    const n = at.length;
    const stamp = (x: number): number => Math.round(x * 1000) / 1000;
    const last = at[n - 1]!;
    records.push({
      operation: trip.operation,
      attempt: attempts.length - 1,
      attempts: attempts.length,
      lostHedge: false,
      class: trip.spec.class,
      asked: { input: trip.spec.inputTokens, output: trip.spec.outputTokens, choices: 1, stream: true },
      stamps: {
        scheduled: stamp(first.scheduled),
        dispatched: stamp(first.dispatched),
        sent: stamp(first.sent),
        firstEvent: stamp(at[0]!),
        firstOutput: stamp(at[0]!),
        firstAnswer: stamp(at[0]!),
        lastOutput: stamp(last),
        ended: stamp(last),
      },
      timeline: {
        length: n,
        at,
        tokens,
        kind: new Uint8Array(n),
        choice: new Uint16Array(n),
      },
      streamed: true,
      usage: {
        input: trip.spec.inputTokens,
        output: f.generated,
        ...(w.prefixShare > 0 && { cachedInput: f.cached }),
      },
      unseenEndTokens: 0,
      outcome: 'completed',
      reason: '',
      detail: '',
      phase: 'done',
      finish: 'length',
      finishReason: 'length',
      impliedEnd: false,
      events: n,
      coalesced: 0,
      unclassified: 0,
      ...(w.perRequestTimes && {
        server: {
          queue: f.scheduled - trip.queued - trip.load,
          prefill: f.firstToken - f.scheduled + trip.cold,
          decode: f.lastToken - f.firstToken,
          e2e: f.lastToken + shift - trip.door,
          ...(w.reload > 0 && { load: trip.load }),
        },
      }),
    });
  }
  return records.sort((a, b) => a.stamps.scheduled - b.stamps.scheduled);
}

// ---- metrics ----

const meaning = (metric: string, unit: Meaning['unit'] = 'seconds'): Meaning => ({
  metric,
  observation: 'a request',
  unit,
});

class Histo {
  readonly #bounds: readonly number[];
  readonly #own: number[];
  #sum = 0;
  #count = 0;
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#own = new Array<number>(bounds.length + 1).fill(0);
  }
  see(x: number, times = 1): void {
    let i = 0;
    while (i < this.#bounds.length && x > this.#bounds[i]!) i++;
    this.#own[i]! += times;
    this.#sum += x * times;
    this.#count += times;
  }
  observed(m: Meaning): Observed {
    let running = 0;
    const counts = this.#own.map((c) => (running += c));
    return {
      count: this.#count,
      sum: this.#sum,
      histogram: { bounds: [...this.#bounds, Number.POSITIVE_INFINITY], counts, sum: this.#sum },
      meaning: m,
    };
  }
}

function gauged(values: readonly number[], m: Meaning): Gauged {
  const mean = values.reduce((s, v) => s + v, 0) / Math.max(1, values.length);
  return {
    last: values.at(-1) ?? 0,
    mean,
    min: Math.min(...values),
    max: Math.max(...values),
    samples: values.length,
    meaning: m,
  };
}

function evidenceOf(w: World, trips: readonly Trip[], ran: Ran): Evidence {
  const replicas = ran.replicas.map((replica, r): ReplicaEvidence => {
    const h = {
      ttft: new Histo(BUCKETS.firstToken),
      queue: new Histo(BUCKETS.request),
      prefill: new Histo(BUCKETS.request),
      decode: new Histo(BUCKETS.request),
      e2e: new Histo(BUCKETS.request),
      itl: new Histo(BUCKETS.interToken),
      prompt: new Histo(oneTwoFive(20_000)),
      output: new Histo(oneTwoFive(20_000)),
      computed: new Histo(oneTwoFive(20_000)),
      steps: new Histo(BUCKETS.iteration),
      transfer: new Histo(BUCKETS.firstToken),
    };
    let prompts = 0;
    let generated = 0;
    let finishes = 0;
    let drafts = 0;
    let accepted = 0;
    for (const t of trips) {
      const f = ran.byTrip.get(t);
      if (t.replica !== r || !f) continue;
      const shift = shiftOf(w, t);
      const first = f.firstToken + shift;
      // Recorded at the first token; the rest at the finish. Neither after the window's end.
      if (first <= ran.end) {
        h.ttft.see((first - t.door) / 1000);
        prompts += t.spec.inputTokens;
      }
      if (f.lastToken + shift > ran.end) continue;
      finishes++;
      generated += f.generated;
      h.queue.see((f.scheduled - t.queued) / 1000);
      h.prefill.see((f.firstToken - f.scheduled + t.cold) / 1000);
      h.decode.see((f.lastToken - f.firstToken) / 1000);
      h.e2e.see((f.lastToken + shift - t.door) / 1000);
      h.prompt.see(t.spec.inputTokens);
      h.output.see(f.generated);
      h.computed.see(t.spec.inputTokens - f.cached);
      if (w.transfer > 0) h.transfer.see((w.transfer + w.transferPerToken * t.spec.inputTokens) / 1000);
      // Pauses of the sending process are in what it stamps; a proxy's doings are not.
      const engine = ran.stamps.get(t) as Float64Array;
      const at = w.delivery.kind === 'pauses' ? delivered(w.delivery, engine, 0).at : engine;
      let distinct = 1;
      for (let i = 1; i < at.length; i++) {
        const gap = at[i]! - at[i - 1]!;
        if (gap > 1e-6) {
          distinct++;
          h.itl.see(gap / 1000);
        } else if (!w.speculation) h.itl.see(0);
      }
      if (w.speculation) {
        drafts += (distinct - 1) * w.speculation.draftTokens;
        accepted += at.length - distinct;
      }
    }
    for (const [tokens, n] of replica.steps) h.steps.see(tokens, n);
    const total = (metric: string, count: number, unit: Meaning['unit'] = 'tokens') => ({
      count,
      meaning: meaning(metric, unit),
    });
    const started = (EPOCH - (w.restarted ? 60_000 : 3 * 86_400_000)) / 1000;
    return {
      replica: `r${r}:8000`,
      engine: 'vllm',
      window: { start: EPOCH, end: EPOCH + ran.end },
      reset: false,
      durations: {
        ttft: h.ttft.observed(meaning('vllm:time_to_first_token_seconds')),
        queue: h.queue.observed(meaning('vllm:request_queue_time_seconds')),
        prefill: h.prefill.observed(meaning('vllm:request_prefill_time_seconds')),
        decode: h.decode.observed(meaning('vllm:request_decode_time_seconds')),
        e2e: h.e2e.observed(meaning('vllm:e2e_request_latency_seconds')),
        itl: h.itl.observed(meaning('vllm:inter_token_latency_seconds')),
        ...(w.transfer > 0 && { transfer: h.transfer.observed(meaning('kv_transfer_seconds')) }),
      },
      sizes: {
        prompt_length: h.prompt.observed(meaning('vllm:request_prompt_tokens', 'tokens')),
        output_length: h.output.observed(meaning('vllm:request_generation_tokens', 'tokens')),
        ...(w.speculation ? {} : { step_tokens: h.steps.observed(meaning('vllm:iteration_tokens_total', 'tokens')) }),
        prefill_computed: h.computed.observed(meaning('vllm:request_prefill_kv_computed_tokens', 'tokens')),
      },
      totals: {
        prompt_tokens: total('vllm:prompt_tokens_total', prompts),
        generation_tokens: total('vllm:generation_tokens_total', generated),
        finishes: total('vllm:request_success_total', finishes, 'requests'),
        preemptions: total('vllm:num_preemptions_total', replica.preemptions, 'requests'),
        ...(w.caching || w.prefixShare > 0
          ? {
              prefix_cache_queries: total('vllm:prefix_cache_queries_total', w.caching ? replica.queries : prompts),
              prefix_cache_hits: total('vllm:prefix_cache_hits_total', w.caching ? replica.hits : 0),
            }
          : {}),
        ...(w.speculation && {
          draft_tokens: total('vllm:spec_decode_num_draft_tokens_total', drafts),
          accepted_tokens: total('vllm:spec_decode_num_accepted_tokens_total', accepted),
        }),
      },
      gauges: {
        running: gauged(
          replica.samples.map((s) => s.running),
          meaning('vllm:num_requests_running', 'requests'),
        ),
        waiting: gauged(
          replica.samples.map((s) => s.waiting),
          meaning('vllm:num_requests_waiting', 'requests'),
        ),
        kv_usage: gauged(
          replica.samples.map((s) => s.kv),
          meaning('vllm:kv_cache_usage_perc', 'share'),
        ),
        process_start: gauged([started], meaning('process_start_time_seconds')),
        ...(w.hasClock && {
          gpu_clock: gauged(
            replica.samples.map((_, i) => w.gpuClock * (1 - 0.004 * (i % 3))),
            meaning('DCGM_FI_DEV_SM_CLOCK', 'megahertz'),
          ),
        }),
      },
      notes: [],
    };
  });
  return { replicas, errors: [] };
}

function lognormal(mean: number, cv: number, u: () => number): number {
  const s2 = Math.log(1 + cv * cv);
  return Math.exp(Math.log(mean) - s2 / 2 + Math.sqrt(s2) * normal(u));
}

function normal(u: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - u())) * Math.cos(2 * Math.PI * u());
}

/** Mean 1, shape `k`: Marsaglia & Tsang (2000), boosted below 1. */
function gamma(k: number, u: () => number): number {
  if (k === 1) return -Math.log(1 - u());
  const boost = k < 1 ? u() ** (1 / k) : 1;
  const d = (k < 1 ? k + 1 : k) - 1 / 3;
  const c = 1 / Math.sqrt(9 * d);
  for (;;) {
    const x = normal(u);
    const v = (1 + c * x) ** 3;
    if (v > 0 && Math.log(u()) < 0.5 * x * x + d - d * v + d * Math.log(v)) return (boost * d * v) / k;
  }
}
