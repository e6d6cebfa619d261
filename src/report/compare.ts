/**
 * Two sides, of one run each or of several: what differs, by how much, and whether that may be called better or worse.
 * `Comparison` is the JSON as printed; every field is of version `goodput.compare/1`. Differences are "B less A".
 */
import type { Contract } from '../core/index.ts';
import { FEWEST_RUNS } from '../stats/index.ts';
import { latencies, type NoiseMemory, rates, type Sides } from './compare-drafts.ts';
import { effectOfDraft, type Figure, figureOf } from './compare-figure.ts';
import { COMPARED_METRICS, type ComparedRun, commonOperations } from './compare-run.ts';
import { ASSUMED_SPREAD, weightedHolm } from './compare-stats.ts';
import { notesOf, overall, summaryOf } from './compare-words.ts';

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
  /** Where none was stated: what the runs' own spread was moderated by. */
  readonly assumed_spread: number | null;
  readonly level: number;
  /** Attainment, the primary figure, stands first. */
  readonly figures: readonly Figure[];
  /** In one word, what may be said. */
  readonly verdict: 'better' | 'worse' | 'mixed' | 'not shown' | 'differs between these runs' | 'void';
  readonly summary: string;
  readonly notes: readonly string[];
}

export interface CompareOptions {
  /** Relative spread between runs of one system, as stated; `measured`: what these runs show, and nothing else. */
  readonly spread?: number | 'measured';
  readonly level?: number;
  /** Seed of the bootstrap, and its resamples (default 60 to 200, fewer of long runs). */
  readonly seed?: number;
  readonly resamples?: number;
  /** Noise inside these very runs by figure, where it is already known from another comparison of them; filled in here. */
  readonly noise?: NoiseMemory;
  /** Only these figures are tested, named before the runs were looked at; all are shown. */
  readonly figures?: readonly string[];
  /** Why no verdict may be given whatever the numbers: a run was client-bound. */
  readonly void?: readonly string[];
  /** Things the reader must know: what was told to be overlooked. */
  readonly notes?: readonly string[];
}

export function compareRuns(
  contract: Contract,
  runsA: readonly ComparedRun[],
  runsB: readonly ComparedRun[],
  options: CompareOptions = {},
): Comparison {
  const { level = 0.95 } = options;
  const few = Math.min(runsA.length, runsB.length);
  const stated = typeof options.spread === 'number' ? options.spread : undefined;
  const isAssumed = options.spread === undefined && few >= FEWEST_RUNS;
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
    spread: stated ?? (isAssumed ? ASSUMED_SPREAD.relative : undefined),
    assumed: isAssumed,
    noise: options.noise ?? new Map(),
  };
  const drafts = [...rates(sides), ...COMPARED_METRICS.flatMap((metric) => latencies(sides, metric, contract))];
  const effects = drafts.map((draft) => effectOfDraft(draft, sides, level));
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
    stated_spread: stated ?? null,
    assumed_spread: isAssumed ? ASSUMED_SPREAD.relative : null,
    level,
    figures,
    verdict,
    summary: summaryOf(verdict, figures, options.void ?? []),
    notes: [...(options.notes ?? []), ...notesOf(sides, pairs !== undefined, closed, figures, contract)],
  };
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
