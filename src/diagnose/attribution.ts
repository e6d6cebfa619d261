/**
 * The change of mean TTFT as a sum. Means add, quantile differences do not: a tail is decomposed as the mean over the
 * slowest requests, and only where each request's parts are known.
 */
import type { Millis } from '../base/units.ts';
import { type Estimate, meanEstimate, SOURCE_TEXT, type Source } from './estimate.ts';
import { deliveryOf, frontendOf } from './measure-requests.ts';
import type { QuantityId } from './quantities.ts';
import type { RequestRow, Side } from './side.ts';
import { best, both, type Measures } from './table.ts';

export const PARTS = ['client', 'connect', 'queue', 'prefill', 'frontend', 'delivery'] as const;
export type Part = (typeof PARTS)[number];

/** Milliseconds with a 95 % interval. */
export interface Amount {
  readonly value: Millis;
  readonly low: Millis;
  readonly high: Millis;
  readonly se: Millis;
  readonly source: Source;
  readonly population: string;
}

export interface Factor {
  readonly name: 'prompt length' | 'share computed' | 'time per computed token';
  readonly a: number;
  readonly b: number;
  /** Its share of Δprefill, ms, by the midpoint rule over all orders (Shapley). */
  readonly ms: Millis;
}

export interface TailAttribution {
  /** Share of requests: the slowest of each side. */
  readonly share: number;
  readonly n: readonly [number, number];
  readonly total: Millis;
  readonly parts: Readonly<Partial<Record<Part | 'residual', Millis>>>;
}

export interface Attribution {
  /** Δ mean TTFT; absent where no TTFT is known on both sides. */
  readonly total?: Amount;
  readonly parts: Readonly<Partial<Record<Part, Amount>>>;
  readonly residual?: Amount;
  readonly factors: readonly Factor[];
  readonly tail?: TailAttribution;
  readonly notes: readonly string[];
}

export function attribute(sideA: Side, sideB: Side, a: Measures, b: Measures): Attribution {
  const notes: string[] = [];
  const total = amount(a, b, 'ttft');
  const parts: Partial<Record<Part, Amount>> = {};
  for (const part of PARTS) {
    const one = amount(a, b, part);
    if (one) parts[part] = one;
  }
  // Without a client's records the server's TTFT is the whole: nothing before or after it is seen.
  if (total && total.source === 'server-metrics') delete parts.delivery;
  if (total) {
    if (!parts.queue || !parts.prefill)
      notes.push(
        `the residual holds ${['queue', 'prefill'].filter((p) => !parts[p as Part]).join(' and ')} too: not told on both sides`,
      );
    if (parts.queue && parts.prefill && !parts.frontend)
      notes.push(
        "frontend and delivery cannot be told apart: the server's own TTFT is missing, and the residual holds both",
      );
    else if (parts.frontend && !parts.delivery && total.source !== 'server-metrics')
      notes.push(
        "delivery is not known: the client's and the server's requests differ too much in number, or one end is missing",
      );
    mismatch(a, b, notes);
  }
  const residual = total && residualOf(total, Object.values(parts));
  blindness(sideA, sideB, notes);
  const tail = tailOf(sideA, sideB);
  if (!tail && total)
    notes.push('the tail is not attributed: that takes the parts of each request, which histograms do not hold');
  return {
    ...(total && { total }),
    parts,
    ...(residual && { residual }),
    factors: factorsOf(a, b, parts.prefill),
    ...(tail && { tail }),
    notes,
  };
}

function amount(a: Measures, b: Measures, id: QuantityId): Amount | undefined {
  const pair = both(a, b, id);
  if (!pair) return undefined;
  const se = Math.hypot(pair.a.se, pair.b.se);
  const value = pair.b.value - pair.a.value;
  return {
    value,
    se,
    low: value - 1.96 * se,
    high: value + 1.96 * se,
    source: pair.a.source,
    population: `${pair.a.population} against ${pair.b.population}`,
  };
}

/** Total less parts. The parts are of nearly the same requests as the total, so that much of their error is common. */
function residualOf(total: Amount, parts: readonly Amount[]): Amount {
  const value = total.value - parts.reduce((s, p) => s + p.value, 0);
  const largest = Math.max(total.se, ...parts.map((p) => p.se));
  const se = 0.3 * largest + 0.01 * Math.abs(total.value);
  return {
    value,
    se,
    low: value - 1.96 * se,
    high: value + 1.96 * se,
    source: total.source,
    population: total.population,
  };
}

/** Client and server, first tokens and finishes: populations that differ in number bound what a difference means. */
function mismatch(a: Measures, b: Measures, notes: string[]): void {
  for (const [name, table] of [
    ['before', a],
    ['after', b],
  ] as const) {
    const first = table.get('server_ttft')?.['server-metrics'];
    const finished = table.get('queue')?.['server-metrics'];
    const client = table.get('ttft')?.requests;
    if (first && finished && first.n !== finished.n)
      notes.push(
        `${name}: TTFT is of ${first.n} first tokens, queue and prefill of ${finished.n} requests that finished: up to ${share(1 - Math.min(first.n, finished.n) / Math.max(first.n, finished.n))} of them are not the same`,
      );
    if (client && finished && Math.abs(client.n - finished.n) > 0.02 * client.n)
      notes.push(
        `${name}: the client recorded ${client.n} requests, the server finished ${finished.n}: not the same population`,
      );
  }
}

