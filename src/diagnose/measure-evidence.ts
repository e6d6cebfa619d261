/** Quantities from servers' own metrics: replicas pooled by count and sum, and what sets them apart. */
import type { Evidence, GaugeConcept, Gauged, Observed, ReplicaEvidence, TotalConcept } from '../core/evidence.ts';
import { type Histogram, histogramQuantile, mergeHistograms, totalOf } from '../stats/histogram.ts';
import type { Estimate } from './estimate.ts';
import type { QuantityId } from './quantities.ts';
import { type Measures, put } from './table.ts';

/**
 * By how much the dependence of neighbours widens an error that a histogram cannot know: requests share a queue, less so a
 * prefill; lengths are independent. Declared, from simulated queues at utilisations of 0.5 to 0.9.
 */
const DEPENDENCE: Readonly<Record<string, number>> = {
  queue: 12,
  ttft: 10,
  prefill: 4,
  e2e: 6,
  tpot: 6,
  itl: 30,
  transfer: 4,
};

const FEWEST = 20;

export function measureEvidence(evidence: Evidence, into: Measures): void {
  // A router counts what engines count again; a GPU exporter serves no request.
  const replicas = evidence.replicas.filter((r) => (r.role ?? 'engine') === 'engine');
  gauges(evidence.replicas, 'gpu', into);
  if (replicas.length === 0) return;
  const mean = (id: QuantityId, parts: readonly Observed[], scale: number, dependence: number, spread?: number): void =>
    put(into, id, meanOf(parts, scale, dependence, spread));
  const duration = (name: 'queue' | 'prefill' | 'ttft' | 'e2e' | 'tpot' | 'itl' | 'transfer') =>
    collect(replicas, (r) => r.durations[name]);
  const size = (name: 'prompt_length' | 'output_length' | 'step_tokens' | 'prefill_computed') =>
    collect(replicas, (r) => r.sizes[name]);

  mean('queue', duration('queue'), 1000, DEPENDENCE.queue!);
  mean('prefill', duration('prefill'), 1000, DEPENDENCE.prefill!);
  mean('server_ttft', duration('ttft'), 1000, DEPENDENCE.ttft!);
  mean('ttft', duration('ttft'), 1000, DEPENDENCE.ttft!);
  mean('latency', duration('e2e'), 1000, DEPENDENCE.e2e!);
  // Of steps where there are many; else of requests.
  const [steps, requests] = [duration('itl'), duration('tpot')];
  const counted = (parts: readonly Observed[]): number => parts.reduce((s, p) => s + p.count, 0);
  if (counted(steps) >= 5 * counted(requests)) mean('tpot', steps, 1000, DEPENDENCE.itl!, 0.7);
  else mean('tpot', requests, 1000, DEPENDENCE.tpot!, 0.35);
  mean('transfer', duration('transfer'), 1000, DEPENDENCE.transfer!);
  tail(into, 'itl_p99', duration('itl'), 1000);
  mean('prompt', size('prompt_length'), 1, 1);
  mean('output', size('output_length'), 1, 1);
  mean('computed', size('prefill_computed'), 1, 2);
  mean('step_tokens', size('step_tokens'), 1, 30);
  stepOfToken(into, size('step_tokens'));
  remainder(into);
  counters(replicas, into);
  gauges(replicas, 'engine', into);
  fleet(replicas, into);
}

function collect(replicas: readonly ReplicaEvidence[], of: (r: ReplicaEvidence) => Observed | undefined): Observed[] {
  // Where some replicas expose it and others do not, the pool's figure would be one of the few.
  const all = replicas.map(of);
  const there = all.filter((o) => o !== undefined);
  return there.length < all.length * 0.75 ? [] : there;
}

/** Σ sum / Σ count, its error from the histograms' own spread where there are buckets, else from `spread` times the mean. */
function meanOf(parts: readonly Observed[], scale: number, dependence: number, spread = 1): Estimate | undefined {
  let n = 0;
  let sum = 0;
  let squares = 0;
  for (const { count, sum: s, histogram } of parts) {
    if (s === undefined) return undefined;
    n += count;
    sum += s;
    squares += histogram ? spreadOf(histogram, 0.1 * spread ** 2) : count > 0 ? (spread * (s / count)) ** 2 * count : 0;
  }
  if (n < FEWEST) return undefined;
  const sd = Math.sqrt(squares / n);
  return {
    value: (scale * sum) / n,
    se: scale * sd * Math.sqrt(dependence / n),
    n,
    source: 'server-metrics',
    population: `${n} observations`,
  };
}

