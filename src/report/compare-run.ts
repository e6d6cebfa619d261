/**
 * What a comparison keeps of one run: each operation's figures in order of arrival, so that two runs of one seed can be
 * paired operation by operation.
 */
import {
  type Contract,
  type ContractFor,
  inCohort,
  judge,
  type LimitName,
  type Metrics,
  measure,
  measureOptions,
  type Reducer,
  type RequestRecord,
  ThroughputReducer,
  type Verdict,
  type Window,
  windowSeconds,
} from '../core/index.ts';
import { attainmentInterval } from '../stats/index.ts';

/** The metrics two runs are compared by, from the contract's boundary. */
export const COMPARED_METRICS = ['ttft', 'ttfa', 'tpot', 'gap', 'latency', 'e2e'] as const;
export type ComparedMetric = (typeof COMPARED_METRICS)[number];

/** Measured on completed operations alone, as in a report. */
const COMPLETED_ONLY: ReadonlySet<ComparedMetric> = new Set(['tpot', 'latency', 'e2e']);

/** Operations of one cohort, in order of arrival. */
export interface ComparedOperations {
  readonly length: number;
  readonly operation: Float64Array;
  /** 1 good, 0 not, 2 undecided, 3 excluded by the contract. */
  readonly good: Uint8Array;
  /** 1 where it would be good were every latency limit tighter, or looser, by the stated spread. */
  readonly goodTighter: Uint8Array;
  readonly goodLooser: Uint8Array;
  /** NaN: undefined or undecided. +∞: ended without it. */
  readonly values: Readonly<Record<ComparedMetric, Float64Array>>;
}

export interface ComparedRun {
  readonly name: string;
  /** NaN: the requests were not drawn here, so the run pairs with none. */
  readonly seed: number;
  /** A closed loop offers what the server lets it: its operations do not pair. */
  readonly closedLoop: boolean;
  readonly operations: ComparedOperations;
  readonly offered: number;
  readonly goodCount: number;
  /** Offered less what the contract excludes. */
  readonly denominator: number;
  /** Undefined without a window. */
  readonly seconds: number | undefined;
  /** Output tokens a second over the window; undefined where unknown. */
  readonly throughput: number | undefined;
  /** How many independent operations its attainment is worth. */
  readonly effectiveN: number;
}

const SCALED: readonly LimitName[] = ['ttft', 'ttfa', 'tpot', 'gap', 'latency', 'e2e'];

/** The contract with its latency limits multiplied: what a run of that much other speed would be judged by. */
function scaled(contract: Contract, factor: number): Contract {
  const limits = { ...contract.limits } as Record<LimitName, number>;
  for (const name of SCALED) if (limits[name] !== undefined) limits[name] *= factor;
  return { ...contract, limits };
}

export interface CompareReducerOptions {
  readonly name: string;
  readonly seed: number;
  readonly closedLoop?: boolean;
  /** Relative spread between runs, as stated. */
  readonly spread?: number;
  /** The contract of each traffic class, where they differ. */
  readonly contractFor?: ContractFor;
}

/** More turns than any session has. */
const TURNS = 65_536;

interface Row {
  readonly at: number;
  readonly operation: number;
  readonly good: number;
  readonly tighter: number;
  readonly looser: number;
  readonly values: readonly number[];
}

export class CompareReducer implements Reducer<RequestRecord, ComparedRun> {
  readonly #contractFor: ContractFor;
  readonly #scaled = new Map<Contract, readonly [tighter: Contract, looser: Contract]>();
  readonly #window: Window;
  readonly #options: CompareReducerOptions;
  readonly #throughput: ThroughputReducer;
  #rows: Row[] = [];

  constructor(contract: Contract, window: Window, options: CompareReducerOptions) {
    this.#contractFor = options.contractFor ?? (() => contract);
    this.#window = window;
    this.#options = options;
    this.#throughput = new ThroughputReducer(window);
  }

  /** One operation, its attempts folded. */
  add(record: RequestRecord): void {
    this.#throughput.add(record);
    const { operation, session, turn = 0, stamps } = record;
    if (!inCohort(this.#window, operation, stamps.scheduled, session)) return;
    const contract = this.#contractFor(record.class);
    const metrics = measure(record, measureOptions(contract));
    const verdict = judge(metrics, record, contract);
    const good = goodness(verdict);
    const moved = this.#movedBySpread(contract);
    const [tighter, looser] = moved ? moved.map((other) => goodness(judge(metrics, record, other))) : [good, good];
    this.#rows.push({
      at: stamps.scheduled,
      // Turns are numbered as they are released, which depends on the server: they pair by session and turn.
      operation: session === undefined ? operation : session * TURNS + turn,
      good,
      tighter: tighter as number,
      looser: looser as number,
      values: valuesOf(record, metrics, verdict),
    });
  }

