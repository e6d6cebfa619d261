/**
 * inference-perf's `per_request_lifecycle_metrics.json`: a list of requests; seconds of one monotonic clock. Tokens that came
 * in one chunk share its time. Token counts stood in `info` itself before they moved to `request_metrics` and
 * `response_metrics`.
 */
import { Fields, type Imported, NO_TRUNCATION, outcomeOfError, ranks, recordOfKnown, UNSCHEDULED } from './imported.ts';

export function importInferencePerf(list: readonly unknown[], where: string): Imported {
  const read = list.map((value, i) => {
    const request = new Fields(value, `${where}: [${i}]`);
    const start = request.number('start_time');
    if (start === undefined) throw request.wrong('start_time', 'seconds');
    const scheduled = request.number('scheduled_time');
    return { request, start, scheduled: scheduled !== undefined && scheduled <= start ? scheduled : undefined };
  });
  const origin = read.reduce((least, r) => Math.min(least, r.scheduled ?? r.start), Number.POSITIVE_INFINITY);
  const rank = ranks(read.map((r) => r.start));
  const ms = (t: number): number => 1000 * (t - origin);
  let unstreamed = 0;
  let byTokenizer = 0;
  let shared = 0;
  const records = read.map(({ request, start, scheduled }, i) => {
    const info = request.object('info');
    const response = info?.object('response_metrics') ?? info;
    const times = response?.numbers('output_token_times') ?? [];
    // A chunk's tokens share its time: it is one receipt.
    const receipts = times.filter((t, k) => k === 0 || t > times[k - 1]!);
    if (receipts.length < times.length) shared++;
    const served = response?.object('server_usage');
    const counted = served?.number('completion_tokens') ?? served?.number('output_tokens');
    const output = counted ?? response?.number('output_tokens');
    if (counted === undefined) byTokenizer++;
    const input =
      info?.object('request_metrics')?.object('text')?.number('input_tokens') ?? info?.number('input_tokens');
    const end = request.number('end_time');
    const error = request.object('error');
    const message = error ? `${error.text('error_type') ?? ''} ${error.text('error_msg') ?? ''}` : '';
    const isWhole = !error && receipts.length === 0 && end !== undefined && (output ?? 0) > 0;
    if (isWhole) unstreamed++;
    const failed = error
      ? outcomeOfError(message)
      : receipts.length === 0 && !isWhole
        ? { outcome: 'failed' as const, reason: 'no-output' }
        : undefined;
    return recordOfKnown(rank[i] as number, {
      start: ms(start),
      ...(scheduled !== undefined && { scheduled: ms(scheduled) }),
      receipts: isWhole ? [ms(end)] : receipts.map(ms),
      ...(isWhole && { streamed: false }),
      ...(end !== undefined && { ended: ms(end) }),
      ...(input !== undefined && { input }),
      ...(output !== undefined && output > 0 && { output }),
      countedBy: counted === undefined ? 'tokenizer' : 'server',
      outcome: failed?.outcome ?? 'completed',
      ...(failed && { reason: failed.reason, detail: message.trim() }),
    });
  });
  const isScheduled = read.some((r) => r.scheduled !== undefined);
  return {
    tool: 'inference-perf',
    records,
    count: records.length,
    endsOnly: false,
    cannotTell: [
      ...(isScheduled ? [] : [UNSCHEDULED]),
      'reasoning is no output there: where a model reasons first, TTFT is to its answer',
      ...(byTokenizer > 0
        ? [`tokens of ${byTokenizer} requests were counted by a tokenizer in that client, not by the server`]
        : []),
      ...(shared > 0
        ? [`in ${shared} requests tokens of one chunk share its time: each such chunk is one receipt here`]
        : []),
      ...(unstreamed > 0 ? [`${unstreamed} requests were not streamed: they have an end and nothing before it`] : []),
      NO_TRUNCATION,
    ],
  };
}
