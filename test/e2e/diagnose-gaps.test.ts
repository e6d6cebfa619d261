/**
 * Evidence deleted from cases whose answer is known: missing metrics, one-sided evidence, restarted counters, skewed clocks.
 * The diagnosis may fall back to `unknown`; it may not become sure of another cause.
 */
import { describe, expect, it } from 'vitest';
import { type Case, singleCase } from '../../bench/diagnose/gym.ts';
import { SCENARIOS } from '../../bench/diagnose/scenarios.ts';
import type { Evidence, ReplicaEvidence } from '../../src/core/evidence.ts';
import { diagnose, NAMED, type Side } from '../../src/diagnose/index.ts';

const IDS = [
  'admission',
  'kv-pressure',
  'longer-prompts',
  'prefix-cache-loss',
  'slower-prefill',
  'frontend-cpu',
  'proxy-buffering',
  'replica-imbalance',
  'clock-throttling',
  'load-rise',
];

const replicas = (e: Evidence | undefined, of: (r: ReplicaEvidence) => ReplicaEvidence): Evidence | undefined =>
  e && { ...e, replicas: e.replicas.map(of) };

function without(side: Side, what: 'requests' | 'evidence'): Side {
  const { [what]: _, ...rest } = side;
  return rest;
}

function withEvidence(side: Side, of: (r: ReplicaEvidence) => ReplicaEvidence): Side {
  const evidence = replicas(side.evidence, of);
  return { ...side, ...(evidence && { evidence }) };
}

function omit<T extends object>(from: T, names: readonly string[]): T {
  return Object.fromEntries(Object.entries(from).filter(([name]) => !names.includes(name))) as T;
}

const drop =
  (...names: string[]) =>
  (r: ReplicaEvidence): ReplicaEvidence => ({
    ...r,
    durations: omit(r.durations, names),
    sizes: omit(r.sizes, names),
    totals: omit(r.totals, names),
    gauges: omit(r.gauges, names),
  });

type Pair = readonly [Side, Side];
const DELETIONS: Readonly<Record<string, (c: Case) => Pair>> = {
  'no metrics before': (c) => [without(c.a, 'evidence'), c.b],
  'no metrics after': (c) => [c.a, without(c.b, 'evidence')],
  'no metrics at all': (c) => [without(c.a, 'evidence'), without(c.b, 'evidence')],
  'no records': (c) => [without(c.a, 'requests'), without(c.b, 'requests')],
  'no records after': (c) => [c.a, without(c.b, 'requests')],
  'no gauges': (c) =>
    [c.a, c.b].map((s) => withEvidence(s, drop('running', 'waiting', 'kv_usage', 'gpu_clock'))) as unknown as Pair,
  'no cache counters, no preemptions': (c) =>
    [c.a, c.b].map((s) =>
      withEvidence(s, drop('prefix_cache_hits', 'prefix_cache_queries', 'prefill_computed', 'preemptions')),
    ) as unknown as Pair,
  'no queue, no prefill': (c) => [c.a, c.b].map((s) => withEvidence(s, drop('queue', 'prefill'))) as unknown as Pair,
  'counters restarted': (c) => [c.a, withEvidence(c.b, halved)],
  'clocks skewed': (c) => [
    c.a,
    withEvidence(c.b, (r) => ({ ...r, window: { start: r.window.start! + 4000, end: r.window.end! - 4000 } })),
  ],
};

/** What is left of a window whose process restarted in it: half the counts, from the restart on. */
function halved(r: ReplicaEvidence): ReplicaEvidence {
  const half = <T extends { count: number; sum?: number }>(o: T): T => ({
    ...o,
    count: Math.floor(o.count / 2),
    ...(o.sum !== undefined && { sum: o.sum / 2 }),
  });
  const all = <T extends object>(map: T): T =>
    Object.fromEntries(
      Object.entries(map).map(([k, v]) => {
        const { histogram: _, ...rest } = v as { count: number; sum?: number; histogram?: unknown };
        return [k, half(rest)];
      }),
    ) as T;
  return { ...r, reset: true, durations: all(r.durations), sizes: all(r.sizes), totals: all(r.totals) };
}

describe('with evidence deleted', () => {
  for (const id of IDS) {
    it(`${id}: never sure of another cause`, { timeout: 120_000 }, () => {
      const scenario = SCENARIOS.find((s) => s.id === id)!;
      const c = singleCase(scenario, 4242 + IDS.indexOf(id));
      for (const [name, apply] of Object.entries(DELETIONS)) {
        const [a, b] = apply(c);
        const found = diagnose(a, b, { changes: c.changes });
        const top = found.causes[0];
        const sure =
          (found.verdict === 'cause' || found.verdict === 'trade') && top !== undefined && top.confidence >= NAMED;
        const shown = `${name}: ${found.verdict} ${found.causes
          .slice(0, 3)
          .map((x) => `${x.cause.id} ${x.confidence.toFixed(2)}`)
          .join(', ')}`;
        if (sure) expect(top.cause.id, shown).toBe(id);
      }
    });
  }

  it('without anything in common is unknown, and says what to bring', () => {
    const c = singleCase(SCENARIOS.find((s) => s.id === 'admission')!, 4242);
    const found = diagnose(without(c.a, 'evidence'), { name: 'after', notes: [] });
    expect(found.verdict).toBe('unknown');
    expect(found.missing[0]?.how).toContain('goodput');
  });
});
