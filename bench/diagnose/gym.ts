/** Cases with known answers, from fresh seeds; how often the diagnosis finds them, and how sure it is when it does. */

import type { Changes } from '../../src/diagnose/changes.ts';
import { type Diagnosis, diagnose, NAMED } from '../../src/diagnose/diagnose.ts';
import { RequestFold } from '../../src/diagnose/fold.ts';
import type { Side } from '../../src/diagnose/side.ts';
import { changesOf, confound, SCENARIOS, type Scenario } from './scenarios.ts';
import { serve } from './serve.ts';
import { Draw, drawWorld, type World } from './world.ts';

export interface Case {
  readonly truth: readonly string[];
  readonly a: Side;
  readonly b: Side;
  readonly changes: Changes | undefined;
  /** The largest worsening of a headline figure. */
  readonly effect: number;
}

export function sideOf(world: World, name: string): Side {
  const served = serve(world);
  const fold = new RequestFold();
  for (const record of served.records) fold.add(record);
  return { name, requests: fold.finish(), ...(served.evidence && { evidence: served.evidence }), notes: [] };
}

function meanOf(side: Side, of: 'ttft' | 'tpot' | 'gap' | 'latency'): number {
  const values = side.requests!.rows.map((r) => r[of]).filter((x) => x !== undefined);
  return values.reduce((s, v) => s + v, 0) / Math.max(1, values.length);
}

export function effectOf(a: Side, b: Side): number {
  return Math.max(...(['ttft', 'tpot', 'gap', 'latency'] as const).map((of) => meanOf(b, of) / meanOf(a, of)));
}

function prepared(seed: number, scenarios: readonly Scenario[], d: Draw): World {
  let w = drawWorld(seed);
  for (const s of scenarios) w = s.prepare?.(w, d) ?? w;
  if (scenarios.some((s) => s.id === 'admission')) {
    // As full a batch as the load fills at its busiest: a lower cap then binds.
    const gauges = serve({ ...w, requests: 400 }).evidence!.replicas.map((r) => r.gauges.running!.max);
    w = { ...w, maxSeqs: Math.max(4, Math.min(w.maxSeqs, Math.round(Math.max(...gauges)))) };
  }
  return w;
}

export function singleCase(scenario: Scenario, seed: number): Case {
  const d = new Draw(seed, `case-${scenario.id}`);
  const a = prepared(seed, [scenario], d);
  const strength = d.share();
  const confounded = d.chance(0.5);
  let b: World = { ...scenario.apply(a, strength, d), seed: seed + 0.5 };
  if (confounded) b = confound(b, d);
  const sides = [sideOf(a, 'before'), sideOf(b, 'after')] as const;
  return {
    truth: [scenario.id],
    a: sides[0],
    b: sides[1],
    changes: changesOf([scenario], d, confounded),
    effect: effectOf(...sides),
  };
}

export function nullCase(seed: number): Case {
  const d = new Draw(seed, 'case-null');
  const scenario = d.pick(SCENARIOS);
  const a = prepared(seed, [scenario], d);
  const b: World = { ...a, seed: seed + 0.5, restarted: d.chance(0.2) };
  const sides = [sideOf(a, 'before'), sideOf(b, 'after')] as const;
  return { truth: [], a: sides[0], b: sides[1], changes: changesOf([], d, true), effect: effectOf(...sides) };
}

/** Pairs whose mechanics do not overwrite each other's; undefined where one of the two has no effect of its own. */
export function pairCase(seed: number): Case | undefined {
  const d = new Draw(seed, 'case-pair');
  const first = d.pick(SCENARIOS);
  const second = d.pick(SCENARIOS);
  if (!compatible(first, second)) return undefined;
  const a = prepared(seed, [first, second], d);
  const strengths = [d.between(0.4, 1), d.between(0.4, 1)] as const;
  const one: World = { ...first.apply(a, strengths[0], new Draw(seed, 'first')), seed: seed + 0.5 };
  const other: World = { ...second.apply(a, strengths[1], new Draw(seed, 'second')), seed: seed + 0.5 };
  const b: World = { ...second.apply(one, strengths[1], new Draw(seed, 'second')), seed: seed + 0.5 };
  const before = sideOf(a, 'before');
  const alone = [one, other].map((w) => effectOf(before, sideOf(w, '')));
  if (Math.min(...alone) < 1.5 || Math.max(...alone) / Math.min(...alone) > 3) return undefined;
  const after = sideOf(b, 'after');
  return {
    truth: [first.id, second.id],
    a: before,
    b: after,
    changes: changesOf([first, second], d, false),
    effect: effectOf(before, after),
  };
}

