/** The table of what was observed of two sides. */
import type { Attribution } from './attribution.ts';
import type { Changes } from './changes.ts';
import { type Estimate, logRatio } from './estimate.ts';
import { type Fact, type FactId, type Facts, statesOf } from './fact.ts';
import { ROWS, type Row, type RowId } from './fact-rows.ts';
import { alikeFact, oneClassFact, opposedFact, pathFact, typicalFact } from './fact-shape.ts';
import { restartFact, toldFacts } from './fact-told.ts';
import { QUANTITIES, type QuantityId } from './quantities.ts';
import type { Side } from './side.ts';
import { best, both, type Measures } from './table.ts';

export type { Fact, FactId, Facts, States } from './fact.ts';

export interface FactInput {
  readonly sideA: Side;
  readonly sideB: Side;
  readonly a: Measures;
  readonly b: Measures;
  readonly attribution: Attribution;
  readonly changes?: Changes | undefined;
}

export function factsOf(input: FactInput): Facts {
  const { sideA, sideB, a, b, changes, attribution } = input;
  const facts = new Map<FactId, Fact>();
  const scale = scaleOf(input);
  for (const [id, row] of Object.entries(ROWS) as [RowId, Row][]) {
    const fact = quantityFact(id, row, both(a, b, row.quantity), scale);
    if (fact) facts.set(id, fact);
  }
  pathFact(attribution, a, b, scale, facts);
  alikeFact(facts);
  opposedFact(facts);
  typicalFact(a, b, facts);
  oneClassFact(sideA, sideB, facts);
  restartFact(sideA, sideB, facts);
  if (changes) toldFacts(changes, facts);
  return facts;
}

/** What components are held against: ΔTTFT, but a seventh of TTFT at least, so that a flat TTFT makes no huge shares. */
function scaleOf({ a, b }: FactInput): number | undefined {
  const pair = both(a, b, 'ttft') ?? both(a, b, 'ttft_p50') ?? both(a, b, 'server_ttft');
  if (!pair) return undefined;
  return Math.max(Math.abs(pair.b.value - pair.a.value), pair.a.value / 7, 1e-6);
}

function quantityFact(
  id: RowId,
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

/** Quantities that one side has and the other has not, or neither: what is missing. */
export function lacks(a: Measures, b: Measures, id: QuantityId): 'before' | 'after' | 'both' | undefined {
  if (both(a, b, id)) return undefined;
  const [x, y] = [best(a, id), best(b, id)];
  return x ? 'after' : y ? 'before' : 'both';
}
