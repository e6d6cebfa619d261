/** As GuideLLM defines it, in the shape of its JSON. */
import {
  type Definition,
  DISPATCHED,
  DURATION,
  durationOf,
  oursAt,
  type Seen,
  SURVIVORS,
  type Summary,
  summaryOf,
  type ToolInput,
} from './tool.ts';

export function toGuidellm({ report, seen, name }: ToolInput): object {
  const duration = durationOf(seen);
  const ok = seen.filter(({ record: r }) => r.outcome === 'completed' || r.outcome === 'truncated');
  const open = seen.filter(({ record: r }) => r.outcome === 'undecided' || r.outcome === 'cancelled');
  const errored = seen.filter((s) => !ok.includes(s) && !open.includes(s));
  const definitions: Definition[] = [];
  const metrics: Record<string, object> = {};
  const measured = (of: (s: Seen) => number | undefined): number[] => ok.map(of).filter((x) => x !== undefined);
  const add = (key: string, values: number[], ours: string | null, scale: number, differs: string): void => {
    const s = summaryOf(values);
    if (!s) return;
    const sorted = Float64Array.from(values).sort();
    const q = (p: number): number => uninterpolated(sorted, p);
    metrics[key] = { successful: distribution(s, q) };
    for (const [stat, theirs, ours_stat, how] of [
      ['mean', s.mean, 'mean', ''],
      ['median', q(0.5), 'p50', STEP],
      ['percentiles.p90', q(0.9), 'p90', STEP],
      ['percentiles.p95', q(0.95), 'p95', STEP],
      ['percentiles.p99', q(0.99), 'p99', STEP],
    ] as const) {
      const path = ours === null ? null : `metrics.${ours}.${ours_stat}`;
      const value = path === null ? null : oursAt(report, path);
      definitions.push({
        figure: `${key}.${stat}`,
        theirs,
        ours_key: path,
        ours: value === null ? null : value * scale,
        differs: `${differs}${how}`,
      });
    }
  };
  add(
    'request_latency',
    measured((s) => (s.end - s.start) / 1000),
    'e2e_ms',
    0.001,
    `in seconds; ${DISPATCHED}; ${SURVIVORS}`,
  );
  add(
    'time_to_first_token_ms',
    measured((s) => (s.first === undefined ? undefined : s.first - s.start)),
    'ttft_ms',
    1,
    `${DISPATCHED}; ${SURVIVORS}`,
  );
  add(
    'time_to_first_output_token_ms',
    measured((s) => (s.firstAnswer === undefined ? undefined : s.firstAnswer - s.start)),
    'ttfa_ms',
    1,
    `${DISPATCHED}; ${SURVIVORS}`,
  );
  add(
    'time_per_output_token_ms',
    measured((s) => (s.last === undefined || !(s.output! > 0) ? undefined : (s.last - s.start) / s.output!)),
    'tpot_ms',
    1,
    `(last − start) / n: TTFT is spread over the tokens; ours is the mean of the n − 1 later gaps`,
  );
  add(
    'inter_token_latency_ms',
    measured((s) => (s.last === undefined || !(s.output! > 1) ? undefined : (s.last - s.first!) / (s.output! - 1))),
    'tpot_ms',
    1,
    `a mean a request, which is our TPOT but for whose count n is; no gap is in it; ${SURVIVORS}`,
  );
  const rate = duration > 0 ? ok.length / duration : null;
  const tokens = ok.reduce((sum, s) => sum + (s.output ?? s.at.length), 0);
  definitions.push(
    {
      figure: 'requests_per_second',
      theirs: rate,
      ours_key: 'achieved_rps',
      ours: report.achieved_rps,
      differs: DURATION,
    },
    {
      figure: 'output_tokens_per_second',
      theirs: duration > 0 ? tokens / duration : null,
      ours_key: 'throughput_tps',
      ours: report.throughput_tps,
      differs: `${DURATION}; unknown counts are taken as chunks`,
    },
    {
      figure: 'request_totals.successful',
      theirs: ok.length,
      ours_key: 'cohort.good',
      ours: report.cohort.good,
      differs: 'streams cut short count as successful; ours here is the good ones',
    },
  );
  const requests = (group: readonly Seen[]): object[] => group.map(requestOf);
  return {
    metadata: { version: 1, made_by: 'goodput', run: name },
    benchmarks: [
      {
        type_: 'generative_benchmark',
        config: { strategy: { type_: 'unknown', rate: report.run.asked_rps ?? null } },
        duration,
        requests: { successful: requests(ok), incomplete: requests(open), errored: requests(errored), total: null },
        metrics: {
          request_totals: {
            successful: ok.length,
            incomplete: open.length,
            errored: errored.length,
            total: seen.length,
          },
          requests_per_second: { successful: { mean: rate } },
          output_tokens_per_second: { successful: { mean: duration > 0 ? tokens / duration : null } },
          ...metrics,
        },
      },
    ],
    _definitions: definitions,
  };
}

function requestOf(s: Seen): object {
  const sec = (t: number | undefined): number | null => (t === undefined ? null : t / 1000);
  const { record } = s;
  const status = record.outcome === 'completed' || record.outcome === 'truncated' ? 'completed' : 'errored';
  return {
    type_: 'generative_request_stats',
    request_id: `${record.operation}`,
    info: {
      request_id: `${record.operation}`,
      status: record.outcome === 'cancelled' || record.outcome === 'undecided' ? 'cancelled' : status,
      timings: {
        targeted_start: sec(record.stamps.scheduled),
        request_start: sec(s.start),
        first_request_iteration: sec(s.firstEvent),
        first_token_iteration: sec(s.first),
        first_output_token_iteration: sec(s.firstAnswer),
        last_token_iteration: sec(s.last),
        token_iterations: s.at.length,
        request_end: sec(s.end),
        resolve_end: sec(s.end),
      },
      error: record.reason === '' ? null : record.reason,
    },
    input_metrics: { text_tokens: s.input },
    output_metrics: { text_tokens: s.output ?? null },
  };
}

const STEP = '; the percentile is the least value with that share at or below it, ours interpolates';

/** The smallest value whose cumulated share reaches `p` (Hyndman–Fan type 1). */
function uninterpolated(sorted: Float64Array, p: number): number {
  // Shares are summed in floating point: 0.9 of ten values is reached by the ninth.
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(p * sorted.length - 1e-9) - 1))] as number;
}

function distribution(s: Summary, q: (p: number) => number): object {
  return {
    mean: s.mean,
    median: q(0.5),
    std_dev: s.sd,
    min: s.min,
    max: s.max,
    count: s.count,
    percentiles: { p50: q(0.5), p90: q(0.9), p95: q(0.95), p99: q(0.99) },
  };
}
