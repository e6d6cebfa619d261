/**
 * The flat table of what was observed: each sign with its size, interval, population and source, and how probable each of
 * five states is given that. Causes predict states; nothing here knows of causes.
 */
import type { Attribution, Part } from './attribution.ts';
import type { Changes, FlagTopic } from './changes.ts';
import { below, type Estimate, logRatio, type Source } from './estimate.ts';
import { QUANTITIES, type QuantityId, type Unit } from './quantities.ts';
import type { RequestRow, Side } from './side.ts';
import { best, both, type Measures } from './table.ts';

/** Much down, down, flat, up, much up. */
export type States = readonly [number, number, number, number, number];

export interface Fact {
  readonly id: FactId;
  readonly label: string;
  readonly a?: number;
  readonly b?: number;
  /** ln(b/a), b − a, or a share of the change, as `kind` says. */
  readonly effect: number;
  readonly se: number;
  readonly kind: Kind;
  readonly unit: Unit | 'share of ΔTTFT' | 'told';
  readonly states: States;
  readonly source: Source | 'changes';
  readonly population: string;
}

type Kind = 'ratio' | 'difference' | 'share' | 'told';

interface Row {
  readonly quantity: QuantityId;
  readonly kind: 'ratio' | 'difference' | 'share';
  /** Beyond it there is a change, and a large one: ln ratio, difference, or share of ΔTTFT. */
  readonly small: number;
  readonly large: number;
  /** Added to both sides of a ratio that may be of zeros. */
  readonly floor?: number;
}

const ratio = (quantity: QuantityId, small: number, large: number, floor?: number): Row => ({
  quantity,
  kind: 'ratio',
  small: Math.log(small),
  large: Math.log(large),
  ...(floor !== undefined && { floor }),
});
const difference = (quantity: QuantityId, small: number, large: number): Row => ({
  quantity,
  kind: 'difference',
  small,
  large,
});
const part = (quantity: QuantityId): Row => ({ quantity, kind: 'share', small: 0.15, large: 0.5 });

/** Facts that are one quantity's change. */
const ROWS = {
  ttft: ratio('ttft', 1.08, 1.3),
  ttft_p50: ratio('ttft_p50', 1.08, 1.3),
  ttft_p99: ratio('ttft_p99', 1.15, 1.5),
  tpot: ratio('tpot', 1.05, 1.2),
  itl_p50: ratio('itl_p50', 1.05, 1.2),
  itl_p99: ratio('itl_p99', 1.15, 1.5),
  gap: ratio('gap', 1.1, 1.4),
  latency: ratio('latency', 1.06, 1.25),
  'part.client': part('client'),
  'part.connect': part('connect'),
  'part.queue': part('queue'),
  'part.prefill': part('prefill'),
  'part.frontend': part('frontend'),
  'part.delivery': part('delivery'),
  'part.transfer': part('transfer'),
  'part.load': part('load'),
  rate: ratio('rate', 1.06, 1.2),
  dispersion: ratio('dispersion', 1.5, 2.5),
  attempts: difference('attempts', 0.02, 0.08),
  failed: difference('failed', 0.01, 0.08),
  prompt: ratio('prompt', 1.06, 1.22),
  computed: ratio('computed', 1.07, 1.25),
  hit_rate: difference('hit_rate', 0.04, 0.15),
  prefill_per_token: ratio('prefill_per_token', 1.1, 1.3),
  output: ratio('output', 1.06, 1.22),
  running: ratio('running', 1.1, 1.35, 0.2),
  running_max: ratio('running_max', 1.12, 1.35, 0.2),
  waiting: ratio('waiting', 1.3, 2.5, 0.5),
  kv_usage: difference('kv_usage', 0.07, 0.25),
  preemptions: difference('preemptions', 0.01, 0.06),
  throughput: ratio('throughput', 1.1, 1.4),
  step_tokens: ratio('step_tokens', 1.1, 1.35),
  step_tail: ratio('step_tail', 1.3, 1.8),
  acceptance: difference('acceptance', 0.03, 0.1),
  replicas: ratio('replicas', 1.03, 1.1),
  skew: difference('skew', 0.12, 0.35),
  replica_ttft: difference('replica_ttft', 0.3, 0.8),
  gpu_clock: ratio('gpu_clock', 1.03, 1.08),
  send_lag_p99: difference('send_lag_p99', 3, 15),
  event_loop_p99: difference('event_loop_p99', 3, 15),
  chunk_tokens: ratio('chunk_tokens', 1.2, 1.7),
  bunched: difference('bunched', 0.08, 0.35),
  ttft_share: difference('ttft_share', 0.1, 0.35),
  at_once: difference('at_once', 0.1, 0.85),
  load_share: difference('load_share', 0.03, 0.12),
  stall_time: difference('stall_time', 0.008, 0.04),
  stall_regular: difference('stall_regular', 0.3, 0.6),
  stall_released: difference('stall_released', 0.6, 2),
  stall_prefill: difference('stall_prefill', 0.25, 0.6),
  early: ratio('early', 1.2, 1.6),
  ttft_early: ratio('ttft_early', 1.15, 1.5),
  switched: ratio('switched', 1.15, 1.5),
  long_short: ratio('long_short', 1.12, 1.35),
  bimodal: difference('bimodal', 0.8, 2),
  decode_prefill: difference('decode_prefill', 0.05, 0.25),
  one_class: difference('one_class', 0.45, 0.8),
} as const satisfies Readonly<Record<string, Row>>;

