/** Facts that take several quantities: what lies outside the engine, whether decode moved as prefill did, one class alone. */
import type { Attribution, Part } from './attribution.ts';
import { type Fact, type FactId, statesOf } from './fact.ts';
import type { RequestRow, Side } from './side.ts';
import { both, type Measures } from './table.ts';

/**
 * The way outside the engine, where frontend and delivery cannot be told apart: what of ΔTTFT neither client queue, queue
 * nor prefill holds.
 */
export function pathFact(
  { total, parts }: Attribution,
  a: Measures,
  b: Measures,
  scale: number | undefined,
  facts: Map<FactId, Fact>,
): void {
  if (!total || scale === undefined || !parts.queue || !parts.prefill) return;
  const named = (['transfer', 'load'] as const).reduce((s, id) => {
    const pair = both(a, b, id);
    return s + (pair ? pair.b.value - pair.a.value : 0);
  }, 0);
  const inside = (['client', 'connect', 'queue', 'prefill'] as Part[]).reduce(
    (s, p) => s + (parts[p]?.value ?? 0),
    named,
  );
  const effect = (total.value - inside) / scale;
  const se = (0.25 * Math.max(total.se, parts.queue.se, parts.prefill.se)) / scale + 0.02;
  facts.set('path', {
    id: 'path',
    label: 'TTFT outside client, queue and prefill',
    effect,
    se,
    kind: 'share',
    unit: 'share of ΔTTFT',
    states: statesOf(effect, se, 0.15, 0.5),
    source: total.source,
    population: total.population,
  });
}

/**
 * Whether decode steps slowed as prefill did: 1 by the same factor, as a slower device would; 0 prefill alone. The middle gap
 * is taken, which steps that hold prompts do not reach.
 */
export function alikeFact(facts: Map<FactId, Fact>): void {
  const [decode, prefill] = [facts.get('itl_p50') ?? facts.get('tpot'), facts.get('prefill_per_token')];
  if (!decode || !prefill || prefill.effect < 0.15) return;
  const effect = Math.max(-1, Math.min(2, decode.effect / prefill.effect));
  const se = Math.hypot(decode.se, effect * prefill.se) / prefill.effect;
  facts.set('alike', {
    id: 'alike',
    label: `decode steps slowed ×${Math.exp(decode.effect).toFixed(2)}, prefill per computed token ×${Math.exp(prefill.effect).toFixed(2)}`,
    effect,
    se,
    kind: 'difference',
    unit: 'share',
    states: statesOf(effect, se, 0.3, 0.65),
    source: decode.source,
    population: decode.population,
  });
}

/** Whether the first token and the later ones moved apart: by how much the one of them that moved less did (ln ratio). */
export function opposedFact(facts: Map<FactId, Fact>): void {
  const first = facts.get('ttft') ?? facts.get('ttft_p50') ?? facts.get('ttft_p99');
  const later = facts.get('tpot') ?? facts.get('itl_p50') ?? facts.get('itl_p99');
  if (!first || !later) return;
  const apart = first.effect * later.effect < 0;
  const smaller = Math.abs(first.effect) < Math.abs(later.effect) ? first : later;
  const effect = apart ? Math.abs(smaller.effect) : 0;
  facts.set('opposed', {
    id: 'opposed',
    label: `first tokens ×${Math.exp(first.effect).toFixed(2)}, later ones ×${Math.exp(later.effect).toFixed(2)}`,
    effect,
    se: smaller.se,
    kind: 'difference',
    unit: 'count',
    states: statesOf(effect, smaller.se, Math.log(1.05), Math.log(1.25)),
    source: smaller.source,
    population: smaller.population,
  });
}

/** How far the median moved of what the mean did: 1 all requests alike, 0 a few of them. */
export function typicalFact(a: Measures, b: Measures, facts: Map<FactId, Fact>): void {
  const [mean, median] = [both(a, b, 'ttft'), both(a, b, 'ttft_p50')];
  if (!mean || !median || mean.a.source !== median.a.source) return;
  const change = mean.b.value - mean.a.value;
  if (!(Math.abs(change) > 0.15 * mean.a.value)) return;
  const effect = Math.max(-1, Math.min(2, (median.b.value - median.a.value) / change));
  const se = Math.hypot(median.a.se, median.b.se, effect * Math.hypot(mean.a.se, mean.b.se)) / Math.abs(change);
  facts.set('typical', {
    id: 'typical',
    label: `TTFT's median moved by ${Math.round(median.b.value - median.a.value)} ms where its mean did by ${Math.round(change)}`,
    effect,
    se,
    kind: 'difference',
    unit: 'share',
    states: statesOf(effect, se, 0.3, 0.6),
    source: mean.a.source,
    population: mean.a.population,
  });
}

/** Whether one class holds more of ΔTTFT than of the requests: 0 in proportion, 1 all of it. */
export function oneClassFact(sideA: Side, sideB: Side, facts: Map<FactId, Fact>): void {
  const [x, y] = [byClass(sideA), byClass(sideB)];
  if (!x || !y) return;
  const shared = [...y.keys()].filter((name) => (x.get(name)?.length ?? 0) >= 15 && y.get(name)!.length >= 15);
  if (shared.length === 1 && x.size === 1 && y.size === 1) {
    const [name] = shared as [string];
    facts.set('one_class', {
      id: 'one_class',
      label: `there is one class of requests, '${name}'`,
      effect: 0,
      se: 0.08,
      kind: 'difference',
      unit: 'share',
      states: [0, 0, 1, 0, 0],
      source: 'requests',
      population: `${y.get(name)!.length} requests`,
    });
  }
  if (shared.length < 2) return;
  const mean = (rows: readonly RequestRow[]) => rows.reduce((s, r) => s + r.ttft!, 0) / rows.length;
  const n = shared.reduce((s, name) => s + y.get(name)!.length, 0);
  const parts = shared.map((name) => {
    const weight = y.get(name)!.length / n;
    return { name, weight, change: weight * (mean(y.get(name)!) - mean(x.get(name)!)), level: mean(x.get(name)!) };
  });
  const total = parts.reduce((s, p) => s + p.change, 0);
  const level = parts.reduce((s, p) => s + p.weight * p.level, 0);
  if (!(Math.abs(total) > 0.08 * level)) return;
  const indexed = parts.map((p) => ({ ...p, index: (p.change / total - p.weight) / (1 - p.weight) }));
  const top = indexed.reduce((best, p) => (p.index > best.index ? p : best));
  const effect = Math.min(1.2, Math.max(0, top.index));
  facts.set('one_class', {
    id: 'one_class',
    label: `class '${top.name}' (${(100 * top.weight).toFixed(0)} % of requests) holds ${((100 * top.change) / total).toFixed(0)} % of the change of TTFT`,
    effect,
    se: 0.08,
    kind: 'difference',
    unit: 'share',
    states: statesOf(effect, 0.08, 0.45, 0.8),
    source: 'requests',
    population: `${n} requests of ${shared.length} classes`,
  });
}

function byClass(side: Side): Map<string, RequestRow[]> | undefined {
  if (!side.requests) return undefined;
  const classes = new Map<string, RequestRow[]>();
  for (const row of side.requests.rows) {
    if (row.ttft === undefined) continue;
    const own = classes.get(row.class);
    if (own) own.push(row);
    else if (classes.size < 100) classes.set(row.class, [row]);
  }
  return classes;
}