/** Σ (x − mean)² with each observation at its bucket's middle, and at least `least` times what an exponential of that mean has. */
function spreadOf(h: Histogram, least: number): number {
  const n = totalOf(h);
  if (n === 0) return 0;
  const mean = h.sum / n;
  let squares = 0;
  for (let i = 0; i < h.bounds.length; i++) {
    const own = h.counts[i]! - (i > 0 ? h.counts[i - 1]! : 0);
    if (own === 0) continue;
    const low = i > 0 ? h.bounds[i - 1]! : 0;
    const high = Number.isFinite(h.bounds[i]!) ? h.bounds[i]! : 2 * Math.max(low, mean);
    // All in one wide bucket: its middle says nothing, the mean does.
    const x = own > 0.9 * n ? mean : (low + high) / 2;
    squares += own * (x - mean) ** 2;
  }
  return Math.max(squares, least * n * mean * mean);
}

function tail(into: Measures, id: QuantityId, parts: readonly Observed[], scale: number): void {
  const histograms = parts.flatMap((p, i) =>
    p.histogram ? [{ name: `replica ${i + 1}`, histogram: p.histogram }] : [],
  );
  if (histograms.length === 0 || histograms.length < parts.length) return;
  let merged: Histogram;
  try {
    merged = mergeHistograms(histograms);
  } catch {
    return; // no common bounds: the evidence's notes say so
  }
  if (totalOf(merged) < 200) return;
  const q = histogramQuantile(merged, 0.99);
  if (!q || !Number.isFinite(q.high)) return;
  put(into, id, {
    value: (scale * (q.low + q.high)) / 2,
    se: (scale * (q.high - q.low)) / 3,
    n: totalOf(merged),
    source: 'server-metrics',
    population: `p99 within a bucket, of ${totalOf(merged)}`,
  });
}

/** Σ tokens² / Σ tokens: the size of the step a token finds itself in. A few large steps hold most prompt tokens. */
function stepOfToken(into: Measures, parts: readonly Observed[]): void {
  let tokens = 0;
  let squares = 0;
  let n = 0;
  for (const { histogram: h } of parts) {
    if (!h) return;
    for (let i = 0; i < h.bounds.length; i++) {
      const own = h.counts[i]! - (i > 0 ? h.counts[i - 1]! : 0);
      if (own === 0) continue;
      const high = Number.isFinite(h.bounds[i]!) ? h.bounds[i]! : 2 * (h.bounds[i - 1] ?? 1);
      const middle = Math.sqrt(Math.max(1, i > 0 ? h.bounds[i - 1]! : 1) * high);
      tokens += own * middle;
      squares += own * middle * middle;
      n += own;
    }
  }
  if (n < 200) return;
  const value = squares / tokens;
  put(into, 'step_tail', { value, se: 0.12 * value, n, source: 'server-metrics', population: `${n} steps` });
}

function remainder(into: Measures): void {
  const [ttft, queue, prefill] = (['server_ttft', 'queue', 'prefill'] as const).map(
    (id) => into.get(id)?.['server-metrics'],
  );
  if (!ttft || !queue || !prefill) return;
  const value = ttft.value - queue.value - prefill.value;
  // Mostly the same requests: TTFT is counted at the first token, the phases at the finish.
  const mismatch = Math.abs(ttft.n - queue.n) / Math.max(ttft.n, queue.n);
  put(into, 'frontend', {
    value,
    se: 0.1 * Math.hypot(queue.se, prefill.se) + mismatch * ttft.value + 0.002 * ttft.value,
    n: Math.min(ttft.n, queue.n),
    source: 'server-metrics',
    population: `${ttft.n} first tokens, ${queue.n} finished`,
  });
}

