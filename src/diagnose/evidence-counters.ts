/** Quantities from servers' counters: ratios over the requests that finished, and rates over windows that are whole. */
import type { ReplicaEvidence, TotalConcept } from '../core/evidence.ts';
import { FEWEST } from './evidence-pool.ts';
import type { QuantityId } from './quantities.ts';
import { type Measures, put } from './table.ts';

export function counters(replicas: readonly ReplicaEvidence[], into: Measures): void {
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

export function finishedOne(r: ReplicaEvidence): number | undefined {
  return r.durations.e2e?.count ?? r.durations.queue?.count ?? r.totals.finishes?.count ?? r.durations.ttft?.count;
}

function finishedOf(replicas: readonly ReplicaEvidence[]): number | undefined {
  const parts = replicas.map(finishedOne);
  return parts.every((p) => p !== undefined) ? parts.reduce<number>((s, p) => s + (p as number), 0) : undefined;
}
