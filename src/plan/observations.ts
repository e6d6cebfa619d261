/**
 * From receipts to observations of step time. Only what the records can vouch for is one: a step whose batch is known, a
 * stretch in which prompts were computed from beginning to end, a prompt that was alone.
 */
import type { Millis } from '../base/units.ts';
import { clustersOf, type Receipts, type Stream } from './receipts.ts';
import { heldBack, stretches, stretchOf, waits } from './stretches.ts';

/** So few requests held back while the batch was at its largest may be chance. */
const LEAST_HELD_BACK = 5;

/**
 * A duration and what was computed in it. `decode`: one step, nothing but decodes. `prefill`: one or more steps in which
 * prompts began and completed among decodes. `lone`: from sending a prompt to an idle engine until its first token.
 */
export interface Observation {
  readonly kind: 'decode' | 'prefill' | 'lone';
  /** When it ended. */
  readonly t: Millis;
  readonly ms: Millis;
  readonly steps: number;
  /** Steps that held prompt tokens. */
  readonly prefillSteps: number;
  /** Sums over the steps: decoding sequences, and the tokens each attended to. */
  readonly sequences: number;
  readonly kv: number;
  readonly prefillTokens: number;
  /** Σ (F² − p²) of the prompts. */
  readonly prefillSquares: number;
  /** 1 where the way to the engine's queue and back is part of it. */
  readonly entry: 0 | 1;
}

export interface Observed {
  readonly observations: readonly Observation[];
  /** Steps seen, and those left out because their batch was not certain. */
  readonly steps: number;
  readonly uncertain: number;
  /** Share of receipts, where several streamed and nothing stalled, that came with the others of their step. */
  readonly together: number;
  readonly togetherSteps: number;
  /** Most streams at once, and whether requests waited while that many streamed: then it is the engine's limit. */
  readonly mostStreams: number;
  readonly limited: boolean;
  /** Tokens of context of a decoding sequence: smallest and largest seen. */
  readonly context: readonly [number, number];
}

export interface ObserveOptions {
  /** Prompt tokens a step may hold (`max_num_batched_tokens`). */
  readonly budget: number;
  /** A request's way to the queue and back, where it is known by now: until then it cannot be in a step. */
  readonly entry?: Millis;
}

