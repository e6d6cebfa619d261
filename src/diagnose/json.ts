/** A diagnosis as JSON. Keys are never changed or removed within a schema version; what is not known is null. */
import type { Amount, Attribution } from './attribution.ts';
import { TPOT_PARTS, type TpotAttribution, type TpotPart } from './attribution-tpot.ts';
import type { Diagnosis, RankedCause } from './diagnose.ts';
import type { Fact } from './facts.ts';
import type { Support } from './score.ts';

export const DIAGNOSIS_SCHEMA = 'goodput.diagnosis/1';

/** What a simulation of the knob said, where one was made. */
export interface FixCheck {
  readonly cause: string;
  readonly knob: string;
  readonly simulated: boolean;
  readonly text: string;
  readonly before?: { readonly ttft_ms: number; readonly tpot_ms: number };
  readonly after?: { readonly ttft_ms: number; readonly tpot_ms: number };
}

export function diagnosisObject(d: Diagnosis, fixes: readonly FixCheck[] = []): object {
  return {
    schema: DIAGNOSIS_SCHEMA,
    verdict: d.verdict,
    summary: d.summary,
    regression: d.regression,
    reversed: d.reversed,
    causes: d.causes.map(causeObject),
    none_of_these: round(d.none),
    attribution_ms: attributionMs(d.attribution),
    attribution_tpot_ms: attributionTpotMs(d.attributionTpot),
    attribution: attributionObject(d.attribution),
    attribution_tpot: attributionTpotObject(d.attributionTpot),
    ruled_out: d.ruledOut.map((r) => ({ id: r.id, label: r.label, because: r.because.map(factObject) })),
    missing: d.missing.map((m) => ({ what: m.what, side: m.side, decides: m.decides, how: m.how })),
    change: {
      spread: d.change.spread,
      worse: d.change.worse,
      better: d.change.better,
      figures: d.change.changes.map((c) => ({
        id: c.id,
        before: round(c.a),
        after: round(c.b),
        ratio: round(c.ratio),
        low: round(c.low),
        high: round(c.high),
        p: round(c.p),
        shown: c.shown,
        source: c.source,
        population: c.population,
      })),
    },
    facts: [...d.facts.values()].map(factObject),
    what_would_fix: fixes,
    notes: d.notes,
    before: d.a.name,
    after: d.b.name,
  };
}

export function diagnosisJson(d: Diagnosis, fixes: readonly FixCheck[] = []): string {
  return `${JSON.stringify(diagnosisObject(d, fixes), null, 2)}\n`;
}

function causeObject({ cause, confidence, evidence, against }: RankedCause): object {
  return {
    id: cause.id,
    label: cause.label,
    locus: cause.locus,
    confidence: round(confidence),
    evidence: evidence.map(supportObject),
    against: against.map(supportObject),
    contradicted_by: cause.contradictedBy,
    knob: cause.knob,
    price: cause.price,
    source: cause.source,
  };
}

function supportObject({ fact, weight }: Support): object {
  return { ...factObject(fact), weight: round(weight) };
}

function factObject(f: Fact): object {
  const by = 1.96 * f.se;
  return {
    fact: f.id,
    label: f.label,
    before: round(f.a),
    after: round(f.b),
    change: round(f.kind === 'ratio' ? Math.exp(f.effect) : f.effect),
    low: round(f.kind === 'ratio' ? Math.exp(f.effect - by) : f.effect - by),
    high: round(f.kind === 'ratio' ? Math.exp(f.effect + by) : f.effect + by),
    kind: f.kind,
    unit: f.unit,
    source: f.source,
    population: f.population,
  };
}

export function attributionMs({ parts, residual }: Attribution): Record<string, number | null> {
  const of = (a: Amount | undefined): number | null => (a ? round(a.value) : null);
  return {
    client: of(parts.client),
    connect: of(parts.connect),
    queue: of(parts.queue),
    prefill: of(parts.prefill),
    frontend: of(parts.frontend),
    delivery: of(parts.delivery),
    residual: of(residual),
  };
}

export const TPOT_KEYS: Readonly<Record<TpotPart, string>> = {
  batch: 'batch_growth',
  interference: 'prefill_interference',
  preemption: 'preemption',
  speculation: 'speculative_acceptance',
  stalls: 'synchronous_stalls',
};

/** Milliseconds a token; null where the data do not tell. */
export function attributionTpotMs({ parts, residual }: TpotAttribution): Record<string, number | null> {
  const of = (a: Amount | undefined): number | null => (a ? round(a.value) : null);
  return {
    ...Object.fromEntries(TPOT_PARTS.map((part) => [TPOT_KEYS[part], of(parts[part])])),
    residual: of(residual),
  };
}

function attributionTpotObject({ total, parts, residual, notes }: TpotAttribution): object {
  return {
    total: amount(total),
    parts: Object.fromEntries(TPOT_PARTS.map((part) => [TPOT_KEYS[part], amount(parts[part])])),
    residual: amount(residual),
    notes,
  };
}

const amount = (x: Amount | undefined): object | null =>
  x
    ? { value: round(x.value), low: round(x.low), high: round(x.high), source: x.source, population: x.population }
    : null;

function attributionObject(a: Attribution): object {
  return {
    total: amount(a.total),
    parts: Object.fromEntries(Object.entries(a.parts).map(([name, x]) => [name, amount(x)])),
    residual: amount(a.residual),
    prefill_factors: a.factors.map((f) => ({ name: f.name, before: round(f.a), after: round(f.b), ms: round(f.ms) })),
    tail: a.tail
      ? {
          share: a.tail.share,
          requests: a.tail.n,
          total_ms: round(a.tail.total),
          parts_ms: Object.fromEntries(Object.entries(a.tail.parts).map(([k, v]) => [k, round(v)])),
        }
      : null,
    notes: a.notes,
  };
}

function round(x: number): number;
function round(x: number | undefined): number | null;
function round(x: number | undefined): number | null {
  if (x === undefined || !Number.isFinite(x)) return null;
  return Number(x.toPrecision(6));
}