const DELIVERIES = ['proxy-buffering', 'response-batching', 'fake-streaming', 'synchronous-stalls'];
const BUDGETS = ['chunk-budget', 'chunked-prefill-interference', 'speculative-acceptance'];
const SLOTS = ['admission', 'batch-growth', 'kv-pressure', 'longer-prompts'];
const FLEETS = ['replica-imbalance', 'lost-replica'];
const CLASSES = ['adapter-swaps', 'request-preprocessing'];
const PREFIX = ['prefix-cache-loss', 'speculative-acceptance'];
/** What undoes the other's sign by its nature: a trade is told by what nothing else explains. */
const ALONE = ['intended-trade', 'retry-storm'];
/** An answer that comes whole shows no gap: what lengthens gaps alone leaves no sign at the client. */
const HIDDEN = ['fake-streaming', 'chunked-prefill-interference'];

function compatible(a: Scenario, b: Scenario): boolean {
  if (a.id === b.id) return false;
  for (const group of [DELIVERIES, BUDGETS, SLOTS, FLEETS, CLASSES, PREFIX, HIDDEN])
    if (group.includes(a.id) && group.includes(b.id)) return false;
  return !ALONE.includes(a.id) && !ALONE.includes(b.id);
}

interface Answer {
  readonly truth: readonly string[];
  readonly effect: number;
  readonly verdict: Diagnosis['verdict'];
  readonly named: readonly string[];
  readonly confidence: number;
  readonly shown: boolean;
}

function answer(c: Case): { answer: Answer; diagnosis: Diagnosis } {
  const diagnosis = diagnose(c.a, c.b, { changes: c.changes });
  return {
    diagnosis,
    answer: {
      truth: c.truth,
      effect: c.effect,
      verdict: diagnosis.verdict,
      named: diagnosis.causes.map((x) => x.cause.id),
      confidence: diagnosis.causes[0]?.confidence ?? 0,
      shown: diagnosis.change.worse || diagnosis.change.better,
    },
  };
}

const isNamed = (a: Answer): boolean => a.verdict === 'cause' || a.verdict === 'trade';
const percent = (k: number, n: number): string => (n === 0 ? '–' : `${((100 * k) / n).toFixed(1)} %`);