export function observe(receipts: Receipts, options: ObserveOptions): Observed {
  const { streams } = receipts;
  const clusters = clustersOf(streams);
  const n = clusters.length;
  /** Of each interval k (from cluster k − 1 to k): its duration by the median stream, and its batch. */
  const ms = new Float64Array(n);
  const sequences = new Int32Array(n);
  const kv = new Float64Array(n);
  const clean = new Uint8Array(n);
  /** Streams that were decoding over interval k, whether or not all were seen. */
  const live = new Int32Array(n);
  /** Cluster of each stream's first token. */
  const firstIn = new Int32Array(streams.length).fill(-1);
  let now = 0;
  let together = 0;
  let togetherSteps = 0;
  let mostStreams = 0;
  let shortest = Number.POSITIVE_INFINITY;
  let longest = 0;
  const gaps: number[] = [];
  clusters.forEach((c, k) => {
    live[k] = now;
    gaps.length = 0;
    let sum = 0;
    for (let i = 0; i < c.streams.length; i++) {
      const s = streams[c.streams[i]!]!;
      const j = c.tokens[i]!;
      if (j === 0) continue;
      gaps.push(s.at[j]! - s.at[j - 1]!);
      sum += s.input + j;
      shortest = Math.min(shortest, s.input + j);
      longest = Math.max(longest, s.input + j);
    }
    sequences[k] = gaps.length;
    kv[k] = sum;
    if (gaps.length > 0) {
      gaps.sort((a, b) => a - b);
      ms[k] = median(gaps);
    }
    const before = clusters[k - 1];
    if (now > 1 && before && isCalm(clusters, k)) {
      const near = 0.35 * (c.t - before.t);
      for (let i = 0; i < c.streams.length; i++) {
        const late = Math.abs(streams[c.streams[i]!]!.at[c.tokens[i]!]! - c.t);
        if (late <= near) together++;
        togetherSteps++;
      }
    }
    // The gap of every stream must be this interval's: none skipped a step, none is missing.
    const previous = clusters[k - 1];
    const span = previous ? c.t - previous.t : 0;
    clean[k] = now > 0 && gaps.length === now && Math.abs(ms[k]! - span) < 0.25 * span + 0.5 && ms[k]! > 0 ? 1 : 0;
    for (let i = 0; i < c.streams.length; i++) {
      const index = c.streams[i]!;
      const j = c.tokens[i]!;
      if (j === 0) {
        firstIn[index] = k;
        now++;
      }
      if (j === streams[index]!.at.length - 1) now--;
    }
    mostStreams = Math.max(mostStreams, now);
  });

  const times = rising(clusters.map((c) => c.t));
  const { waiting, windows } = waits(streams, firstIn, times, live, options.entry ?? 0);
  // Requests that wait while as many stream as ever did, for most of the time that anybody waits: a limit, not chance.
  let full = 0;
  let waited = 0;
  for (let k = 1; k < n; k++) {
    if (waiting[k] === 0) continue;
    waited++;
    if (live[k] === mostStreams) full++;
  }
  const isMostlyFull = waited >= 10 && full > 0.5 * waited;
  const limited = mostStreams > 1 && (isMostlyFull || heldBack(windows, live, mostStreams) >= LEAST_HELD_BACK);
  const isFull = (k: number): boolean => limited && live[k] === mostStreams;

  const observations: Observation[] = [];
  let uncertain = 0;
  for (let k = 1; k < n; k++) {
    if (live[k] === 0) continue;
    // Who waits while the batch is full is not being computed; anybody else may be.
    if (waiting[k]! > 0 && !isFull(k)) continue;
    if (clean[k] === 0) {
      uncertain++;
      continue;
    }
    observations.push({
      kind: 'decode',
      t: times[k]!,
      ms: ms[k]!,
      steps: 1,
      prefillSteps: 0,
      sequences: sequences[k]!,
      kv: kv[k]!,
      prefillTokens: 0,
      prefillSquares: 0,
      entry: 0,
    });
  }
  for (const w of stretches(windows)) {
    const o = stretchOf(w, streams, { clean, ms, sequences, kv, live, times, isFull, firstIn, budget: options.budget });
    if (o) observations.push(o);
    else uncertain++;
  }
  observations.push(...lone(streams, options.budget));
  observations.sort((a, b) => a.t - b.t);
  return {
    observations,
    steps: n,
    uncertain,
    together: togetherSteps > 0 ? together / togetherSteps : 1,
    togetherSteps,
    mostStreams,
    limited,
    context: [Number.isFinite(shortest) ? shortest : 0, longest],
  };
}

/** Prompts that met nobody: nothing was open from before they were sent until their first token. */
function lone(streams: readonly Stream[], budget: number): Observation[] {
  const out: Observation[] = [];
  let busyUntil = Number.NEGATIVE_INFINITY;
  streams.forEach((s, i) => {
    const first = s.at[0]!;
    const next = streams[i + 1]?.sent ?? Number.POSITIVE_INFINITY;
    const fresh = s.input - s.cached;
    if (s.sent > busyUntil && next > first && fresh > 0) {
      const steps = Math.max(1, Math.ceil(fresh / budget));
      out.push({
        kind: 'lone',
        t: first,
        ms: first - s.sent,
        steps,
        prefillSteps: steps,
        sequences: 0,
        kv: 0,
        prefillTokens: fresh,
        prefillSquares: s.input * s.input - s.cached * s.cached,
        entry: 1,
      });
    }
    busyUntil = Math.max(busyUntil, s.at[s.at.length - 1]!);
  });
  return out;
}

function median(sorted: readonly number[]): number {
  const h = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[h]! : (sorted[h - 1]! + sorted[h]!) / 2;
}

/** Step ends in order also where single receipts were late. */
function rising(times: readonly number[]): Float64Array {
  let last = Number.NEGATIVE_INFINITY;
  return Float64Array.from(times, (t) => (last = Math.max(last, t)));
}

/** Whether a step is like its neighbours: what comes in the wake of a stall says nothing of who goes with whom. */
function isCalm(clusters: readonly { readonly t: Millis }[], k: number): boolean {
  const from = Math.max(1, k - 5);
  const to = Math.min(clusters.length - 1, k + 5);
  const spans: number[] = [];
  for (let i = from; i <= to; i++) spans.push(clusters[i]!.t - clusters[i - 1]!.t);
  const own = clusters[k]!.t - clusters[k - 1]!.t;
  spans.sort((a, b) => a - b);
  const usual = median(spans);
  return own > 0.7 * usual && own < 1.4 * usual;
}
