/** GuideLLM's `benchmarks.json`: a list of benchmarks, each with its requests; wall times in seconds. */
import { InputError } from '../../base/errors.ts';
import { Fields, type Imported, outcomeOfError, recordOfKnown } from './imported.ts';

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
      const timings = info?.object('timings') ?? info?.object('request_timings');
      if (!timings) throw fields.wrong('info', "an object with 'timings'");
      const start =
        timings.number('request_start') ?? timings.number('resolve_start') ?? fields.number('request_start_time');
      if (start === undefined) {
        if (group === 'successful') throw timings.wrong('request_start', 'a time in seconds');
        return; // never begun
      }
      all.push({ group, fields, timings, start, target: timings.number('targeted_start') ?? start });
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
  const records = all.map(({ group, fields, timings, start, target }, operation) => {
    const first = timings.number('first_token_iteration') ?? timings.number('first_iteration');
    const last = timings.number('last_token_iteration') ?? timings.number('last_iteration');
    const answer = timings.number('first_output_token_iteration');
    const end = timings.number('request_end') ?? timings.number('resolve_end');
    const error = (fields.object('info') ?? fields).text('error') ?? '';
    const failed =
      group === 'successful'
        ? undefined
        : group === 'errored'
          ? outcomeOfError(error)
          : { outcome: 'undecided' as const, reason: 'incomplete' };
    const output = fields.object('output_metrics')?.count('text_tokens') ?? fields.number('output_tokens');
    const input = fields.object('input_metrics')?.count('text_tokens') ?? fields.number('prompt_tokens');
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
  const strategy = benchmark.object('config')?.object('strategy');
  const rate = strategy?.has('rate') ? Number(strategy.text('rate')) : Number.NaN;
  return {
    tool: 'guidellm',
    records,
    endsOnly: true,
    epochWall: 1000 * origin,
    ...(rate > 0 && { rate }),
    cannotTell: [
      planned > 0
        ? 'the clock starts at its targeted start'
        : 'targeted starts are not in the file: the clock starts at dispatch, so queueing in that client is in no figure',
      'only the first and the last output of a request are in the file: chunk gaps, ITL and the largest gap are unknown; what is shown under those names is the whole decode time',
      'its stamps are wall time: a clock that was set meanwhile is in the figures',
      'what was incomplete at the end is undecided',
    ],
  };
}
