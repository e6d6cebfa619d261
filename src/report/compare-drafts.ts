/** What two sides are compared by: shares and rates first, then each metric's mean and quantiles, with their noise inside runs. */
import { type Contract, LIMIT_NAMES } from '../core/index.ts';
import type { Draft } from './compare-figure.ts';
import { COMPARED_METRICS, type ComparedMetric, type ComparedOperations, type ComparedRun } from './compare-run.ts';
import { counted, meanAndQuantiles, noiseOf, type Statistics } from './compare-stats.ts';

export const STATISTICS = ['mean', 'p50', 'p90', 'p95', 'p99'] as const;
export type StatisticName = (typeof STATISTICS)[number];
const PROBABILITY: Readonly<Record<Exclude<StatisticName, 'mean'>, number>> = {
  p50: 0.5,
  p90: 0.9,
  p95: 0.95,
  p99: 0.99,
};

/**
 * Shares of the error. Attainment, the primary figure, has half of it to begin with; of the rest what the contract limits
 * counts most, and each quantile little, for there are many. What a claim has used goes on to the others (Holm).
 */
const WEIGHT = { limited: 20, plain: 1, quantile: 1 / 20 } as const;

/** Every name a comparison knows, for `--figures` and thresholds. */
export const FIGURE_NAMES: readonly string[] = [
  'attainment',
  'goodput',
  'throughput',
  ...COMPARED_METRICS.flatMap((metric) => STATISTICS.map((statistic) => `${metric}.${statistic}`)),
];

/** Noise inside runs: rows of `noiseRows` by the figure they are of. */
export type NoiseMemory = Map<string, number[][]>;

export interface Sides {
  readonly a: readonly ComparedRun[];
  readonly b: readonly ComparedRun[];
  readonly opsA: readonly ComparedOperations[];
  readonly opsB: readonly ComparedOperations[];
  readonly paired: boolean;
  readonly seed: number;
  readonly resamples: number | undefined;
  /** As stated, or assumed. */
  readonly spread: number | undefined;
  readonly assumed: boolean;
  readonly noise: NoiseMemory;
}

/** Within-run noise of several statistics: a row a pair when paired, else a row a run, A's then B's. */
function noiseRows(
  name: string,
  sides: Sides,
  columns: readonly [readonly Float64Array[], readonly Float64Array[]],
  statistics: Statistics,
  scale: 'relative' | 'absolute',
): number[][] {
  const known = sides.noise.get(name);
  if (known) return known;
  const rows = newNoiseRows(sides, columns, statistics, scale);
  sides.noise.set(name, rows);
  return rows;
}

function newNoiseRows(
  sides: Sides,
  columns: readonly [readonly Float64Array[], readonly Float64Array[]],
  statistics: Statistics,
  scale: 'relative' | 'absolute',
): number[][] {
  const { paired, seed } = sides;
  const [A, B] = columns;
  const longest = Math.max(1, ...A.map((x) => x.length), ...B.map((x) => x.length));
  const resamples = sides.resamples ?? Math.max(60, Math.min(200, Math.round(1e6 / longest)));
  if (paired) {
    return A.map((x, i) => {
      const [both, other] = measuredInBoth(x, B[i]!);
      return noiseOf([both, other], statistics, { seed: seed + i, scale, resamples });
    });
  }
  return [...A, ...B].map((x, i) =>
    noiseOf([x.filter((v) => !Number.isNaN(v))], statistics, { seed: seed + i, scale, resamples }),
  );
}

function measuredInBoth(a: Float64Array, b: Float64Array): [Float64Array, Float64Array] {
  let known = true;
  for (let i = 0; known && i < a.length; i++) known = !Number.isNaN(a[i]) && !Number.isNaN(b[i]);
  if (known) return [a, b];
  const keep = Uint32Array.from(a.keys()).filter((i) => !Number.isNaN(a[i]) && !Number.isNaN(b[i]));
  return [Float64Array.from(keep, (i) => a[i]!), Float64Array.from(keep, (i) => b[i]!)];
}

const shareGood = meanAndQuantiles([]);
const meanAndTail = meanAndQuantiles(STATISTICS.slice(1).map((s) => PROBABILITY[s as Exclude<StatisticName, 'mean'>]));

/** The good flags of what counts, undecided as not good: the lower of the pair. */
function flags(ops: ComparedOperations, good: Uint8Array = ops.good): Float64Array {
  return Float64Array.from(good, (g, i) => (ops.good[i] === 3 ? Number.NaN : g === 1 ? 1 : 0));
}

function share(values: Float64Array): number | undefined {
  const known = values.filter((v) => !Number.isNaN(v));
  return known.length === 0 ? undefined : shareGood(counted(known))[0];
}