const TOPICS: readonly FlagTopic[] = [
  'admission',
  'budget',
  'cache',
  'kv',
  'speculation',
  'kernel',
  'frontend',
  'warmup',
  'transfer',
  'proxy',
  'stream',
  'model',
  'adapter',
  'replicas',
  'other',
];

export type FactId =
  | keyof typeof ROWS
  | `flag.${FlagTopic}`
  | 'version'
  | 'deployed'
  | 'started'
  | 'loaded'
  | 'restarted'
  | 'alike'
  | 'path';

export type Facts = ReadonlyMap<FactId, Fact>;

export interface FactInput {
  readonly sideA: Side;
  readonly sideB: Side;
  readonly a: Measures;
  readonly b: Measures;
  readonly attribution: Attribution;
  readonly changes?: Changes | undefined;
}

export function factsOf(input: FactInput): Facts {
  const { a, b, changes } = input;
  const facts = new Map<FactId, Fact>();
  const scale = scaleOf(input);
  for (const [id, row] of Object.entries(ROWS) as [keyof typeof ROWS, Row][]) {
    const fact = quantityFact(id, row, both(a, b, row.quantity), scale);
    if (fact) facts.set(id, fact);
  }
  pathFact(input, scale, facts);
  alike(facts);
  oneClass(input, facts);
  restarted(input, facts);
  if (changes) told(changes, facts);
  return facts;
}

/** What components are held against: ΔTTFT, but a seventh of TTFT at least, so that a flat TTFT makes no huge shares. */
function scaleOf({ a, b }: FactInput): number | undefined {
  const pair = both(a, b, 'ttft') ?? both(a, b, 'ttft_p50') ?? both(a, b, 'server_ttft');
  if (!pair) return undefined;
  return Math.max(Math.abs(pair.b.value - pair.a.value), pair.a.value / 7, 1e-6);
}

function quantityFact(
  id: keyof typeof ROWS,
  row: Row,
  pair: { a: Estimate; b: Estimate } | undefined,
  scale: number | undefined,
): Fact | undefined {
  if (!pair) return undefined;
  let effect: number;
  let se: number;
  if (row.kind === 'ratio') {
    const floor = row.floor ?? 0;
    const r = logRatio({ ...pair.a, value: pair.a.value + floor }, { ...pair.b, value: pair.b.value + floor });
    if (!r) return undefined;
    effect = r.value;
    se = r.se;
  } else {
    const by = row.kind === 'share' ? scale : 1;
    if (by === undefined) return undefined;
    effect = (pair.b.value - pair.a.value) / by;
    se = Math.hypot(pair.a.se, pair.b.se) / by;
  }
  const { label, unit } = QUANTITIES[row.quantity];
  return {
    id,
    label,
    a: pair.a.value,
    b: pair.b.value,
    effect,
    se,
    kind: row.kind,
    unit: row.kind === 'share' ? 'share of ΔTTFT' : unit,
    states: statesOf(effect, se, row.small, row.large),
    source: pair.a.source,
    population:
      pair.a.population === pair.b.population ? pair.a.population : `${pair.a.population} against ${pair.b.population}`,
  };
}

