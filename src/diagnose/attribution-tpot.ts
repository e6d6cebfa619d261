/**
 * The change of mean TPOT as a sum: what larger batches, prompts in the same steps, preemption, fewer accepted drafts and
 * stalls of the whole process each added. A request's TPOT is its middle step a token, and what its longer ones took beyond
 * it; both add up over requests. What the data cannot tell apart is said, and left in the residual.
 */
import type { Millis } from '../base/units.ts';
import { histogramQuantile, mergeHistograms, totalOf } from '../stats/histogram.ts';
import type { Amount } from './attribution.ts';
import { type Batch, batchFrom, batchGrowth } from './batch-slope.ts';
import { type Estimate, meanEstimate } from './estimate.ts';
import type { RequestRow, Side } from './side.ts';
import { both, type Measures } from './table.ts';

export const TPOT_PARTS = ['batch', 'interference', 'preemption', 'speculation', 'stalls'] as const;
export type TpotPart = (typeof TPOT_PARTS)[number];

export interface TpotAttribution {
  /** Δ mean TPOT, ms a token; absent where no TPOT is known on both sides. */
  readonly total?: Amount;
  readonly parts: Readonly<Partial<Record<TpotPart, Amount>>>;
  readonly residual?: Amount;
  readonly notes: readonly string[];
}

/** Of a side, ms a token: the step itself, and what longer gaps took beyond it. */
interface Split {
  readonly total: Estimate;
  readonly step: Estimate;
  readonly batch?: Batch | undefined;
  /** By the client's records. */
  readonly long?: Estimate;
  readonly prefill?: Estimate;
  readonly joint?: Estimate;
  readonly alone?: Estimate;
  /** From histograms: all that lies beyond the middle step, whatever it was. */
  readonly beyond?: Estimate;
}

export function attributeTpot(sideA: Side, sideB: Side, a: Measures, b: Measures): TpotAttribution {
  const pair = both(a, b, 'tpot');
  if (!pair) return { parts: {}, notes: [] };
  const notes: string[] = [];
  const total = difference(pair.a, pair.b);
  const parts: Partial<Record<TpotPart, Amount>> = {};
  const splits = splitPair(sideA, sideB, a, b, pair, notes);
  if (splits) {
    const [x, y] = splits;
    steps(x, y, a, b, parts, notes);
    pauses(x, y, a, b, parts, notes);
  } else {
    notes.push(
      'TPOT is not split: that takes the gaps of each request (a run folder), or the inter-token histogram of the server with its buckets',
    );
    speculationAlone(pair, a, b, parts);
  }
  const known = Object.values(parts);
  const largest = Math.max(total.se, ...known.map((p) => p.se));
  const value = total.value - known.reduce((s, p) => s + p.value, 0);
  const se = known.length === 0 ? total.se : 0.3 * largest + 0.01 * Math.abs(total.value);
  return { total, parts, residual: amountOf(value, se, total), notes };
}

function amountOf(value: number, se: number, like: Pick<Amount, 'source' | 'population'>): Amount {
  const { source, population } = like;
  return { value, se, low: value - 1.96 * se, high: value + 1.96 * se, source, population };
}

function difference(a: Estimate, b: Estimate): Amount {
  return amountOf(b.value - a.value, Math.hypot(a.se, b.se), {
    source: a.source,
    population: `${a.population} against ${b.population}`,
  });
}

function splitPair(
  sideA: Side,
  sideB: Side,
  a: Measures,
  b: Measures,
  pair: { a: Estimate; b: Estimate },
  notes: string[],
): readonly [Split, Split] | undefined {
  if (pair.a.source === 'requests') {
    const [x, y] = [fromRows(sideA, pair.a), fromRows(sideB, pair.b)];
    if (x && y) return [x, y];
    notes.push('fewer than nine in ten requests have gaps to split: one chunk or few');
    return undefined;
  }
  if (pair.a.source === 'server-metrics') {
    const [x, y] = [fromHistograms(sideA, pair.a), fromHistograms(sideB, pair.b)];
    return x && y ? [x, y] : undefined;
  }
  // Told: the middle gap beside the mean.
  const middle = both(a, b, 'itl_p50');
  if (!middle) return undefined;
  return [fromMiddle(pair.a, middle.a), fromMiddle(pair.b, middle.b)];
}

