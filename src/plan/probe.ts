/** One probe of a capacity search on a simulated cluster: no clock, no tokens unless a limit looks at them. */
import type { Share } from '../base/units.ts';
import type { Contract } from '../core/contract.ts';
import { judge, measureOptions } from '../core/judge.ts';
import type { Metrics } from '../core/measure.ts';
import type { Offer, RequestSpec, Workload } from '../core/request.ts';
import { type Judged, ProbeFold } from '../drive/capacity/fold.ts';
import type { ProbeMeasure, ProbeRequest } from '../drive/capacity/types.ts';
import { type Cluster, metricsOf, type SimDone, type SimOutcome, simulate, summaryOf } from '../sim/index.ts';

export interface ProbeTarget {
  /** A fresh, idle system. */
  readonly cluster: () => Cluster;
  readonly workload: (rate: number, seed: number) => Workload;
  readonly contract: Contract;
  /** Contracts of classes that have their own. */
  readonly contracts?: Readonly<Record<string, Contract>>;
  /**
   * Mean operations an arrival brings: the turns of a session. Given, a probe's `requests` and `warmup` count operations; else
   * they count arrivals, and the cohort of a load of sessions is that many sessions with all their turns.
   */
  readonly perArrival?: number;
  /**
   * Shares of single classes that must be good, beside the contract's share of all. The measure's attainment is then that of
   * the class (or of all) furthest below its own target, moved by the difference of the targets, so that one line decides.
   */
  readonly classTargets?: Readonly<Record<string, Share>>;
}

const OUTCOME = {
  completed: 'completed',
  'timed-out': 'timed-out',
  'queue-full': 'rejected',
  'too-long': 'failed',
} as const satisfies Record<SimOutcome, string>;

const NO_ABSENCE = {};

/** The load goes on at the same rate until the whole cohort is final. */
export function probeOf(target: ProbeTarget, request: ProbeRequest): ProbeMeasure {
  const { contract, contracts = {}, perArrival = 1 } = target;
  const cohort = new SimulatedCohort(request, target.perArrival === undefined);
  const { rate, requests, warmup, seed } = request;
  const tokens = [contract, ...Object.values(contracts)].some(
    ({ limits }) => limits.gap !== undefined || limits.smoothness !== undefined,
  );
  const fold = new ProbeFold();
  const folds = new Map(Object.keys(target.classTargets ?? {}).map((name) => [name, new ProbeFold()]));
  const add = (judged: Judged): void => {
    fold.add(judged);
    folds.get(judged.class)?.add(judged);
  };
  const start = (1000 * warmup) / (rate * perArrival);
  const end = start + (1000 * requests) / (rate * perArrival);
  let received = 0;
  const consume = (done: SimDone): boolean => {
    const f = done.finished;
    if (f && f.generated > 0) received += within(f.firstToken, f.lastToken, f.generated, start, end);
    const { operation } = done.spec;
    const where = cohort.side(done.spec);
    if (where !== 0) {
      if (where < 0) fold.warm(operation, summaryOf(done));
      return cohort.final;
    }
    const own = contracts[done.spec.class] ?? contract;
    const metrics = tokens ? metricsOf(done, measureOptions(own)) : withoutTokens(done);
    const facts = {
      outcome: OUTCOME[done.outcome],
      streamed: true,
      asked: { output: done.spec.outputTokens },
    };
    add({ operation, class: done.spec.class, verdict: judge(metrics, facts, own), metrics });
    return cohort.final;
  };
  // Turns after one that failed are never sent, and still were offered.
  const unsent = ({ spec }: Offer): void => {
    if (cohort.side(spec) !== 0) return;
    const metrics = { e2e: 0, chunks: 0, ...NO_TOKENS };
    const facts = { outcome: 'unsent', streamed: true, asked: { output: spec.outputTokens } } as const;
    const verdict = judge(metrics, facts, contracts[spec.class] ?? contract);
    add({ operation: spec.operation, class: spec.class, verdict, metrics });
  };
  const deadline = (spec: RequestSpec): number => (contracts[spec.class] ?? contract).deadline;
  const summary = simulate(cohort.watched(target.workload(rate, seed)), target.cluster(), consume, {
    deadline,
    unsent,
  });
  const totals = {
    seconds: (end - start) / 1000,
    throughput: (1000 * received) / (end - start),
    clientBound: [],
    elapsed: summary.now,
  };
  let measure = fold.finish(totals);
  for (const [name, of] of folds) {
    if (of.offered === 0) continue;
    const move = contract.attainment - (target.classTargets?.[name] as Share);
    const m = of.finish(totals);
    if (m.attainment + move >= measure.attainment) continue;
    const moved = (x: Share): Share => Math.min(1, Math.max(0, x + move));
    measure = {
      ...measure,
      attainment: moved(m.attainment),
      low: moved(m.low),
      high: moved(m.high),
      effectiveN: m.effectiveN,
    };
  }
  return measure;
}

