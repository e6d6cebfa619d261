/** AIPerf's `profile_export.jsonl`: a request a line; wall times in nanoseconds, metrics in the unit they name. */
import { InputError } from '../../base/errors.ts';
import type { RequestRecord } from '../../core/record.ts';
import { Fields, type Imported, type Known, outcomeOfError, recordOfKnown } from './imported.ts';

const IN_MS: Readonly<Record<string, number>> = { ns: 1e-6, us: 1e-3, ms: 1, s: 1000, sec: 1000, seconds: 1000 };

/** @param lines parsed lines with their numbers. */
export async function importAiperf(
  lines: AsyncIterable<{ value: unknown; line: number }>,
  where: string,
): Promise<Imported> {
  const known: (Known & { startNs: number })[] = [];
  let warmups = 0;
  let withoutGaps = 0;
  for await (const { value, line } of lines) {
    const at = `${where} line ${line}`;
    const record = new Fields(value, at);
    const metadata = record.object('metadata');
    if (!metadata) throw record.wrong('metadata', 'an object');
    const phase = metadata.text('benchmark_phase');
    if (phase !== undefined && phase !== 'profiling') {
      warmups++;
      continue;
    }
    const startNs = metadata.number('request_start_ns');
    if (startNs === undefined) throw metadata.wrong('request_start_ns', 'nanoseconds');
    const endNs = metadata.number('request_end_ns');
    const ackNs = metadata.number('request_ack_ns');
    const metrics = record.object('metrics');
    const ms = (name: string): number | undefined => {
      const metric = metrics?.object(name);
      const value = metric?.number('value');
      return value === undefined ? undefined : value * unitOf(metric!, at, name);
    };
    const count = (name: string): number | undefined => metrics?.object(name)?.number('value');
    const ttft = ms('time_to_first_token');
    const latency = ms('request_latency') ?? (endNs === undefined ? undefined : (endNs - startNs) / 1e6);
    const gapsMetric = metrics?.object('inter_chunk_latency');
    const gaps = gapsMetric?.numbers('value')?.map((x) => x * unitOf(gapsMetric, at, 'inter_chunk_latency'));
    const receipts: number[] = [];
    if (ttft !== undefined) {
      receipts.push(ttft);
      if (gaps) for (const gap of gaps) receipts.push(receipts.at(-1)! + gap);
      else if (latency !== undefined && latency > ttft) {
        receipts.push(latency);
        withoutGaps++;
      }
    }
    const error = record.object('error');
    const isCancelled = metadata.text('was_cancelled') === 'true';
    const failed = isCancelled
      ? { outcome: 'cancelled' as const, reason: 'cancelled' }
      : error
        ? outcomeOfError(`${error.text('type') ?? ''} ${error.text('message') ?? ''}`, error.number('code'))
        : ttft === undefined && latency === undefined
          ? { outcome: 'failed' as const, reason: 'no-output' }
          : undefined;
    const usage = count('usage_completion_tokens');
    const own = count('output_sequence_length') ?? count('output_token_count');
    const answer = ms('time_to_first_output_token');
    const input = count('input_sequence_length') ?? count('error_isl');
    const code = error?.number('code');
    known.push({
      startNs,
      start: 0,
      receipts,
      ...(answer !== undefined && { firstAnswer: answer }),
      ...(ackNs !== undefined && { headers: (ackNs - startNs) / 1e6 }),
      ...(latency !== undefined && { ended: latency }),
      ...(input !== undefined && { input }),
      ...((usage ?? own) !== undefined && { output: usage ?? (own as number) }),
      countedBy: usage === undefined ? 'tokenizer' : 'server',
      ...(code !== undefined && { status: code }),
      outcome: failed?.outcome ?? 'completed',
      ...(failed && { reason: failed.reason, detail: error?.text('message') ?? '' }),
    });
  }
  if (known.length === 0)
    throw new InputError(`${where}: holds no profiled request; give profile_export.jsonl of a finished run`);
  known.sort((a, b) => a.startNs - b.startNs);
  const origin = known[0]!.startNs;
  const records: RequestRecord[] = known.map((k, operation) => {
    const start = (k.startNs - origin) / 1e6;
    return recordOfKnown(operation, {
      ...k,
      start,
      receipts: k.receipts.map((t) => start + t),
      ...(k.firstAnswer !== undefined && { firstAnswer: start + k.firstAnswer }),
      ...(k.headers !== undefined && { headers: start + k.headers }),
      ...(k.ended !== undefined && { ended: start + k.ended }),
    });
  });
  return {
    tool: 'aiperf',
    records,
    endsOnly: withoutGaps > 0,
    epochWall: origin / 1e6,
    cannotTell: [
      'when requests were scheduled is not in the file: the clock starts at dispatch, so queueing in that client is in no figure',
      ...(withoutGaps > 0
        ? [
            `${withoutGaps} requests have no chunk latencies: their gaps are unknown; what is shown under those names is the whole decode time`,
          ]
        : []),
      ...(known.some((k) => k.countedBy === 'tokenizer')
        ? ['tokens were counted by a tokenizer in that client, not by the server']
        : []),
      ...(warmups > 0 ? [`${warmups} requests of other phases (warm-up) were left out`] : []),
      'a stream cut short without an error counts as completed there, and so here',
    ],
  };
}

function unitOf(metric: Fields, where: string, name: string): number {
  const unit = metric.text('unit') ?? 'ms';
  const factor = IN_MS[unit];
  if (factor === undefined)
    throw new InputError(`${where}: ${name} is in '${unit}', expected ns, us, ms or s; is the file whole?`);
  return factor;
}