function fromMiddle(total: Estimate, middle: Estimate): Split {
  const value = total.value - middle.value;
  return { total, step: middle, beyond: { ...total, value, se: Math.hypot(total.se, middle.se) } };
}

function fromRows({ requests }: Side, total: Estimate): Split | undefined {
  const rows = requests?.rows.filter((r) => r.tpot !== undefined) ?? [];
  const later = (r: RequestRow): number => (r.output ?? r.chunks) - 1;
  const own = rows.filter((r) => r.step !== undefined && r.chunks > 3 && later(r) > 0);
  if (own.length < 0.9 * rows.length) return undefined;
  const mean = (of: (r: RequestRow) => Millis): Estimate | undefined =>
    meanEstimate(own.map(of), 'requests', `${own.length} requests`);
  const paused = (kind: 'prefill' | 'joint' | 'alone') => mean((r) => (r.paused?.[kind] ?? 0) / later(r));
  const steps = (r: RequestRow): number => r.steps ?? r.chunks - 1;
  const step = mean((r) => (r.step! * steps(r)) / later(r));
  const long = mean((r) => {
    const pausedAll = r.paused ? r.paused.prefill + r.paused.joint + r.paused.alone : 0;
    return r.tpot! - (r.step! * steps(r) + pausedAll) / later(r);
  });
  const [prefill, joint, alone] = [paused('prefill'), paused('joint'), paused('alone')];
  const batch = batchFrom(own, (r) => (r.step! * steps(r)) / later(r));
  return step && long && prefill && joint && alone ? { total, step, batch, long, prefill, joint, alone } : undefined;
}

/** The middle step from the inter-token histogram; what the mean lies beyond it. */
function fromHistograms({ evidence }: Side, total: Estimate): Split | undefined {
  const named = (evidence?.replicas ?? []).flatMap((r) => {
    const histogram = r.durations.itl?.histogram;
    return histogram ? [{ name: r.replica, histogram }] : [];
  });
  if (named.length === 0) return undefined;
  try {
    const merged = mergeHistograms(named);
    const q = totalOf(merged) >= 200 ? histogramQuantile(merged, 0.5) : undefined;
    if (!q || !Number.isFinite(q.high)) return undefined;
    const value = (1000 * (q.low + q.high)) / 2;
    const middle: Estimate = {
      value,
      se: (1000 * (q.high - q.low)) / Math.sqrt(12),
      n: totalOf(merged),
      source: 'server-metrics',
      population: `the bucket that holds the median of ${totalOf(merged)}`,
    };
    return fromMiddle(total, middle);
  } catch {
    return undefined; // no common bounds: the evidence's notes say so
  }
}