function counters(replicas: readonly ReplicaEvidence[], into: Measures): void {
  const total = (name: TotalConcept): number | undefined => {
    const parts = replicas.map((r) => r.totals[name]?.count);
    return parts.every((p) => p !== undefined) ? parts.reduce((s, p) => s + (p as number), 0) : undefined;
  };
  const server = (id: QuantityId, value: number, se: number, n: number, population: string): void =>
    put(into, id, { value, se, n, source: 'server-metrics', population });
  const finished = finishedOf(replicas);
  const prompts = total('prompt_tokens');
  const generated = total('generation_tokens');
  if (finished !== undefined && finished >= FEWEST) {
    if (prompts !== undefined && !into.get('prompt')?.['server-metrics'])
      server('prompt', prompts / finished, prompts / finished / Math.sqrt(finished), finished, `${finished} finished`);
    if (generated !== undefined && !into.get('output')?.['server-metrics'])
      server(
        'output',
        generated / finished,
        generated / finished / Math.sqrt(finished),
        finished,
        `${finished} finished`,
      );
    const preempted = total('preemptions');
    if (preempted !== undefined)
      server(
        'preemptions',
        preempted / finished,
        (3 * Math.sqrt(preempted + 1)) / finished,
        finished,
        `${finished} finished`,
      );
    const failures = total('failures');
    const aborts = total('aborts');
    if (failures !== undefined || aborts !== undefined) {
      const bad = (failures ?? 0) + (aborts ?? 0);
      server(
        'failed',
        bad / (finished + bad),
        Math.sqrt(bad + 1) / (finished + bad),
        finished + bad,
        `${finished + bad} ended`,
      );
    }
    // Queue, prefill: two counters serve where there is no histogram.
    const prefillSeconds = total('prefill_seconds');
    if (prefillSeconds !== undefined && !into.get('prefill')?.['server-metrics'])
      server(
        'prefill',
        (1000 * prefillSeconds) / finished,
        (2000 * prefillSeconds) / finished / Math.sqrt(finished),
        finished,
        `${finished} finished`,
      );
  }
  const queries = total('prefix_cache_queries');
  const hits = total('prefix_cache_hits');
  // A cache that is off is asked nothing, and finds nothing.
  const isOff = queries === 0 && (prompts ?? 0) > 0 && (finished ?? 0) >= FEWEST;
  if (queries !== undefined && hits !== undefined && (queries > 0 || isOff)) {
    const share = isOff ? 0 : hits / queries;
    const n = Math.max(finished ?? 0, FEWEST);
    server(
      'hit_rate',
      share,
      Math.sqrt((share * (1 - share) * 4 + 0.01) / n),
      n,
      `${queries} tokens or blocks queried`,
    );
    const prompt = into.get('prompt')?.['server-metrics'];
    if (prompt && !into.get('computed')?.['server-metrics'])
      put(into, 'computed', { ...prompt, value: prompt.value * (1 - share) });
  }
  const drafts = total('draft_tokens');
  const accepted = total('accepted_tokens');
  if (drafts !== undefined && accepted !== undefined && drafts > 0) {
    const share = accepted / drafts;
    server(
      'acceptance',
      share,
      Math.sqrt((share * (1 - share) * 4) / drafts) + 0.002,
      drafts,
      `${drafts} tokens drafted`,
    );
  }
  // A step of a sequence gives one token and what was accepted of the draft.
  if (drafts !== undefined && drafts > 0 && accepted !== undefined && generated !== undefined && generated > accepted) {
    const value = generated / (generated - accepted);
    server(
      'tokens_per_step',
      value,
      (value * value * 2) / Math.sqrt(generated) + 0.005 * value,
      generated,
      `${generated} tokens`,
    );
  }
  const prefill = into.get('prefill')?.['server-metrics'];
  const computed = into.get('computed')?.['server-metrics'];
  if (prefill && computed && computed.value > 0) {
    const value = prefill.value / computed.value;
    put(into, 'prefill_per_token', {
      ...prefill,
      value,
      se: value * Math.hypot(prefill.se / Math.max(prefill.value, 1e-9), computed.se / computed.value),
    });
  }
  // Over time: only where the window is known and no counter began anew in it.
  const windows = replicas.map((r) =>
    r.window.start !== undefined && r.window.end !== undefined && !r.reset
      ? (r.window.end - r.window.start) / 1000
      : undefined,
  );
  if (windows.every((w) => w !== undefined && w > 0)) {
    const perReplica = (of: (r: ReplicaEvidence) => number | undefined): number | undefined => {
      let sum = 0;
      for (const [i, r] of replicas.entries()) {
        const count = of(r);
        if (count === undefined) return undefined;
        sum += count / (windows[i] as number);
      }
      return sum;
    };
    const rate = perReplica(finishedOne);
    if (rate !== undefined && finished)
      server('rate', rate, (1.5 * rate) / Math.sqrt(finished) + 0.02 * rate, finished, `${finished} finished`);
    const speed = perReplica((r) => r.totals.generation_tokens?.count);
    if (speed !== undefined && finished)
      server('throughput', speed, (2 * speed) / Math.sqrt(finished), finished, `${generated} tokens`);
  }
}