/** Probabilities of the five states; bounds are soft by a quarter of themselves, so that no figure tips at a hair. */
export function statesOf(effect: number, se: number, small: number, large: number): States {
  const at = (bound: number): number => below(effect, Math.hypot(se, 0.2 * Math.abs(bound)), bound);
  const [p1, p2, p3, p4] = [at(-large), at(-small), at(small), at(large)];
  const raw = [p1, Math.max(0, p2 - p1), Math.max(0, p3 - p2), Math.max(0, p4 - p3), 1 - p4];
  const sum = raw.reduce((s, x) => s + Math.max(0, x), 0);
  return raw.map((x) => Math.max(0, x) / sum) as unknown as States;
}

const SURE: Readonly<Record<'yes' | 'no', States>> = { yes: [0, 0, 0, 0, 1], no: [0, 0, 1, 0, 0] };

function discrete(id: FactId, label: string, is: boolean, source: Fact['source'], population: string): Fact {
  return {
    id,
    label,
    effect: is ? 1 : 0,
    se: 0,
    kind: 'told',
    unit: 'told',
    states: is ? SURE.yes : SURE.no,
    source,
    population,
  };
}

function told({ versions, flags, deployments, marks }: Changes, facts: Map<FactId, Fact>): void {
  const said = (list: readonly { name: string; before: string; after: string }[]): string =>
    list.map((d) => `${d.name}: ${d.before} → ${d.after}`).join('; ') || 'none told';
  const add = (id: FactId, label: string, list: Parameters<typeof said>[0]): void =>
    void facts.set(id, discrete(id, label, list.length > 0, 'changes', said(list)));
  add('version', 'a version changed', versions);
  for (const topic of TOPICS) {
    add(
      `flag.${topic}`,
      `a setting changed: ${topic}`,
      [...flags, ...deployments].filter((f) => f.topic === topic),
    );
  }
  add('deployed', 'something was deployed', deployments);
  const texts = (kinds: readonly string[]) => marks.filter((m) => m.side === 'after' && kinds.includes(m.kind));
  for (const [id, label, kinds] of [
    ['started', 'a process started', ['process-start', 'deploy']],
    ['loaded', 'a model was loaded', ['model-load']],
  ] as const) {
    const own = texts(kinds);
    facts.set(id, discrete(id, label, own.length > 0, 'changes', own.map((m) => m.text).join('; ') || 'none told'));
  }
}

/** A server process began within the later window, or ten minutes before it, by its own account. */
function restarted({ sideA, sideB }: FactInput, facts: Map<FactId, Fact>): void {
  const starts = (side: Side) => side.evidence?.replicas.map((r) => r.gauges.process_start?.last) ?? [];
  const reset = sideB.evidence?.replicas.some((r) => r.reset) ?? false;
  const known = starts(sideB).filter((s) => s !== undefined);
  if (!sideA.evidence || !sideB.evidence || (known.length === 0 && !reset)) return;
  const fresh = sideB.evidence.replicas.some((r) => {
    const start = r.gauges.process_start?.last;
    return start !== undefined && r.window.start !== undefined && start * 1000 > r.window.start - 600_000;
  });
  const is = reset || fresh;
  facts.set(
    'restarted',
    discrete(
      'restarted',
      'a server process started in or just before the later window',
      is,
      'server-metrics',
      `${known.length} start times`,
    ),
  );
}

/**
 * The way outside the engine, where frontend and delivery cannot be told apart: what of ΔTTFT neither client queue, queue
 * nor prefill holds.
 */
function pathFact({ attribution, a, b }: FactInput, scale: number | undefined, facts: Map<FactId, Fact>): void {
  const { total, parts } = attribution;
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
 * Whether decode steps slowed as prefill did: 1 by the same factor, as a slower clock would; 0 prefill alone. The middle gap
 * is taken, which steps that hold prompts do not reach.
 */
function alike(facts: Map<FactId, Fact>): void {
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

/** Whether one class holds more of ΔTTFT than of the requests: 0 in proportion, 1 all of it. */
function oneClass({ sideA, sideB }: FactInput, facts: Map<FactId, Fact>): void {
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

/** Quantities that one side has and the other has not, or neither: what is missing. */
export function lacks(a: Measures, b: Measures, id: QuantityId): 'before' | 'after' | 'both' | undefined {
  if (both(a, b, id)) return undefined;
  const [x, y] = [best(a, id), best(b, id)];
  return x ? 'after' : y ? 'before' : 'both';
}