export async function main(argv: readonly string[]): Promise<void> {
  const flag = (name: string): string | undefined => {
    const i = argv.indexOf(`--${name}`);
    return i < 0 ? undefined : argv[i + 1];
  };
  const cases = Number(flag('cases') ?? 1200);
  const seed = Number(flag('seed') ?? Math.floor(Date.now() % 1e9));
  const only = flag('only')?.split(',');
  const verbose = argv.includes('--verbose');
  const table = argv.includes('--facts');
  const part = flag('part') ?? (only ? 'singles' : 'all');
  const minutes = Number(flag('minutes') ?? Number.POSITIVE_INFINITY);
  const started = performance.now();
  const late = (): boolean => performance.now() - started > minutes * 60_000;
  const does = (name: string): boolean => part === 'all' || part === name;
  const used = only ? SCENARIOS.filter((s) => only.includes(s.id)) : SCENARIOS;
  console.log(`gym: seed ${seed}, ${cases} single causes over ${used.length} scenarios`);
  const singles: Answer[] = [];
  const frequencies = new Map<string, Map<string, number[]>>();
  for (let k = 0; does('singles') && k < cases && !late(); k++) {
    const scenario = used[k % used.length] as Scenario;
    const c = singleCase(scenario, seed + 1 + k);
    const { answer: a, diagnosis } = answer(c);
    singles.push(a);
    const wrong = a.effect >= 1.5 && (a.named[0] !== scenario.id || !isNamed(a));
    if (verbose && wrong) explain(scenario.id, seed + 1 + k, a, diagnosis);
    if (table && a.effect >= 1.5) {
      const own = frequencies.get(scenario.id) ?? new Map<string, number[]>();
      frequencies.set(scenario.id, own);
      for (const f of diagnosis.facts.values()) {
        const sums = own.get(f.id) ?? [0, 0, 0, 0, 0, 0];
        own.set(f.id, sums);
        f.states.forEach((p, i) => void (sums[i]! += p));
        sums[5]!++;
      }
    }
  }
  if (table) printFacts(frequencies);
  const pairs: Answer[] = [];
  const nulls: Answer[] = [];
  if (!only) {
    for (let k = 0; does('pairs') && pairs.length < cases / 6 && k < cases * 3 && !late(); k++) {
      const c = pairCase(seed + 500_000 + k);
      if (!c) continue;
      const { answer: a, diagnosis } = answer(c);
      pairs.push(a);
      const top = a.named.slice(0, 2);
      if (verbose && !c.truth.every((t) => top.includes(t)))
        explain(c.truth.join('+'), seed + 500_000 + k, a, diagnosis);
    }
    for (let k = 0; does('nulls') && k < cases / 2 && !late(); k++) {
      const { answer: a, diagnosis } = answer(nullCase(seed + 900_000 + k));
      nulls.push(a);
      if (verbose && a.shown) {
        const shown = diagnosis.change.changes.filter((x) => x.shown);
        console.log(
          `  false alarm ${seed + 900_000 + k}: ${shown.map((x) => `${x.id} ${x.ratio.toFixed(2)}`).join(', ')} → ${a.verdict} ${a.named[0]}`,
        );
      }
    }
  }
  report(singles, pairs, nulls);
}

function explain(truth: string, seed: number, a: Answer, d: Diagnosis): void {
  console.log(
    `\n  ${truth} (${seed}) effect ${a.effect.toFixed(2)}: ${a.verdict}; ${d.causes
      .slice(0, 4)
      .map((c) => `${c.cause.id} ${c.confidence.toFixed(2)}`)
      .join(', ')}; none ${d.none.toFixed(2)}`,
  );
  const moved = [...d.facts.values()].filter((f) => f.states[2] < 0.6 && f.kind !== 'told');
  console.log(`    ${moved.map((f) => `${f.id} ${f.effect.toFixed(2)}±${f.se.toFixed(2)}`).join(', ')}`);
  const told = [...d.facts.values()].filter((f) => f.kind === 'told' && f.effect > 0);
  if (told.length > 0) console.log(`    told ${told.map((f) => f.id).join(', ')}`);
}

function printFacts(all: Map<string, Map<string, number[]>>): void {
  for (const [id, facts] of all) {
    console.log(`\n${id}`);
    for (const [fact, s] of facts) {
      const n = s[5]!;
      const p = s.slice(0, 5).map((x) => x / n);
      if (p[2]! < 0.8) console.log(`  ${fact.padEnd(18)} ${p.map((x) => x.toFixed(2)).join(' ')}  n ${n}`);
    }
  }
}

function report(singles: readonly Answer[], pairs: readonly Answer[], nulls: readonly Answer[]): void {
  if (singles.length > 0) reportSingles(singles);
  if (pairs.length > 0) reportPairs(pairs);
  if (nulls.length > 0) reportNulls(nulls);
}

