/** As AIPerf defines it, in the shape of its `profile_export_aiperf.json`. */
import {
  type Definition,
  DISPATCHED,
  DURATION,
  durationOf,
  goodBy,
  oursAt,
  type Seen,
  SURVIVORS,
  summaryOf,
  type ToolInput,
} from './tool.ts';

export function toAiperf({ contract, report, seen }: ToolInput): object {
  const duration = durationOf(seen);
  const ok = seen.filter(
    ({ record: r, first }) => (r.outcome === 'completed' || r.outcome === 'truncated') && first !== undefined,
  );
  const definitions: Definition[] = [];
  const shape: Record<string, object> = {};
  const tell = (figure: string, theirs: number | null, ours_key: string | null, differs: string): void => {
    definitions.push({ figure, theirs, ours_key, ours: ours_key === null ? null : oursAt(report, ours_key), differs });
  };
  const record = (key: string, unit: string, values: readonly number[], ours: string | null, differs: string): void => {
    const s = summaryOf(values);
    if (!s) return;
    const sample = s.count > 1 ? s.sd * Math.sqrt(s.count / (s.count - 1)) : 0;
    shape[key] = {
      unit,
      avg: s.mean,
      min: s.min,
      max: s.max,
      p50: s.q(0.5),
      p90: s.q(0.9),
      p95: s.q(0.95),
      p99: s.q(0.99),
      std: sample,
      count: s.count,
    };
    for (const [stat, value] of [
      ['avg', s.mean],
      ['p50', s.q(0.5)],
      ['p90', s.q(0.9)],
      ['p95', s.q(0.95)],
      ['p99', s.q(0.99)],
    ] as const) {
      tell(
        `${key}.${stat}`,
        value,
        ours === null ? null : `metrics.${ours}.${stat === 'avg' ? 'mean' : stat}`,
        differs,
      );
    }
  };
  const scalar = (key: string, unit: string, value: number | null, ours: string | null, differs: string): void => {
    if (value === null) return;
    shape[key] = { unit, avg: value };
    tell(`${key}.avg`, value, ours, differs);
  };
  const latency = (s: Seen): number => s.last! - s.start;
  const ttft = (s: Seen): number => s.first! - s.start;
  const itl = (s: Seen): number | undefined =>
    s.output !== undefined && s.output > 1 ? (s.last! - s.first!) / (s.output - 1) : undefined;
  record('time_to_first_token', 'ms', ok.map(ttft), 'ttft_ms', `${DISPATCHED}; ${SURVIVORS}`);
  record(
    'time_to_second_token',
    'ms',
    ok.filter((s) => s.second !== undefined).map((s) => s.second! - s.first!),
    null,
    'the first chunk gap; no figure of ours',
  );
  record(
    'time_to_first_output_token',
    'ms',
    ok.filter((s) => s.firstAnswer !== undefined).map((s) => s.firstAnswer! - s.start),
    'ttfa_ms',
    `${DISPATCHED}; ${SURVIVORS}`,
  );
  record(
    'request_latency',
    'ms',
    ok.map(latency),
    'e2e_ms',
    `ends with the last output, not the end of the stream; ${DISPATCHED}; ${SURVIVORS}`,
  );
  record(
    'inter_token_latency',
    'ms',
    ok.map(itl).filter((x) => x !== undefined),
    'tpot_ms',
    `a mean a request, our TPOT but for whose count n is (there a tokenizer’s; here the server’s); ${SURVIVORS}`,
  );
  record(
    'inter_chunk_latency',
    'ms',
    ok.flatMap((s) => Array.from(s.at.subarray(1), (t, i) => t - s.at[i]!)),
    'chunk_gap_ms',
    'none: raw gaps between chunks (ours are pooled in a sketch, and of unsuccessful requests too)',
  );
  record(
    'output_sequence_length',
    'tokens',
    ok.filter((s) => s.output !== undefined).map((s) => s.output!),
    null,
    'there a tokenizer’s count; here the server’s',
  );
  record(
    'input_sequence_length',
    'tokens',
    ok.map((s) => s.input),
    null,
    'there a tokenizer’s count; here the server’s',
  );
  const perSecond = (x: number): number | null => (duration > 0 ? x / duration : null);
  const { limits } = contract;
  const good = ok.map((s) =>
    goodBy(
      { ttft: limits.ttft, tpot: limits.tpot, e2e: limits.e2e },
      { ttft: ttft(s), tpot: itl(s) ?? 0, e2e: latency(s) },
    ),
  );
  const isJudged = good.some((g) => g !== undefined);
  const goodCount = good.filter((g) => g).length;
  scalar(
    'request_count',
    'requests',
    ok.length,
    'cohort.good',
    'streams cut short count as valid; ours here is the good ones',
  );
  scalar('error_request_count', 'requests', seen.length - ok.length, null, 'what was never sent is in no count');
  scalar('request_throughput', 'requests/sec', perSecond(ok.length), 'achieved_rps', DURATION);
  scalar(
    'output_token_throughput',
    'tokens/sec',
    perSecond(ok.reduce((sum, s) => sum + (s.output ?? 0), 0)),
    'throughput_tps',
    `${DURATION}; tokens of warm-up and cool-down requests are left out`,
  );
  scalar(
    'goodput',
    'requests/sec',
    isJudged ? perSecond(goodCount) : null,
    'goodput_rps',
    `${DURATION}; the clock starts at dispatch`,
  );
  scalar(
    'good_request_fraction',
    'ratio',
    isJudged && seen.length > 0 ? goodCount / seen.length : null,
    'attainment.value',
    'good / (valid + errors): what was never sent is in no denominator',
  );
  scalar(
    'benchmark_duration',
    'sec',
    duration,
    'window.seconds',
    'ends with the last request, the drain included; ours is the window of arrivals',
  );
  return { ...shape, _definitions: definitions };
}
