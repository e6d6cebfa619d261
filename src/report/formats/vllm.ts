/** As `vllm bench serve --save-detailed` defines and stores it. */
import {
  type Definition,
  DISPATCHED,
  DURATION,
  durationOf,
  goodBy,
  oursAt,
  passesThere,
  SURVIVORS,
  summaryOf,
  type ToolInput,
} from './tool.ts';

export function toVllm({ contract, report, seen, name }: ToolInput): object {
  const duration = durationOf(seen);
  const rows = seen.map((s) => {
    const passed = passesThere(s) && s.first !== undefined;
    const shown = s.firstEvent ?? s.first;
    const ttft = passed && shown !== undefined ? shown - s.start : 0;
    const itl: number[] = [];
    if (passed) {
      // The empty role chunk is its first chunk, so the wait for real output is a gap.
      if (s.firstEvent !== undefined && s.firstEvent < s.first!) itl.push(s.first! - s.firstEvent);
      for (let i = 1; i < s.at.length; i++) itl.push(s.at[i]! - s.at[i - 1]!);
    }
    const latency = passed ? s.last! - s.start : 0;
    const n = passed ? (s.output ?? 1) : 0;
    const tpot = n > 1 ? (latency - ttft) / (n - 1) : 0;
    return { s, passed, ttft, itl, latency, n, tpot };
  });
  const passed = rows.filter((r) => r.passed);
  const perSecond = (x: number): number | null => (duration > 0 ? x / duration : null);
  const { ttft, tpot, e2e } = contract.limits;
  const good = passed.map((r) => goodBy({ ttft, tpot, e2e }, { ttft: r.ttft, tpot: r.tpot, e2e: r.latency }));
  const goodput = good.some((g) => g !== undefined) ? perSecond(good.filter((g) => g).length) : null;
  const input = passed.reduce((sum, r) => sum + r.s.input, 0);
  const output = passed.reduce((sum, r) => sum + r.n, 0);
  const stats: Record<string, number> = {};
  const definitions: Definition[] = [];
  const tell = (figure: string, theirs: number | null, ours_key: string | null, differs: string): void => {
    definitions.push({ figure, theirs, ours_key, ours: ours_key === null ? null : oursAt(report, ours_key), differs });
  };
  tell(
    'duration',
    duration,
    'window.seconds',
    'ends with the last request, the drain included; ours is the window of arrivals',
  );
  tell(
    'completed',
    passed.length,
    'cohort.good',
    'streams cut short and errors inside a 200 stream count as completed; ours here is the good ones',
  );
  tell('request_throughput', perSecond(passed.length), 'achieved_rps', DURATION);
  tell(
    'request_goodput',
    goodput,
    'goodput_rps',
    `${DURATION}; failures are in no denominator, one-token answers pass TPOT as 0, the clock starts at dispatch, and limits but TTFT, TPOT and E2E are not known there`,
  );
  tell(
    'output_throughput',
    perSecond(output),
    'throughput_tps',
    `${DURATION}; tokens of warm-up and cool-down requests are left out`,
  );
  for (const [metric, values, ours, differs] of [
    [
      'ttft',
      passed.map((r) => r.ttft),
      'ttft_ms',
      `ends at the first event of any kind, an empty role chunk too; ${DISPATCHED}; ${SURVIVORS}`,
    ],
    [
      'tpot',
      passed.filter((r) => r.n > 1).map((r) => r.tpot),
      'tpot_ms',
      `(latency − TTFT) / (n − 1) with its own early TTFT; n is the server’s usage, unseen reasoning included; ${SURVIVORS}`,
    ],
    [
      'itl',
      passed.flatMap((r) => r.itl),
      'chunk_gap_ms',
      'a gap a chunk, not a token, and with the gap from the role chunk to the first output',
    ],
    [
      'e2el',
      passed.map((r) => r.latency),
      'e2e_ms',
      `ends with the last output, not the end of the stream; ${DISPATCHED}; ${SURVIVORS}`,
    ],
  ] as const) {
    const s = summaryOf(values);
    if (!s) continue;
    stats[`mean_${metric}_ms`] = s.mean;
    stats[`median_${metric}_ms`] = s.q(0.5);
    stats[`std_${metric}_ms`] = s.sd;
    for (const p of [90, 95, 99]) stats[`p${p}_${metric}_ms`] = s.q(p / 100);
    tell(`mean_${metric}_ms`, s.mean, `metrics.${ours}.mean`, differs);
    tell(`median_${metric}_ms`, s.q(0.5), `metrics.${ours}.p50`, differs);
    for (const p of [90, 95, 99]) tell(`p${p}_${metric}_ms`, s.q(p / 100), `metrics.${ours}.p${p}`, differs);
  }
  return {
    label: name,
    model_id: report.run.model ?? null,
    num_prompts: seen.length,
    request_rate: report.run.asked_rps ?? null,
    duration,
    completed: passed.length,
    failed: seen.length - passed.length,
    total_input_tokens: input,
    total_output_tokens: output,
    request_throughput: perSecond(passed.length),
    request_goodput: goodput,
    output_throughput: perSecond(output),
    total_token_throughput: perSecond(input + output),
    ...stats,
    // Seconds, as there.
    input_lens: rows.map((r) => r.s.input),
    output_lens: rows.map((r) => r.n),
    ttfts: rows.map((r) => r.ttft / 1000),
    itls: rows.map((r) => r.itl.map((gap) => gap / 1000)),
    start_times: rows.map((r) => r.s.start / 1000),
    errors: rows.map((r) => (r.passed ? '' : r.s.record.reason || r.s.record.outcome)),
    _definitions: definitions,
  };
}