/** Δ of the step a token comes in: fewer tokens a step (speculation), and the batch, as far as it grew. */
function steps(
  x: Split,
  y: Split,
  a: Measures,
  b: Measures,
  parts: Partial<Record<TpotPart, Amount>>,
  notes: string[],
): void {
  const change = difference(x.step, y.step);
  const accepted = both(a, b, 'tokens_per_step');
  let rest = change.value;
  let restSe = change.se;
  let scale = 1;
  if (accepted) {
    parts.speculation = speculation(x.step, y.step, accepted.a, accepted.b);
    rest -= parts.speculation.value;
    restSe = Math.hypot(restSe, parts.speculation.se);
    scale = 0.5 * (1 + accepted.a.value / Math.max(accepted.b.value, 1e-9));
  }
  const own = x.batch && y.batch ? batchGrowth(x.batch, y.batch, rest, restSe) : undefined;
  if (own) {
    parts.batch = amountOf(own.value, own.se, x.step);
    notes.push(
      `batch growth: by how steps went with the streams under way within each run (${round(own.slope)} ms a token and stream), over ${round(x.batch!.mean)} → ${round(y.batch!.mean)} streams`,
    );
    return;
  }
  const running = both(a, b, 'running');
  if (!running || !(running.a.value > 0)) {
    notes.push(
      'steps without a prompt changed with the batch, or at the same batch: not told apart without the requests running on both sides; the residual holds both',
    );
    return;
  }
  // A step is a constant and a part that grows with the batch: between nothing and all of it does.
  const growth = running.b.value / running.a.value - 1;
  const bound = x.step.value * scale * growth;
  const most = growth > 0 ? Math.min(Math.max(rest, 0), bound) : Math.max(Math.min(rest, 0), bound);
  const se = Math.hypot(restSe, most / 4);
  const half = amountOf(most / 2, se, { source: running.a.source, population: running.a.population });
  parts.batch = { ...half, low: Math.min(half.low, 0, most), high: Math.max(half.high, 0, most) };
  if (Math.abs(most) > 0.05 * x.step.value)
    notes.push(
      `batch growth: between nothing and ${most > 0 ? '+' : '−'}${round(Math.abs(most))} ms a token, in proportion to the requests running (${round(running.a.value)} → ${round(running.b.value)}); steps slower at the same batch are not told from it, and the middle is taken`,
    );
}

/** TPOT = step / tokens a step; the change of the second factor, by the midpoint rule. */
function speculation(x: Estimate, y: Estimate, ta: Estimate, tb: Estimate): Amount {
  const step = 0.5 * (x.value * ta.value + y.value * tb.value);
  const value = step * (1 / tb.value - 1 / ta.value);
  const se = step * Math.hypot(ta.se / ta.value ** 2, tb.se / tb.value ** 2) + 0.1 * Math.abs(value);
  return amountOf(value, se, { source: ta.source, population: `${ta.population} against ${tb.population}` });
}

function speculationAlone(
  pair: { a: Estimate; b: Estimate },
  a: Measures,
  b: Measures,
  parts: Partial<Record<TpotPart, Amount>>,
): void {
  const accepted = both(a, b, 'tokens_per_step');
  if (accepted) parts.speculation = speculation(pair.a, pair.b, accepted.a, accepted.b);
}

/** Δ of what longer gaps took: steps that held prompts, stops of all streams, pauses of single ones. */
function pauses(
  x: Split,
  y: Split,
  a: Measures,
  b: Measures,
  parts: Partial<Record<TpotPart, Amount>>,
  notes: string[],
): void {
  const preempted = both(a, b, 'preemptions');
  const none = preempted && preempted.a.value < 0.002 && preempted.b.value < 0.002;
  if (x.beyond && y.beyond) {
    const change = difference(x.beyond, y.beyond);
    if (none) {
      parts.interference = change;
      notes.push(
        'prefill interference is all that the mean lies beyond the middle step: from histograms, stalls of the whole process are not told from it',
      );
    } else
      notes.push(
        `beyond the middle step ${change.value >= 0 ? '+' : '−'}${round(Math.abs(change.value))} ms a token: prefill interference, preemption and stalls are not told apart without the receipts of each chunk`,
      );
    return;
  }
  const [mixed, mixedB] = [x.prefill!, y.prefill!];
  const inSilences = difference(mixed, mixedB);
  const inLonger = difference(x.long!, y.long!);
  parts.interference = amountOf(inSilences.value + inLonger.value, Math.hypot(inSilences.se, inLonger.se), inSilences);
  parts.stalls = difference(x.joint!, y.joint!);
  const alone = difference(x.alone!, y.alone!);
  if (preempted && !none) parts.preemption = alone;
  else if (Math.abs(alone.value) > 0.02 * x.total.value)
    notes.push(
      `pauses of single streams ${alone.value >= 0 ? '+' : '−'}${round(Math.abs(alone.value))} ms a token: ${none ? 'nothing was preempted, so the way to the client' : 'preemption or the way to the client, not told apart without the preemptions counted'}; the residual holds them`,
    );
}

const round = (x: number): string => String(Number(x.toPrecision(3)));
