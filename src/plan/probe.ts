/** One probe of a capacity search on a simulated cluster: no clock, no tokens unless a limit looks at them. */
import type { Contract } from '../core/contract.ts';
import { judge, measureOptions } from '../core/judge.ts';
import type { Metrics } from '../core/measure.ts';
import type { Offer, RequestSpec, Workload } from '../core/request.ts';
import { ProbeFold } from '../drive/capacity/fold.ts';
import type { ProbeMeasure, ProbeRequest } from '../drive/capacity/types.ts';
import { type Cluster, metricsOf, type SimDone, type SimOutcome, simulate, summaryOf } from '../sim/index.ts';

export interface ProbeTarget {
  /** A fresh, idle system. */
  readonly cluster: () => Cluster;
  readonly workload: (rate: number, seed: number) => Workload;
  readonly contract: Contract;
  /** Contracts of classes that have their own. */
  readonly contracts?: Readonly<Record<string, Contract>>;
  /** Mean operations an arrival brings: the turns of a session. Default 1. */
  readonly perArrival?: number;
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
  const { rate, requests, warmup, seed } = request;
  const tokens = [contract, ...Object.values(contracts)].some(
    ({ limits }) => limits.gap !== undefined || limits.smoothness !== undefined,
  );
  const fold = new ProbeFold();
  const start = (1000 * warmup) / (rate * perArrival);
  const end = start + (1000 * requests) / (rate * perArrival);
  let received = 0;
  const consume = (done: SimDone): boolean => {
    const f = done.finished;
    if (f && f.generated > 0) received += within(f.firstToken, f.lastToken, f.generated, start, end);
    const { operation } = done.spec;
    if (operation < warmup || operation >= warmup + requests) return fold.offered >= requests;
    const own = contracts[done.spec.class] ?? contract;
    const metrics = tokens ? metricsOf(done, measureOptions(own)) : withoutTokens(done);
    const facts = {
      outcome: OUTCOME[done.outcome],
      streamed: true,
      asked: { output: done.spec.outputTokens },
    };
    fold.add({ operation, class: done.spec.class, verdict: judge(metrics, facts, own), metrics });
    return fold.offered >= requests;
  };
  // Turns after one that failed are never sent, and still were offered.
  const unsent = ({ spec }: Offer): void => {
    if (spec.operation < warmup || spec.operation >= warmup + requests) return;
    const metrics = { e2e: 0, chunks: 0, ...NO_TOKENS };
    const facts = { outcome: 'unsent', streamed: true, asked: { output: spec.outputTokens } } as const;
    const verdict = judge(metrics, facts, contracts[spec.class] ?? contract);
    fold.add({ operation: spec.operation, class: spec.class, verdict, metrics });
  };
  const deadline = (spec: RequestSpec): number => (contracts[spec.class] ?? contract).deadline;
  const summary = simulate(target.workload(rate, seed), target.cluster(), consume, { deadline, unsent });
  return fold.finish({
    seconds: (end - start) / 1000,
    throughput: (1000 * received) / (end - start),
    clientBound: [],
    elapsed: summary.now,
  });
}

/** Tokens of a stream from `first` to `last` that fall within a window, spread evenly. */
function within(first: number, last: number, tokens: number, start: number, end: number): number {
  if (last <= first) return first >= start && first < end ? tokens : 0;
  const overlap = Math.min(last, end) - Math.max(first, start);
  return overlap > 0 ? (tokens * overlap) / (last - first) : 0;
}

/** `measure` of a simulated stream, but for what looks at single tokens. Literals of one shape: spreads cost a third of a run. */
function withoutTokens(done: SimDone): Metrics {
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
