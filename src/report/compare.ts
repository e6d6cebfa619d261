/**
 * Two sides, of one run each or of several: what differs, by how much, and whether that may be called better or worse.
 * `Comparison` is the JSON as printed; every field is of version `goodput.compare/1`. Differences are "B less A".
 */
import { type Contract, LIMIT_NAMES } from '../core/index.ts';
import { FEWEST_RUNS, quantile } from '../stats/index.ts';
import {
  COMPARED_METRICS,
  type ComparedMetric,
  type ComparedOperations,
  type ComparedRun,
  commonOperations,
} from './compare-run.ts';
import { type Effect, effectOf, type Grounds, noiseOf, weightedHolm } from './compare-stats.ts';

export type FigureVerdict =
  | 'better'
  | 'worse'
  /** Conclusive grounds, and no difference beyond chance. Never: "the same". */
  | 'not shown'
  /** One run a side without a stated spread: the runs differ; of the systems nothing is said. */
  | 'differs between these runs'
  /** A throughput gain while attainment got worse. */
  | 'costs attainment'
  | 'undefined';

export const STATISTICS = ['mean', 'p50', 'p90', 'p95', 'p99'] as const;
export type StatisticName = (typeof STATISTICS)[number];
const PROBABILITY: Readonly<Record<Exclude<StatisticName, 'mean'>, number>> = {
  p50: 0.5,
  p90: 0.9,
  p95: 0.95,
  p99: 0.99,
};

export interface Figure {
  /** `attainment`, `goodput`, `throughput`, or metric and statistic: `ttft.p99`. */
  readonly name: string;
  readonly unit: 'share' | 'requests/s' | 'tokens/s' | 'ms';
  readonly better: 'high' | 'low';
  /** Mean over the runs of each side; null where undefined, or infinite (see `why`). */
  readonly a: number | null;
  readonly b: number | null;
  /** B − A in the unit, and its interval; each figure's own, not corrected for their number. */
  readonly difference: number | null;
  readonly low: number | null;
  readonly high: number | null;
  /** B / A − 1 and its interval; null for attainment. */
  readonly relative: number | null;
  readonly relative_low: number | null;
  readonly relative_high: number | null;
  readonly p: number | null;
  /** After the correction for the number of figures: a claim is made at 1 − level. Null where it was not tested. */
  readonly p_adjusted: number | null;
  readonly verdict: FigureVerdict;
  readonly grounds: Grounds | null;
  readonly method: string | null;
  /** Which operations it is taken over: all offered (those that never had it rank as +∞), or those measured. */
  readonly population: 'offered' | 'measured' | 'window';
  /** Spread of one run about its side, as these runs show it: relative, of attainment absolute. */
  readonly observed_spread: number | null;
  /** Its name's numbers are those of this figure, so it was not tested again. */
  readonly same_as: string | null;
  readonly why: string | null;
}

export interface ComparedRunFacts {
  readonly name: string;
  /** Null: the requests were not drawn here. */
  readonly seed: number | null;
  readonly offered: number;
  readonly good: number;
  readonly attainment: number | null;
  readonly effective_n: number;
}

export interface Comparison {
  readonly schema: 'goodput.compare/1';
  readonly contract: Contract;
  readonly a: readonly ComparedRunFacts[];
  readonly b: readonly ComparedRunFacts[];
  /** How the sides were set against each other: same seeds operation by operation, or as independent runs. */
  readonly paired: boolean;
  /** Of paired runs, the operations both have, over all pairs. */
  readonly common_operations: number | null;
  readonly stated_spread: number | null;
  readonly level: number;
  /** Attainment, the primary figure, stands first. */
  readonly figures: readonly Figure[];
  /** In one word, what may be said. */
  readonly verdict: 'better' | 'worse' | 'mixed' | 'not shown' | 'differs between these runs' | 'void';
  readonly summary: string;
  readonly notes: readonly string[];
}

export interface CompareOptions {
  /** Relative spread between runs of one system, as stated. */
  readonly spread?: number;
  readonly level?: number;
  /** Seed of the bootstrap, and its resamples (default 60 to 200, fewer of long runs). */
  readonly seed?: number;
  readonly resamples?: number;
  /** Only these figures are tested, named before the runs were looked at; all are shown. */
  readonly figures?: readonly string[];
  /** Why no verdict may be given whatever the numbers: a run was client-bound. */
  readonly void?: readonly string[];
  /** Things the reader must know: what was told to be overlooked. */
  readonly notes?: readonly string[];
}

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

interface Draft {
  readonly name: string;
  readonly unit: Figure['unit'];
  readonly better: Figure['better'];
  readonly population: Figure['population'];
  readonly weight: number;
  readonly a: readonly (number | undefined)[];
  readonly b: readonly (number | undefined)[];
  readonly noise: readonly number[];
  readonly scale: 'relative' | 'absolute';
  readonly spread: number | undefined;
  readonly why?: string;
  /** Shown, but never called better or worse. */
  readonly descriptive?: boolean;
  readonly same?: string;
}