/** Where the first bucket holds nearly all, an old level within it can only be told by its mean. */
function blindness(sideA: Side, sideB: Side, notes: string[]): void {
  const seen = new Set<string>();
  for (const side of [sideA, sideB]) {
    for (const replica of side.evidence?.replicas ?? []) {
      for (const concept of ['queue', 'prefill', 'ttft'] as const) {
        const h = replica.durations[concept]?.histogram;
        const n = h?.counts.at(-1) ?? 0;
        if (!h || n === 0 || h.counts[0]! < 0.9 * n || !(h.bounds[0]! >= 0.05)) continue;
        const key = `${concept} ${h.bounds[0]}`;
        if (seen.has(key)) continue;
        seen.add(key);
        notes.push(
          `${concept}: ${share(h.counts[0]! / n)} of the observations lie in the first bucket (≤ ${h.bounds[0]} s), so no quantile below that is known there; the mean (sum over count) is`,
        );
      }
    }
  }
}

/** Prefill = prompt × share computed × time per computed token, split by the mean over all orders of the three. */
function factorsOf(a: Measures, b: Measures, prefill: Amount | undefined): Factor[] {
  if (!prefill) return [];
  const read = (table: Measures): [number, number, number] | undefined => {
    const prompt = best(table, 'prompt')?.value;
    const perToken = best(table, 'prefill_per_token')?.value;
    const computed = best(table, 'computed')?.value;
    if (!prompt || perToken === undefined || computed === undefined) {
      const total = best(table, 'prefill')?.value;
      return prompt && total !== undefined && computed === undefined ? [prompt, 1, total / prompt] : undefined;
    }
    return [prompt, computed / prompt, perToken];
  };
  const [x, y] = [read(a), read(b)];
  if (!x || !y) return [];
  const shares = shapley(x, y);
  const sum = shares.reduce((s, v) => s + v, 0);
  // The product of means is not the mean of products: scaled to the Δprefill that was measured.
  const scale = Math.abs(sum) > 1e-9 && prefill.value / sum > 0.5 && prefill.value / sum < 2 ? prefill.value / sum : 1;
  const names = ['prompt length', 'share computed', 'time per computed token'] as const;
  return names.map((name, i) => ({ name, a: x[i]!, b: y[i]!, ms: shares[i]! * scale }));
}

/** Each factor's share of the change of a product of three: the mean of what it adds over all orders of changing them. */
export function shapley(x: readonly [number, number, number], y: readonly [number, number, number]): number[] {
  return [0, 1, 2].map((i) => {
    const [j, k] = [0, 1, 2].filter((m) => m !== i) as [number, number];
    const d = y[i]! - x[i]!;
    return d * ((x[j]! * x[k]!) / 3 + (y[j]! * y[k]!) / 3 + (x[j]! * y[k]!) / 6 + (y[j]! * x[k]!) / 6);
  });
}

const PART_OF: Readonly<Record<Part, (r: RequestRow) => number | undefined>> = {
  client: (r) => r.client,
  connect: (r) => r.connect,
  queue: (r) => r.queue,
  prefill: (r) => r.prefill,
  frontend: frontendOf,
  delivery: deliveryOf,
};

function tailOf(sideA: Side, sideB: Side): TailAttribution | undefined {
  const timed = (side: Side) =>
    side.requests?.rows.filter((r) => r.ttft !== undefined && r.queue !== undefined && r.prefill !== undefined);
  const [x, y] = [timed(sideA), timed(sideB)];
  const fewest = Math.min(x?.length ?? 0, y?.length ?? 0);
  if (!x || !y || fewest < 200) return undefined;
  const proportion = fewest >= 5000 ? 0.01 : fewest >= 1000 ? 0.02 : 0.05;
  const slowest = (rows: readonly RequestRow[]) =>
    [...rows].sort((p, q) => q.ttft! - p.ttft!).slice(0, Math.max(10, Math.round(proportion * rows.length)));
  const [tx, ty] = [slowest(x), slowest(y)];
  const mean = (rows: readonly RequestRow[], of: (r: RequestRow) => number | undefined): number | undefined => {
    const values = rows.map(of).filter((v) => v !== undefined);
    return values.length < rows.length ? undefined : meanEstimate(values, 'requests', '')?.value;
  };
  const total = mean(ty, (r) => r.ttft)! - mean(tx, (r) => r.ttft)!;
  const parts: Partial<Record<Part | 'residual', Millis>> = {};
  let sum = 0;
  for (const part of PARTS) {
    const [p, q] = [mean(tx, PART_OF[part]), mean(ty, PART_OF[part])];
    if (p === undefined || q === undefined) continue;
    parts[part] = q - p;
    sum += q - p;
  }
  parts.residual = total - sum;
  return { share: proportion, n: [tx.length, ty.length], total, parts };
}

export function sourceText(a: Estimate | Amount): string {
  return SOURCE_TEXT[a.source];
}

function share(x: number): string {
  return `${(100 * x).toFixed(1)} %`;
}