export function rates(sides: Sides): Draft[] {
  const { a, b, opsA, opsB, paired, spread } = sides;
  const columns = [opsA.map((o) => flags(o)), opsB.map((o) => flags(o))] as const;
  const sharesA = columns[0].map(share);
  const sharesB = columns[1].map(share);
  const noise = noiseRows('attainment', sides, columns, shareGood, 'absolute').map((row) => row[0]!);
  // A run of another speed would be judged as this one under limits moved by that much.
  const moved = [...opsA, ...opsB].map(
    (o) => Math.abs((share(flags(o, o.goodLooser)) ?? 0) - (share(flags(o, o.goodTighter)) ?? 0)) / 2,
  );
  const attainmentSpread = spread === undefined ? undefined : moved.reduce((x, y) => x + y, 0) / moved.length;
  const attainment: Draft = {
    name: 'attainment',
    unit: 'share',
    better: 'high',
    population: 'offered',
    weight: 1,
    a: sharesA,
    b: sharesB,
    noise,
    scale: 'absolute',
    spread: attainmentSpread,
  };
  // Over common operations the sides share one offered rate: differing windows would add their own counts.
  const offered = (run: ComparedRun): number | undefined =>
    run.seconds === undefined ? undefined : run.offered / run.seconds;
  const rate = (i: number): number | undefined => {
    const [x, y] = [offered(a[i]!), offered(b[i]!)];
    return x === undefined || y === undefined ? undefined : (x + y) / 2;
  };
  const times = (x: number | undefined, r: number | undefined): number | undefined =>
    x === undefined || r === undefined ? undefined : x * r;
  const own = (run: ComparedRun): number | undefined =>
    run.seconds === undefined ? undefined : run.goodCount / run.seconds;
  const goodputA = paired ? sharesA.map((s, i) => times(s, rate(i))) : a.map(own);
  const goodputB = paired ? sharesB.map((s, i) => times(s, rate(i))) : b.map(own);
  const level = mean([...a, ...b].map((run) => offered(run) ?? 0));
  const goodput: Draft = {
    ...attainment,
    name: 'goodput',
    unit: 'requests/s',
    population: 'window',
    weight: WEIGHT.plain,
    a: goodputA,
    b: goodputB,
    noise: noise.map((x) => x * level),
    spread: attainmentSpread === undefined ? undefined : attainmentSpread * level,
  };
  const throughput: Draft = {
    ...attainment,
    name: 'throughput',
    unit: 'tokens/s',
    population: 'window',
    weight: WEIGHT.plain,
    a: a.map((run) => run.throughput),
    b: b.map((run) => run.throughput),
    // Tokens of requests cut by the window's edges and, unpaired, the count of arrivals.
    noise: paired
      ? a.map((run) => 1 / Math.max(1, run.offered))
      : [...a, ...b].map((run) => 1 / Math.sqrt(Math.max(1, run.offered))),
    scale: 'relative',
    spread,
  };
  return [attainment, goodput, throughput];
}

export function latencies(sides: Sides, metric: ComparedMetric, contract: Contract): Draft[] {
  const { opsA, opsB, spread, paired } = sides;
  const of = (ops: readonly ComparedOperations[]): Float64Array[] => ops.map((o) => o.values[metric]);
  let columns: readonly [readonly Float64Array[], readonly Float64Array[]] = [of(opsA), of(opsB)];
  if (metric === 'ttfa' && sameColumns(columns, [opsA, opsB])) {
    return STATISTICS.map((statistic) => ({
      ...blank(metric, statistic),
      same: `ttft.${statistic}`,
      a: [],
      b: [],
      noise: [],
    }));
  }
  if (paired) {
    const both = columns[0].map((x, i) => measuredInBoth(x, columns[1][i]!));
    columns = [both.map((x) => x[0]), both.map((x) => x[1])];
  } else columns = [columns[0].map(defined), columns[1].map(defined)];
  if ([...columns[0], ...columns[1]].some((x) => x.length === 0)) return [];
  const censored = [...columns[0], ...columns[1]].reduce(
    (sum, x) => sum + x.filter((v) => v === Number.POSITIVE_INFINITY).length,
    0,
  );
  const zeros = [...columns[0], ...columns[1]].some((x) => x.some((v) => v <= 0));
  const scale = zeros ? 'absolute' : 'relative';
  // The mean of measured values, then the quantiles over offered.
  const rows = noiseRows(metric, sides, columns, meanAndTail, scale);
  const [A, B] = columns.map((side) => side.map((x) => meanAndTail(counted(x)))) as [number[][], number[][]];
  const isLimited = LIMIT_NAMES.includes(metric) && contract.limits[metric] !== undefined;
  return STATISTICS.map((statistic, k) => ({
    ...blank(metric, statistic),
    population: statistic === 'mean' && censored > 0 ? 'measured' : 'offered',
    weight: statistic !== 'mean' ? WEIGHT.quantile : isLimited ? WEIGHT.limited : WEIGHT.plain,
    a: A.map((row) => row[k]!),
    b: B.map((row) => row[k]!),
    noise: rows.map((row) => row[k]!),
    scale,
    // A spread is relative; on the absolute scale it is of the level it stands at.
    spread: spread === undefined || scale === 'relative' ? spread : spread * mean([...A, ...B].map((row) => row[k]!)),
    ...(statistic === 'mean' &&
      censored > 0 && {
        descriptive: true,
        why: `${censored} operations ended without it; a mean leaves them out, so it decides nothing`,
      }),
  }));
}

function blank(metric: ComparedMetric, statistic: StatisticName): Draft {
  return {
    name: `${metric}.${statistic}`,
    unit: 'ms',
    better: 'low',
    population: 'offered',
    weight: WEIGHT.plain,
    a: [],
    b: [],
    noise: [],
    scale: 'relative',
    spread: undefined,
  };
}

const defined = (x: Float64Array): Float64Array => x.filter((v) => !Number.isNaN(v));

function sameColumns(
  columns: readonly [readonly Float64Array[], readonly Float64Array[]],
  ops: readonly [readonly ComparedOperations[], readonly ComparedOperations[]],
): boolean {
  return columns.every((side, s) =>
    side.every((x, i) => {
      const ttft = ops[s]![i]!.values.ttft;
      return x.every((v, k) => v === ttft[k] || (Number.isNaN(v) && Number.isNaN(ttft[k])));
    }),
  );
}

function mean(x: readonly number[]): number {
  return x.reduce((sum, v) => sum + v, 0) / x.length;
}