export function compareRuns(
  contract: Contract,
  runsA: readonly ComparedRun[],
  runsB: readonly ComparedRun[],
  options: CompareOptions = {},
): Comparison {
  const { spread, level = 0.95 } = options;
  const pairs = pairBySeed(runsA, runsB);
  const closed = [...runsA, ...runsB].some((run) => run.closedLoop);
  const paired = pairs !== undefined && !closed;
  const a = pairs ? pairs.map((p) => p[0]) : runsA;
  const b = pairs ? pairs.map((p) => p[1]) : runsB;
  const common = paired ? pairs.map((p) => commonOperations(p[0].operations, p[1].operations)) : undefined;
  const sides: Sides = {
    a,
    b,
    opsA: common ? common.map((c) => c[0]) : a.map((run) => run.operations),
    opsB: common ? common.map((c) => c[1]) : b.map((run) => run.operations),
    paired,
    seed: options.seed ?? 1,
    resamples: options.resamples,
    spread,
  };
  const drafts = [...rates(sides), ...COMPARED_METRICS.flatMap((metric) => latencies(sides, metric, contract))];
  const effects = drafts.map((draft) => effectOfDraft(draft, paired, level));
  const isTested = drafts.map(
    (draft, i) =>
      effects[i] !== undefined &&
      !draft.descriptive &&
      draft.same === undefined &&
      (options.figures === undefined || options.figures.includes(draft.name)),
  );
  const tested = drafts.map((_, i) => i).filter((i) => isTested[i]);
  const weight = (i: number): number => (options.figures ? 1 : drafts[i]!.weight);
  const others = tested.reduce((sum, i) => sum + (drafts[i]!.name === 'attainment' ? 0 : weight(i)), 0);
  const adjusted = weightedHolm(
    tested.map((i) => ({
      p: effects[i]!.p,
      weight: drafts[i]!.name === 'attainment' && !options.figures ? Math.max(1, others) : weight(i),
    })),
  );
  const adjustedOf = new Map(tested.map((i, k) => [i, adjusted[k]!]));
  const barred = (options.void?.length ?? 0) > 0;
  let figures = drafts.map((draft, i) => {
    return figureOf(draft, effects[i], adjustedOf.get(i), { alpha: 1 - level, barred });
  });
  const attainment = figures[0]!;
  if (attainment.verdict === 'worse') {
    figures = figures.map((f) =>
      f.name === 'throughput' && f.verdict === 'better'
        ? { ...f, verdict: 'costs attainment', why: 'more tokens, but fewer requests kept the contract: no win' }
        : f,
    );
  }
  const verdict = barred ? 'void' : overall(figures);
  return {
    schema: 'goodput.compare/1',
    contract,
    a: a.map(factsOf),
    b: b.map(factsOf),
    paired,
    common_operations: common ? common.reduce((sum, c) => sum + c[0].length, 0) : null,
    stated_spread: spread ?? null,
    level,
    figures,
    verdict,
    summary: summaryOf(verdict, figures, options.void ?? []),
    notes: [...(options.notes ?? []), ...notesOf(sides, pairs !== undefined, closed, figures, contract)],
  };
}

interface Sides {
  readonly a: readonly ComparedRun[];
  readonly b: readonly ComparedRun[];
  readonly opsA: readonly ComparedOperations[];
  readonly opsB: readonly ComparedOperations[];
  readonly paired: boolean;
  readonly seed: number;
  readonly resamples: number | undefined;
  readonly spread: number | undefined;
}

/** Runs of one seed beside each other; undefined when the sides' seeds are not the same ones. */
function pairBySeed(a: readonly ComparedRun[], b: readonly ComparedRun[]): [ComparedRun, ComparedRun][] | undefined {
  if (a.length !== b.length) return undefined;
  const left = [...b];
  const pairs: [ComparedRun, ComparedRun][] = [];
  for (const run of a) {
    const at = left.findIndex((other) => other.seed === run.seed);
    if (at < 0) return undefined;
    pairs.push([run, left.splice(at, 1)[0]!]);
  }
  return pairs;
}

/** Within-run noise of several statistics: a row a pair when paired, else a row a run, A's then B's. */
function noiseRows(
  sides: Sides,
  columns: readonly [readonly Float64Array[], readonly Float64Array[]],
  statistics: (values: Float64Array) => readonly number[],
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
  const keep = Uint32Array.from(a.keys()).filter((i) => !Number.isNaN(a[i]) && !Number.isNaN(b[i]));
  return [Float64Array.from(keep, (i) => a[i]!), Float64Array.from(keep, (i) => b[i]!)];
}

