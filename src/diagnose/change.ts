/**
 * Is there a change at all? The interval of each headline figure's ratio first; what lies within the spread between runs of
 * one system is not shown to be a change. Corrected for looking at several figures (Holm).
 */
import type { Share } from '../base/units.ts';
import { holm } from '../stats/compare.ts';
import { normalCdf } from '../stats/normal.ts';
import { type Estimate, logRatio, type Source } from './estimate.ts';
import { QUANTITIES, type QuantityId } from './quantities.ts';
import { both, type Measures } from './table.ts';

/** Figures a user feels, in the order they are told. */
export const HEADLINES = [
  'ttft',
  'ttft_p50',
  'ttft_p99',
  'ttft_early',
  'tpot',
  'itl_p50',
  'itl_p99',
  'gap',
  'latency',
] as const;
/** Told only where no latency is known on both sides: it also falls where less was asked for. */
const LAST_RESORT = 'throughput';
export type Headline = (typeof HEADLINES)[number] | typeof LAST_RESORT;

export interface HeadlineChange {
  readonly id: Headline;
  readonly label: string;
  readonly a: number;
  readonly b: number;
  /** b/a with its 95 % interval. */
  readonly ratio: number;
  readonly low: number;
  readonly high: number;
  /** Chance of such a difference beyond the spread if there were none, corrected for the number of figures. */
  readonly p: number;
  readonly shown: boolean;
  readonly source: Source;
  readonly population: string;
}

export interface ChangeTest {
  readonly changes: readonly HeadlineChange[];
  /** Spread between runs of one system, as a share. */
  readonly spread: Share;
  readonly worse: boolean;
  readonly better: boolean;
}

/** What runs of one system differ by, where nobody has said: a share. */
export const DEFAULT_SPREAD = 0.05;
const ALPHA = 0.01;
/** From one run a side dependence is never fully known: errors are taken this much wider. */
const CAUTION = 1.25;

export function changeTest(a: Measures, b: Measures, spread: Share = DEFAULT_SPREAD): ChangeTest {
  const found: { id: Headline; a: Estimate; b: Estimate; value: number; se: number; p: number }[] = [];
  for (const id of [...HEADLINES, LAST_RESORT] as const) {
    if (id === LAST_RESORT && found.length > 0) continue;
    const pair = both(a, b, id);
    const r = pair && logRatio(pair.a, pair.b);
    if (!pair || !r) continue;
    const se = Math.max(CAUTION * r.se, 1e-9);
    // A tail moves more from run to run than a mean.
    const within = Math.log(1 + spread) * (TAILS.has(id) ? 2 : 1);
    found.push({ id, ...pair, value: r.value, se, p: Math.min(1, 2 * normalCdf((within - Math.abs(r.value)) / se)) });
  }
  const adjusted = holm(found.map((f) => f.p));
  const changes = found.map((f, i): HeadlineChange => {
    const p = adjusted[i]!;
    return {
      id: f.id,
      label: QUANTITIES[f.id as QuantityId].label,
      a: f.a.value,
      b: f.b.value,
      ratio: Math.exp(f.value),
      low: Math.exp(f.value - 1.96 * f.se),
      high: Math.exp(f.value + 1.96 * f.se),
      p,
      shown: p < ALPHA,
      source: f.a.source,
      population: f.a.population === f.b.population ? f.a.population : `${f.a.population} against ${f.b.population}`,
    };
  });
  const shown = changes.filter((c) => c.shown);
  return { changes, spread, worse: shown.some((c) => isWorse(c)), better: shown.some((c) => !isWorse(c)) };
}

const isWorse = (c: HeadlineChange): boolean => (c.id === LAST_RESORT ? c.ratio < 1 : c.ratio > 1);

const TAILS: ReadonlySet<Headline> = new Set(['ttft_p99', 'ttft_early', 'itl_p99', 'gap']);