/** Which operations are measured, and when all of them have ended. */
class SimulatedCohort {
  readonly #from: number;
  readonly #to: number;
  readonly #bySession: boolean;
  /** Operations of the cohort that were offered, or are due to be, and have not ended. */
  readonly #open = new Set<number>();
  #arrived = 0;

  constructor({ warmup, requests }: ProbeRequest, bySession: boolean) {
    this.#from = warmup;
    this.#to = warmup + requests;
    this.#bySession = bySession;
  }

  /** Before the cohort (< 0), of it (0) or after it (> 0). */
  side({ operation, session }: RequestSpec): number {
    const n = this.#bySession && session !== undefined ? session : operation;
    return n < this.#from ? -1 : n < this.#to ? 0 : 1;
  }

  get final(): boolean {
    return this.#open.size === 0 && this.#arrived > this.#to;
  }

  /** The load, its offers counted. One offer is drawn ahead of time, so the cohort is whole when one beyond it was drawn. */
  watched(load: Workload): Workload {
    const count = ({ spec }: Offer): void => {
      if (this.side(spec) === 0) this.#open.add(spec.operation);
    };
    return {
      next: () => {
        const offer = load.next();
        if (!offer) return undefined;
        const { operation, session } = offer.spec;
        this.#arrived = 1 + (this.#bySession && session !== undefined ? session : operation);
        count(offer);
        return offer;
      },
      ended: (operation, t, ok) => {
        const offers = load.ended(operation, t, ok);
        this.#open.delete(operation);
        for (const offer of offers) count(offer);
        return offers;
      },
    };
  }
}

/** Tokens of a stream from `first` to `last` that fall within a window, spread evenly. */
function within(first: number, last: number, tokens: number, start: number, end: number): number {
  if (last <= first) return first >= start && first < end ? tokens : 0;
  const overlap = Math.min(last, end) - Math.max(first, start);
  return overlap > 0 ? (tokens * overlap) / (last - first) : 0;
}

/** `measure` of a simulated stream, but for what looks at single tokens. Literals of one shape: spreads cost a third of a run. */
export function withoutTokens(done: SimDone): Metrics {
  const { ttft, tpot, latency, e2e, n } = summaryOf(done);
  if (ttft === undefined || latency === undefined) return { e2e, chunks: 0, ...NO_TOKENS };
  if (tpot === undefined) return { ttft, ttfa: ttft, latency, e2e, n, fewest: n, chunks: n, ...ONE_RECEIPT };
  return {
    ttft,
    ttfa: ttft,
    tpot,
    latency,
    e2e,
    n,
    fewest: n,
    chunks: n,
    tokenSource: 'per-chunk',
    exactness: 'exact',
    absent: NO_ABSENCE,
  };
}

const NO_TOKENS = {
  tokenSource: 'unknown',
  exactness: 'no',
  absent: { ttft: 'no-output', ttfa: 'no-output', tpot: 'no-output', gap: 'no-output', latency: 'no-output' },
} as const;
const ONE_RECEIPT = {
  tokenSource: 'per-chunk',
  exactness: 'exact',
  absent: { tpot: 'one-token', gap: 'one-token' },
} as const;