function finishedOne(r: ReplicaEvidence): number | undefined {
  return r.durations.e2e?.count ?? r.durations.queue?.count ?? r.totals.finishes?.count ?? r.durations.ttft?.count;
}

function finishedOf(replicas: readonly ReplicaEvidence[]): number | undefined {
  const parts = replicas.map(finishedOne);
  return parts.every((p) => p !== undefined) ? parts.reduce<number>((s, p) => s + (p as number), 0) : undefined;
}

/** Spread of a gauge over instants: slots taken much as Poisson counts, a queue as widely as its mean, a pool by an eighth. */
function atInstants(id: QuantityId, value: number): number {
  return id === 'kv_usage' ? 0.12 : id === 'waiting' ? value + 1 : Math.sqrt(1.5 * value + 0.5);
}

function gauges(replicas: readonly ReplicaEvidence[], of: 'engine' | 'gpu', into: Measures): void {
  const gauge = (id: QuantityId, name: GaugeConcept, fold: (all: readonly Gauged[]) => number): void => {
    const all = replicas.map((r) => r.gauges[name]);
    // Exporters of GPUs stand beside engines: whoever tells a clock counts, engines must all tell theirs.
    const known = all.filter((g) => g !== undefined) as Gauged[];
    if (known.length === 0 || (of === 'engine' && known.length < all.length)) return;
    const samples = known.reduce((s, g) => s + g.samples, 0);
    // The two ends of a window say little of what lay between, and nothing of the most there was.
    const few = samples < 3 * known.length;
    if (few && (id === 'running_max' || of === 'gpu')) return;
    const value = fold(known);
    const spread = Math.max(...known.map((g) => g.max - g.min)) / 4;
    const seen = (spread * Math.sqrt(12)) / Math.sqrt(samples) + 0.01 * Math.abs(value);
    const se = few ? Math.max(seen, atInstants(id, value) / Math.sqrt(samples)) : seen;
    put(into, id, { value, se, n: samples, source: 'server-metrics', population: `${samples} scrapes` });
  };
  const sum = (all: readonly Gauged[]) => all.reduce((s, g) => s + g.mean, 0);
  const mean = (all: readonly Gauged[]) => sum(all) / all.length;
  if (of === 'gpu') {
    gauge('gpu_clock', 'gpu_clock', mean);
    gauge('gpu_utilisation', 'gpu_utilisation', mean);
    return;
  }
  gauge('running', 'running', mean);
  gauge('running_max', 'running', (all) => Math.max(...all.map((g) => g.max)));
  gauge('waiting', 'waiting', mean);
  gauge('kv_usage', 'kv_usage', mean);
}

/** What a pool's mean hides: how many replicas served, and how far the busiest stood out. */
function fleet(replicas: readonly ReplicaEvidence[], into: Measures): void {
  const counts = replicas.map((r) => finishedOne(r) ?? r.durations.ttft?.count);
  if (counts.some((c) => c === undefined)) return;
  const busy = counts.filter((c) => (c as number) > 0).length;
  const server = (id: QuantityId, value: number, se: number): void =>
    put(into, id, {
      value,
      se,
      n: replicas.length,
      source: 'server-metrics',
      population: `${replicas.length} replicas`,
    });
  server('replicas', busy, 0.02 * busy);
  // Of split pools, by the names replicas were given.
  const isDecode = replicas.map((r) => /decode/i.test(r.replica));
  if (isDecode.includes(true) && isDecode.includes(false)) {
    const prefill = replicas.map((r) => r.durations.prefill?.sum);
    if (prefill.every((x) => x !== undefined)) {
      const all = (prefill as number[]).reduce((s, x) => s + x, 0);
      const own = (prefill as number[]).reduce((s, x, i) => s + (isDecode[i] ? x : 0), 0);
      if (all > 0) server('decode_prefill', own / all, 0.03);
    }
  }
  if (busy < 2) return;
  // Requests a replica took, and the queue it had: the larger skew counts.
  const skew = (values: readonly number[]): number => {
    const mean = values.reduce((s, v) => s + v, 0) / values.length;
    return mean > 0 ? Math.max(...values) / mean : 1;
  };
  const taken = counts as number[];
  server('skew', skew(taken), 0.04 + 2 / Math.sqrt(taken.reduce((s, c) => s + c, 0)));
  const ttfts = replicas.map((r) => {
    const t = r.durations.ttft;
    return t?.sum !== undefined && t.count >= FEWEST ? t.sum / t.count : undefined;
  });
  if (ttfts.every((t) => t !== undefined)) server('replica_ttft', skew(ttfts as number[]), 0.2);
}
