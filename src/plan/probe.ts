/** One probe of a capacity search on a simulated cluster: no clock, no tokens unless a limit looks at them. */
import type { Contract } from '../core/contract.ts';
import { judge, measureOptions } from '../core/judge.ts';
import type { Metrics } from '../core/measure.ts';
import type { Workload } from '../core/request.ts';
import { ProbeFold } from '../drive/capacity/fold.ts';
import type { ProbeMeasure, ProbeRequest } from '../drive/capacity/types.ts';
import { type Cluster, metricsOf, type SimDone, type SimOutcome, simulate, summaryOf } from '../sim/index.ts';

export interface ProbeTarget {
  /** A fresh, idle system. */
  readonly cluster: () => Cluster;
  readonly workload: (rate: number, seed: number) => Workload;
  readonly contract: Contract;
}

const OUTCOME = {
  completed: 'completed',
  'timed-out': 'timed-out',
  'queue-full': 'rejected',
  'too-long': 'failed',
} as const satisfies Record<SimOutcome, string>;

/** The load goes on at the same rate until the whole cohort is final. */
export function probeOf(target: ProbeTarget, request: ProbeRequest): ProbeMeasure {
  const { contract } = target;
  const { rate, requests, warmup, seed } = request;
  const tokens = contract.limits.gap !== undefined || contract.limits.smoothness !== undefined;
  const options = measureOptions(contract);
  const fold = new ProbeFold();
  const start = (1000 * warmup) / rate;
  const end = start + (1000 * requests) / rate;
  let received = 0;
  const summary = simulate(
    target.workload(rate, seed),
    target.cluster(),
    (done) => {
      const { operation } = done.spec;
      if (operation < warmup || operation >= warmup + requests) return false;
      const metrics = tokens ? metricsOf(done, options) : plain(done);
      received += done.finished?.generated ?? 0;
      const facts = { outcome: OUTCOME[done.outcome], streamed: true, asked: { output: done.spec.outputTokens } };
      fold.add({ operation, class: done.spec.class, verdict: judge(metrics, facts, contract), metrics });
      return fold.offered === requests;
    },
    { deadline: contract.deadline },
  );
  const seconds = (end - start) / 1000;
  return fold.finish({ seconds, throughput: received / seconds, clientBound: [], elapsed: summary.now });
}

/** `measure` of a simulated stream, but for what looks at single tokens. */
function plain(done: SimDone): Metrics {
  const { ttft, tpot, latency, e2e, n } = summaryOf(done);
  const absent = ttft === undefined ? NO_OUTPUT : tpot === undefined ? ONE_TOKEN : {};
  return {
    e2e,
    chunks: n,
    tokenSource: n > 0 ? 'per-chunk' : 'unknown',
    exactness: n > 0 ? 'exact' : 'no',
    absent,
    ...(ttft !== undefined && { ttft, ttfa: ttft, n, fewest: n }),
    ...(latency !== undefined && { latency }),
    ...(tpot !== undefined && { tpot }),
  };
}

const NO_OUTPUT: Metrics['absent'] = {
  ttft: 'no-output',
  ttfa: 'no-output',
  tpot: 'no-output',
  gap: 'no-output',
  latency: 'no-output',
};
const ONE_TOKEN: Metrics['absent'] = { tpot: 'one-token', gap: 'one-token' };