function reportSingles(singles: readonly Answer[]): void {
  const strong = singles.filter((a) => a.effect >= 1.5);
  const answered = strong.filter(isNamed);
  const right = answered.filter((a) => a.named[0] === a.truth[0]);
  console.log('\nSingle causes, effect ≥ 1.5');
  console.log(
    `  answered ${answered.length} of ${strong.length}, abstained ${percent(strong.length - answered.length, strong.length)} (asked ≤ 10 %)`,
  );
  console.log(`  top-1 right ${percent(right.length, answered.length)} of answers (asked ≥ 95 %)`);
  const by = new Map<string, Answer[]>();
  for (const a of strong) by.set(a.truth[0]!, [...(by.get(a.truth[0]!) ?? []), a]);
  for (const [id, list] of by) {
    const named = list.filter(isNamed);
    const ok = named.filter((a) => a.named[0] === id).length;
    const others = new Map<string, number>();
    for (const a of named) if (a.named[0] !== id) others.set(a.named[0]!, (others.get(a.named[0]!) ?? 0) + 1);
    console.log(
      `    ${id.padEnd(30)} ${String(list.length).padStart(4)} cases  right ${percent(ok, named.length).padStart(8)}  unknown ${percent(list.length - named.length, list.length).padStart(7)}  ${[...others].map(([k, v]) => `${k} ×${v}`).join(', ')}`,
    );
  }
  console.log('\nBy size of the effect (single causes)');
  const edges = [1, 1.1, 1.25, 1.5, 2, 3, 5, Number.POSITIVE_INFINITY];
  for (let i = 0; i + 1 < edges.length; i++) {
    const bin = singles.filter((a) => a.effect >= edges[i]! && a.effect < edges[i + 1]!);
    const named = bin.filter(isNamed);
    const ok = named.filter((a) => a.named[0] === a.truth[0]).length;
    const count = (v: Diagnosis['verdict']) => bin.filter((a) => a.verdict === v).length;
    console.log(
      `    ${`${edges[i]}–${edges[i + 1] === Number.POSITIVE_INFINITY ? '' : edges[i + 1]}`.padEnd(10)} ${String(bin.length).padStart(5)} cases  right ${percent(ok, named.length).padStart(8)} of ${named.length} answers  unknown ${percent(count('unknown'), bin.length).padStart(7)}  not shown ${percent(count('not-shown'), bin.length).padStart(7)}`,
    );
  }
  console.log('\nReliability (single causes, all effects, answered or not)');
  const bins = [0, 0.3, 0.5, NAMED, 0.7, 0.8, 0.9, 0.97, 1.0001];
  for (let i = 0; i + 1 < bins.length; i++) {
    const bin = singles.filter(
      (a) => a.verdict !== 'not-shown' && a.confidence >= bins[i]! && a.confidence < bins[i + 1]!,
    );
    const ok = bin.filter((a) => a.named[0] === a.truth[0]).length;
    const mean = bin.reduce((s, a) => s + a.confidence, 0) / Math.max(1, bin.length);
    console.log(
      `    ${`${bins[i]}–${Math.min(1, bins[i + 1]!)}`.padEnd(10)} ${String(bin.length).padStart(5)} cases  said ${percent(mean, 1).padStart(8)}  right ${percent(ok, bin.length).padStart(8)}`,
    );
  }
}

function reportPairs(pairs: readonly Answer[]): void {
  const both = pairs.filter((a) => a.truth.every((t) => a.named.slice(0, 2).includes(t))).length;
  const one = pairs.filter((a) => isNamed(a)).length;
  const any = pairs.filter((a) => a.truth.includes(a.named[0] ?? '')).length;
  const answeredBoth = pairs.filter((a) => isNamed(a) && a.truth.every((t) => a.named.slice(0, 2).includes(t))).length;
  console.log(`\nPairs, each ≥ 1.5 alone: ${pairs.length}`);
  console.log(
    `  both in the top two ${percent(both, pairs.length)}; of ${one} answered ${percent(answeredBoth, one)} (asked ≥ 90 %); one of them first ${percent(any, pairs.length)}`,
  );
}

function reportNulls(nulls: readonly Answer[]): void {
  const alarms = nulls.filter((a) => a.shown).length;
  console.log(
    `\nNo change: ${nulls.length} pairs, shown ${percent(alarms, nulls.length)}, a cause named ${percent(nulls.filter(isNamed).length, nulls.length)} (asked ≤ 2 %)`,
  );
}
