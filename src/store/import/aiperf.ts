/**
 * AIPerf's `profile_export.jsonl`: a request a line; wall times in nanoseconds, metrics in the unit they name. Read twice, so
 * that nothing but a start a request is held: first when each began, then the requests.
 */
import { InputError } from '../../base/errors.ts';
import type { RequestRecord } from '../../core/record.ts';
import {
  Fields,
  type Imported,
  type Known,
  NO_TRUNCATION,
  outcomeOfError,
  ranks,
  recordOfKnown,
  UNSCHEDULED,
} from './imported.ts';

const IN_MS: Readonly<Record<string, number>> = { ns: 1e-6, us: 1e-3, ms: 1, s: 1000, sec: 1000, seconds: 1000 };

export type Lines = () => AsyncIterable<{ value: unknown; line: number }>;

/** @param lines parsed lines with their numbers, as often as asked. */
export async function importAiperf(lines: Lines, where: string): Promise<Imported> {
  const starts: number[] = [];
  const sessions = new Map<string, number>();
  let others = 0;
  let withoutGaps = 0;
  let unstreamed = 0;
  let byTokenizer = 0;
  let turns = 0;
  for await (const { value, line } of lines()) {
    const found = requestOf(value, `${where} line ${line}`);
    if (!found) {
      others++;
      continue;
    }
    starts.push(found.startNs);
    if (found.withoutGaps) withoutGaps++;
    if (found.known.streamed === false) unstreamed++;
    if (found.known.countedBy === 'tokenizer') byTokenizer++;
    if (found.turn > 0) turns++;
    if (found.conversation !== undefined && !sessions.has(found.conversation))
      sessions.set(found.conversation, sessions.size);
  }
  if (starts.length === 0)
    throw new InputError(`${where}: holds no profiled request; give profile_export.jsonl of a finished run`);
  const origin = starts.reduce((least, t) => Math.min(least, t), Number.POSITIVE_INFINITY);
  const rank = ranks(starts);
  async function* records(): AsyncGenerator<RequestRecord> {
    let i = 0;
    for await (const { value, line } of lines()) {
      const found = requestOf(value, `${where} line ${line}`);
      if (!found) continue;
      const start = (found.startNs - origin) / 1e6;
      const { known } = found;
      const session = turns > 0 && found.conversation !== undefined ? sessions.get(found.conversation) : undefined;
      yield recordOfKnown(rank[i++] as number, {
        ...known,
        start,
        receipts: known.receipts.map((t) => start + t),
        ...(known.firstAnswer !== undefined && { firstAnswer: start + known.firstAnswer }),
        ...(known.headers !== undefined && { headers: start + known.headers }),
        ...(known.ended !== undefined && { ended: start + known.ended }),
        ...(session !== undefined && { session, turn: found.turn }),
      });
    }
  }
  return {
    tool: 'aiperf',
    records: records(),
    count: starts.length,
    endsOnly: withoutGaps > 0,
    epochWall: origin / 1e6,
    cannotTell: [
      UNSCHEDULED,
      ...(withoutGaps > 0
        ? [
            `${withoutGaps} requests have no chunk latencies: their gaps are unknown; what is shown under those names is the whole decode time`,
          ]
        : []),
      ...(unstreamed > 0 ? [`${unstreamed} requests were not streamed, or say no time to the first token`] : []),
      ...(byTokenizer > 0 ? ['tokens were counted by a tokenizer in that client, not by the server'] : []),
      ...(others > 0 ? [`${others} requests of other phases (warm-up) were left out`] : []),
      NO_TRUNCATION,
    ],
  };
}

interface Found {
  readonly startNs: number;
  /** Times are ms since the start. */
  readonly known: Known;
  readonly withoutGaps: boolean;
  readonly conversation: string | undefined;
  readonly turn: number;
}

/** @returns undefined for a request of another phase than the measured one. */
function requestOf(value: unknown, at: string): Found | undefined {
  const record = new Fields(value, at);
  const metadata = record.object('metadata');
  if (!metadata) throw record.wrong('metadata', 'an object');
  const phase = metadata.text('benchmark_phase');
  if (phase !== undefined && phase !== 'profiling') return undefined;
  const startNs = metadata.number('request_start_ns');
  if (startNs === undefined) throw metadata.wrong('request_start_ns', 'nanoseconds');
  const endNs = metadata.number('request_end_ns');
  const ackNs = metadata.number('request_ack_ns');
  const metrics = record.object('metrics');
  const ms = (name: string): number | undefined => {
    const metric = metrics?.object(name);
    const amount = metric?.number('value');
    return metric === undefined || amount === undefined ? undefined : amount * unitOf(metric, at, name);
  };
  const count = (name: string): number | undefined => metrics?.object(name)?.number('value');
  const ttft = ms('time_to_first_token');
  const latency = ms('request_latency') ?? (endNs === undefined ? undefined : (endNs - startNs) / 1e6);
  const gapsMetric = metrics?.object('inter_chunk_latency');
  const gaps = gapsMetric?.numbers('value')?.map((x) => x * unitOf(gapsMetric, at, 'inter_chunk_latency'));
  const receipts: number[] = [];
  let withoutGaps = false;
  if (ttft !== undefined) {
    receipts.push(ttft);
    if (gaps) for (const gap of gaps) receipts.push((receipts.at(-1) as number) + gap);
    else if (latency !== undefined && latency > ttft) {
      receipts.push(latency);
      withoutGaps = true;
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
  const isWhole = !failed && ttft === undefined && latency !== undefined;
  const usage = count('usage_completion_tokens');
  const own = count('output_sequence_length') ?? count('output_token_count');
  const output = usage ?? own;
  const answer = ms('time_to_first_output_token');
  const input = count('input_sequence_length') ?? count('error_isl');
  const code = error?.number('code');
  return {
    startNs,
    withoutGaps,
    conversation: metadata.text('x_correlation_id') ?? metadata.text('conversation_id'),
    turn: metadata.count('turn_index') ?? 0,
    known: {
      start: 0,
      receipts: isWhole ? [latency] : receipts,
      ...(isWhole && { streamed: false }),
      ...(answer !== undefined && { firstAnswer: answer }),
      ...(ackNs !== undefined && { headers: (ackNs - startNs) / 1e6 }),
      ...(latency !== undefined && { ended: latency }),
      ...(input !== undefined && { input }),
      ...(output !== undefined && { output }),
      countedBy: usage === undefined ? 'tokenizer' : 'server',
      ...(code !== undefined && { status: code }),
      outcome: failed?.outcome ?? 'completed',
      ...(failed && { reason: failed.reason, detail: error?.text('message') ?? '' }),
    },
  };
}

function unitOf(metric: Fields, where: string, name: string): number {
  const unit = metric.text('unit') ?? 'ms';
  const factor = IN_MS[unit];
  if (factor === undefined)
    throw new InputError(`${where}: ${name} is in '${unit}', expected ns, us, ms or s; is the file whole?`);
  return factor;
}
