/**
 * GuideLLM's report: a list of benchmarks, each with its requests; wall times in seconds. Until 0.2 the times stood in the
 * request itself (`start_time`, `first_token_time`), in 0.3 in `scheduler_info.request_timings`, later in `info.timings`.
 */
import { InputError } from '../../base/errors.ts';
import { ENDS_ONLY, Fields, type Imported, outcomeOfError, recordOfKnown } from './imported.ts';

const GROUPS = ['successful', 'incomplete', 'errored'] as const;

/** @param value one of `benchmarks`. */
export function importGuidellm(value: unknown, where: string): Imported {
  const benchmark = new Fields(value, where);
  const requests = benchmark.object('requests');
  const all: { group: (typeof GROUPS)[number]; fields: Fields; timings: Fields; start: number; target: number }[] = [];
  for (const group of GROUPS) {
    requests?.list(group)?.forEach((request, i) => {
      const at = `${where}: requests.${group}[${i}]`;
      const fields = new Fields(request, at);
      const info = fields.object('info') ?? fields.object('scheduler_info');
      const timings = info?.object('timings') ?? info?.object('request_timings') ?? fields;
      if (timings === fields && !fields.has('start_time') && group === 'successful') {
        throw fields.wrong('info', "an object with 'timings'");
      }
      const start =
        timings.number('request_start') ??
        timings.number('resolve_start') ??
        fields.number('request_start_time') ??
        fields.number('start_time');
      if (start === undefined) {
        if (group === 'successful') throw timings.wrong('request_start', 'a time in seconds');
        return; // never begun
      }
      // −1: none was set.
      const target = timings.number('targeted_start') ?? info?.number('targeted_start_time');
      all.push({ group, fields, timings, start, target: target !== undefined && target > 0 ? target : start });
    });
  }
  if (all.length === 0) {
    throw new InputError(
      `${where}: holds no requests with times; run the tool again with its JSON output and all requests kept (no sampling)`,
    );
  }
  const origin = all.reduce((least, r) => Math.min(least, r.start, r.target), Number.POSITIVE_INFINITY);
  all.sort((a, b) => a.start - b.start);
  const ms = (t: number): number => 1000 * (t - origin);
  let planned = 0;
  let early = 0;
  const records = all.map(({ group, fields, timings, start, target }, operation) => {
    const first =
      timings.number('first_token_iteration') ?? timings.number('first_iteration') ?? fields.number('first_token_time');
    const last =
      timings.number('last_token_iteration') ?? timings.number('last_iteration') ?? fields.number('last_token_time');
    const answer = timings.number('first_output_token_iteration');
    const end = timings.number('request_end') ?? timings.number('resolve_end') ?? fields.number('end_time');
    if (first !== undefined && first < start) early++;
    const error = fields.object('info')?.text('error') ?? fields.text('error') ?? fields.text('error_message') ?? '';
    const failed =
      group === 'successful'
        ? undefined
        : group === 'errored'
          ? outcomeOfError(error)
          : { outcome: 'undecided' as const, reason: 'incomplete' };
    const output = countOf(fields.object('output_metrics')) ?? fields.number('output_tokens');
    const input = countOf(fields.object('input_metrics')) ?? fields.number('prompt_tokens');
    if (target < start) planned++;
    return recordOfKnown(operation, {
      start: ms(start),
      scheduled: ms(Math.min(target, start)),
      receipts: first === undefined ? [] : last === undefined || last === first ? [ms(first)] : [ms(first), ms(last)],
      ...(answer !== undefined && { firstAnswer: ms(answer) }),
      ...(end !== undefined && group !== 'incomplete' && { ended: ms(end) }),
      ...(input !== undefined && { input }),
      ...(output !== undefined && { output }),
      countedBy: 'server',
      outcome: failed?.outcome ?? 'completed',
      ...(failed && { reason: failed.reason, detail: error }),
    });
  });
  const strategy =
    benchmark.object('config')?.object('strategy') ??
    benchmark.object('args')?.object('strategy') ??
    benchmark.object('scheduler')?.object('strategy');
  const number = (key: string): number => (strategy?.has(key) ? Number(strategy.text(key)) : Number.NaN);
  const rate = number('rate');
  const streams = number('streams');
  const sampled = benchmark.object('sampled_size') !== undefined;
  return {
    tool: 'guidellm',
    records,
    count: records.length,
    ...(streams > 0 && { concurrency: streams }),
    endsOnly: true,
    epochWall: 1000 * origin,
    ...(rate > 0 && { rate }),
    cannotTell: [
      planned > 0
        ? 'the clock starts at its targeted start'
        : 'targeted starts are not in the file: the clock starts at dispatch, so queueing in that client is in no figure',
      ENDS_ONLY,
      ...(early > 0 ? [`${early} requests have a first token before their start: a TTFT of 0 is shown for them`] : []),
      ...(sampled ? ['the requests in the file are a sample: rates and goodput are of the sample alone'] : []),
      'its stamps are wall time: a clock that was set meanwhile is in the figures',
      'what was incomplete at the end is undecided',
    ],
  };
}

/** Tokens of text, or of all kinds. */
function countOf(metrics: Fields | undefined): number | undefined {
  return metrics?.count('text_tokens') ?? metrics?.count('total_tokens');
}