  #movedBySpread(contract: Contract): readonly [Contract, Contract] | undefined {
    const { spread } = this.#options;
    if (spread === undefined) return undefined;
    let moved = this.#scaled.get(contract);
    if (!moved) {
      moved = [scaled(contract, 1 / (1 + spread)), scaled(contract, 1 + spread)];
      this.#scaled.set(contract, moved);
    }
    return moved;
  }

  merge(other: this): void {
    this.#throughput.merge(other.#throughput);
    for (const row of other.#rows) this.#rows.push(row);
  }

  finish(): ComparedRun {
    const rows = this.#rows.sort((a, b) => a.at - b.at || a.operation - b.operation);
    const counted = rows.filter((row) => row.good !== 3);
    const seconds = windowSeconds(this.#window);
    const bounded = Number.isFinite(seconds) && seconds > 0;
    const throughput = this.#throughput.finish();
    const interval = attainmentInterval(
      Uint8Array.from(counted, (row) => row.good),
      Float64Array.from(counted, (row) => (Number.isNaN(row.values[0]) ? Number.POSITIVE_INFINITY : row.values[0]!)),
    );
    return {
      name: this.#options.name,
      seed: this.#options.seed,
      closedLoop: this.#options.closedLoop ?? false,
      operations: {
        length: rows.length,
        operation: Float64Array.from(rows, (row) => row.operation),
        good: Uint8Array.from(rows, (row) => row.good),
        goodTighter: Uint8Array.from(rows, (row) => row.tighter),
        goodLooser: Uint8Array.from(rows, (row) => row.looser),
        values: Object.fromEntries(
          COMPARED_METRICS.map((name, i) => [name, Float64Array.from(rows, (row) => row.values[i]!)]),
        ) as Record<ComparedMetric, Float64Array>,
      },
      offered: rows.length,
      goodCount: rows.reduce((sum, row) => sum + (row.good === 1 ? 1 : 0), 0),
      denominator: counted.length,
      seconds: bounded ? seconds : undefined,
      throughput:
        bounded && (throughput.tokens > 0 || throughput.unknown === 0) ? throughput.tokensPerSecond : undefined,
      effectiveN: interval?.effectiveN ?? 0,
    };
  }
}

function goodness(verdict: Verdict): number {
  if (verdict.excluded) return 3;
  return verdict.class === 'good' ? 1 : verdict.class === 'undecided' ? 2 : 0;
}

/** As a cohort's columns: who ended unsuccessfully before the event ranks as +∞. */
function valuesOf(record: RequestRecord, metrics: Metrics, verdict: Verdict): number[] {
  const success = verdict.class === 'good' || verdict.class === 'late' || verdict.class === 'invalid';
  const never = (!success || metrics.chunks === 0) && verdict.class !== 'undecided' && !verdict.excluded;
  return COMPARED_METRICS.map((name) => {
    const value = metrics[name];
    if (value !== undefined && (record.outcome === 'completed' || !COMPLETED_ONLY.has(name))) return value;
    return never ? Number.POSITIVE_INFINITY : Number.NaN;
  });
}

/** The operations of both runs that have one number, each side in the order of A. */
export function commonOperations(
  a: ComparedOperations,
  b: ComparedOperations,
): [ComparedOperations, ComparedOperations] {
  const placeInB = new Map<number, number>();
  for (let i = 0; i < b.length; i++) placeInB.set(b.operation[i]!, i);
  const ia: number[] = [];
  const ib: number[] = [];
  for (let i = 0; i < a.length; i++) {
    const j = placeInB.get(a.operation[i]!);
    if (j === undefined) continue;
    ia.push(i);
    ib.push(j);
  }
  return [pick(a, ia), pick(b, ib)];
}

function pick(from: ComparedOperations, places: readonly number[]): ComparedOperations {
  return {
    length: places.length,
    operation: Float64Array.from(places, (i) => from.operation[i]!),
    good: Uint8Array.from(places, (i) => from.good[i]!),
    goodTighter: Uint8Array.from(places, (i) => from.goodTighter[i]!),
    goodLooser: Uint8Array.from(places, (i) => from.goodLooser[i]!),
    values: Object.fromEntries(
      COMPARED_METRICS.map((name) => [name, Float64Array.from(places, (i) => from.values[name][i]!)]),
    ) as Record<ComparedMetric, Float64Array>,
  };
}