const shareGood: (values: Float64Array) => readonly number[] = (values) => {
  let sum = 0;
  for (const v of values) sum += v;
  return [sum / values.length];
};

/** The good flags of what counts, undecided as not good: the lower of the pair. */
function flags(ops: ComparedOperations, good: Uint8Array = ops.good): Float64Array {
  return Float64Array.from(good, (g, i) => (ops.good[i] === 3 ? Number.NaN : g === 1 ? 1 : 0));
}

function share(values: Float64Array): number | undefined {
  const counted = values.filter((v) => !Number.isNaN(v));
  return counted.length === 0 ? undefined : shareGood(counted)[0];
}

function rates(sides: Sides): Draft[] {
  const { a, b, opsA, opsB, paired, spread } = sides;
  const columns = [opsA.map((o) => flags(o)), opsB.map((o) => flags(o))] as const;
  const sharesA = columns[0].map(share);
  const sharesB = columns[1].map(share);
  const noise = noiseRows(sides, columns, shareGood, 'absolute').map((row) => row[0]!);
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

function latencies(sides: Sides, metric: ComparedMetric, contract: Contract): Draft[] {
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
  const statistics = (values: Float64Array): number[] => {
    const sorted = values.sort();
    let sum = 0;
    let n = 0;
    for (const v of sorted) {
      if (v === Number.POSITIVE_INFINITY) break;
      sum += v;
      n++;
    }
    return [sum / n, ...STATISTICS.slice(1).map((s) => quantile(sorted, PROBABILITY[s as keyof typeof PROBABILITY])!)];
  };
  const rows = noiseRows(sides, columns, statistics, scale);
  const [A, B] = [columns[0].map((x) => statistics(x.slice())), columns[1].map((x) => statistics(x.slice()))];
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

function effectOfDraft(draft: Draft, paired: boolean, level: number): Effect | undefined {
  const { a, b, scale, noise, spread } = draft;
  if (a.length === 0 || b.length === 0) return undefined;
  const all = [...a, ...b];
  if (!all.every((x) => x !== undefined && Number.isFinite(x) && (scale === 'absolute' || x > 0))) return undefined;
  return effectOf(
    { a: a as number[], b: b as number[], paired, scale, noise, ...(spread !== undefined && { spread }) },
    level,
  );
}

function figureOf(
  draft: Draft,
  effect: Effect | undefined,
  p: number | undefined,
  rule: { alpha: number; barred: boolean },
): Figure {
  const { name, unit, better, population } = draft;
  const [a, b] = [sideMean(draft.a), sideMean(draft.b)];
  const base = { name, unit, better, a, b, population, same_as: draft.same ?? null };
  if (!effect || a === null || b === null) {
    const infinite = [...draft.a, ...draft.b].some((x) => x === Number.POSITIVE_INFINITY);
    return {
      ...base,
      ...NOTHING,
      verdict: draft.same === undefined ? 'undefined' : 'not shown',
      why:
        draft.same !== undefined
          ? 'equal on every operation'
          : infinite
            ? 'so many operations ended without it that this quantile is infinite; see attainment'
            : (draft.why ?? 'not known in every run'),
    };
  }
  const isRelative = draft.scale === 'relative';
  const difference = b - a;
  // The interval's ends as distances from its middle, laid about the difference of the means shown.
  const at = (x: number): number =>
    isRelative ? difference + a * (Math.expm1(x) - Math.expm1(effect.value)) : difference + (x - effect.value);
  const asShare = (x: number): number | null =>
    isRelative ? Math.expm1(x) : name === 'attainment' || a === 0 ? null : x / a;
  const isApart = effect.low > 0 || effect.high < 0;
  const conclusive = effect.grounds !== 'single' && !draft.descriptive && !rule.barred;
  const improved = better === 'high' ? effect.value > 0 : effect.value < 0;
  const verdict: FigureVerdict =
    conclusive && p !== undefined
      ? p <= rule.alpha
        ? improved
          ? 'better'
          : 'worse'
        : 'not shown'
      : effect.grounds === 'single' && isApart
        ? 'differs between these runs'
        : 'not shown';
  return {
    ...base,
    difference,
    low: at(effect.low),
    high: at(effect.high),
    relative: asShare(effect.value),
    relative_low: asShare(effect.low),
    relative_high: asShare(effect.high),
    p: effect.p,
    p_adjusted: p ?? null,
    verdict,
    grounds: effect.grounds,
    method: effect.method,
    observed_spread: effect.observedSpread ?? null,
    why:
      draft.why ??
      (effect.spreadExceeded ? 'the runs differ more than the spread stated, so what they show was taken' : null),
  };
}

const NOTHING = {
  difference: null,
  low: null,
  high: null,
  relative: null,
  relative_low: null,
  relative_high: null,
  p: null,
  p_adjusted: null,
  grounds: null,
  method: null,
  observed_spread: null,
} as const;

function sideMean(values: readonly (number | undefined)[]): number | null {
  if (values.length === 0 || values.some((x) => x === undefined || !Number.isFinite(x))) return null;
  return mean(values as number[]);
}

function factsOf(run: ComparedRun): ComparedRunFacts {
  return {
    name: run.name,
    seed: Number.isNaN(run.seed) ? null : run.seed,
    offered: run.offered,
    good: run.goodCount,
    attainment: run.denominator > 0 ? run.goodCount / run.denominator : null,
    effective_n: run.effectiveN,
  };
}

/** Attainment decides; only where it says nothing do the others. */
function overall(figures: readonly Figure[]): Comparison['verdict'] {
  const [attainment, ...others] = figures;
  const has = (verdict: FigureVerdict): boolean => others.some((f) => f.verdict === verdict);
  if (attainment!.verdict === 'worse') return 'worse';
  const better = attainment!.verdict === 'better' || has('better');
  if (better && has('worse')) return 'mixed';
  if (better) return 'better';
  if (has('worse')) return 'worse';
  return figures.some((f) => f.verdict === 'differs between these runs') ? 'differs between these runs' : 'not shown';
}

function summaryOf(verdict: Comparison['verdict'], figures: readonly Figure[], why: readonly string[]): string {
  const names = (v: FigureVerdict): string =>
    figures
      .filter((f) => f.verdict === v)
      .map((f) => f.name)
      .join(', ');
  switch (verdict) {
    case 'void':
      return `void: ${why.join('; ')}`;
    case 'better':
      return `B is better: ${names('better')}`;
    case 'worse': {
      const cost = figures.some((f) => f.verdict === 'costs attainment')
        ? '; it yields more tokens, but that gain costs attainment and is no win'
        : '';
      const gained = names('better');
      return `B is worse: ${names('worse')}${gained === '' ? '' : ` (better: ${gained})`}${cost}`;
    }
    case 'mixed':
      return `B is better in ${names('better')} and worse in ${names('worse')}`;
    case 'differs between these runs':
      return `these runs differ (${names('differs between these runs')}); whether the systems do is not shown`;
    default:
      return 'no difference is shown; that is not a proof that there is none';
  }
}

function notesOf(
  { a, b, opsA, opsB, paired, spread }: Sides,
  sameSeeds: boolean,
  closed: boolean,
  figures: readonly Figure[],
  contract: Contract,
): string[] {
  const notes: string[] = [];
  const fewest = Math.min(a.length, b.length);
  if (spread === undefined && fewest < FEWEST_RUNS) {
    notes.push(
      `${fewest === 1 ? 'one run' : `${fewest} runs`} a side cannot tell how much runs of one system differ: for better or worse repeat both (goodput bench --repeat 3 --against URL), or state the spread (--spread 3%)`,
    );
  }
  if (closed) notes.push('a closed loop offers what the server lets it, so its operations were not paired');
  else if (!sameSeeds)
    notes.push('the sides have not the same seeds, so their operations were not paired: small differences stay hidden');
  if (paired) {
    const shared = opsA.reduce((sum, o) => sum + o.length, 0);
    const all = Math.max(...[a, b].map((side) => side.reduce((sum, run) => sum + run.offered, 0)));
    if (shared < 0.9 * all)
      notes.push(`only ${shared} of ${all} operations are in both cohorts; fix --warmup so that the windows agree`);
  }
  if (fewest > 1 && new Set([...a, ...b].map((run) => run.seed)).size === 1) {
    notes.push('all runs have one seed: what is found holds for that one draw of requests');
  }
  const attainment = figures[0]!;
  const throughput = figures.find((f) => f.name === 'throughput');
  if (throughput?.verdict === 'better' && attainment.difference !== null && attainment.difference < 0) {
    notes.push('throughput rose and attainment fell in these runs, the latter not shown: do not count it as a win yet');
  }
  const undecided = [...opsA, ...opsB].some((o) => o.good.includes(2));
  if (undecided) notes.push('undecided operations count as not good here');
  if (figures.some((f) => f.why?.startsWith('the runs differ more'))) {
    notes.push('the runs differ among themselves by more than the spread stated');
  }
  if (contract.attainment < 1 && attainment.a !== null && attainment.b !== null) {
    const side = (x: number): string => (x >= contract.attainment ? 'meets' : 'misses');
    if (side(attainment.a) !== side(attainment.b)) {
      notes.push(
        `A ${side(attainment.a)} the attainment target and B ${side(attainment.b)} it, by the shares observed`,
      );
    }
  }
  return notes;
}

function mean(x: readonly number[]): number {
  return x.reduce((sum, v) => sum + v, 0) / x.length;
}
