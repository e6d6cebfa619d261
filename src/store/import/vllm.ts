/** `vllm bench serve --save-result --save-detailed`, and what shares its shape: lists with an entry a request, in seconds. */
import { InputError } from '../../base/errors.ts';
import type { RequestRecord } from '../../core/record.ts';
import { Fields, type Imported, NO_TRUNCATION, outcomeOfError, recordOfKnown, UNSCHEDULED } from './imported.ts';

export function importVllm(value: unknown, where: string): Imported {
  const file = new Fields(value, where);
  const requests = requestsOfLists(file, where, '--save-detailed');
  const date = /^(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)$/.exec(file.text('date') ?? '');
  const concurrency = file.number('max_concurrency');
  const rate = Number(file.text('request_rate') ?? Number.NaN);
  return {
    tool: 'vllm bench',
    records: requests.records,
    count: requests.records.length,
    endsOnly: false,
    ...(file.has('model_id') && { model: file.text('model_id') as string }),
    ...(rate > 0 && Number.isFinite(rate) && { rate }),
    ...(concurrency !== undefined && { concurrency }),
    ...(date && {
      epochWall: Date.UTC(+date[1]!, +date[2]! - 1, +date[3]!, +date[4]!, +date[5]!, +date[6]!),
    }),
    cannotTell: [
      ...requests.cannotTell,
      ...(concurrency === undefined
        ? []
        : [`its clock starts once one of ${concurrency} slots is free: time spent waiting for one is in no figure`]),
      'its first chunk may be an empty role chunk: TTFT may be too small, the first gap too large',
      NO_TRUNCATION,
    ],
  };
}

/** The lists `input_lens`, `output_lens`, `ttfts`, `itls`, `errors` and, where there, `start_times`. */
export function requestsOfLists(
  file: Fields,
  where: string,
  flag: string,
): { records: RequestRecord[]; cannotTell: string[] } {
  const ttfts = file.numbers('ttfts');
  const itls = file.lists('itls');
  if (!ttfts || !itls) {
    throw new InputError(
      `${where}: holds only summaries ('ttfts' and 'itls' are missing); run the tool again with ${flag}, figures cannot be made from means`,
    );
  }
  const n = ttfts.length;
  const sized = <T>(key: string, list: readonly T[] | undefined): readonly T[] | undefined => {
    if (list && list.length !== n) throw file.wrong(key, `a list of ${n} like 'ttfts' (it has ${list.length})`);
    return list;
  };
  sized('itls', itls);
  const inputs = sized('input_lens', file.numbers('input_lens'));
  const outputs = sized('output_lens', file.numbers('output_lens'));
  const starts = sized('start_times', file.numbers('start_times'));
  const errors = sized('errors', file.list('errors'));
  const origin = starts ? starts.reduce((least, t) => Math.min(least, t), Number.POSITIVE_INFINITY) : 0;
  const order = [...ttfts.keys()];
  if (starts) order.sort((a, b) => starts[a]! - starts[b]! || a - b);
  const records = order.map((i, operation) => {
    const start = starts ? 1000 * (starts[i]! - origin) : 0;
    const error = errors?.[i] ? String(errors[i]) : '';
    const output = outputs?.[i];
    const hasOutput = ttfts[i]! > 0;
    const receipts: number[] = [];
    if (hasOutput) {
      let at = start + 1000 * ttfts[i]!;
      receipts.push(at);
      for (const gap of itls[i]!) receipts.push((at += 1000 * gap));
    }
    const failed =
      error !== ''
        ? outcomeOfError(error)
        : !hasOutput
          ? { outcome: 'failed' as const, reason: 'no-output' }
          : undefined;
    return recordOfKnown(operation, {
      start,
      receipts,
      ...(inputs?.[i] !== undefined && { input: inputs[i]! }),
      ...(output !== undefined && output > 0 && { output }),
      countedBy: 'server',
      outcome: failed?.outcome ?? 'completed',
      ...(failed && { reason: failed.reason, detail: lastLine(error) }),
    });
  });
  return {
    records,
    cannotTell: [
      UNSCHEDULED,
      ...(starts ? [] : ['start times are not in the file: arrivals, rates and the order of requests are unknown']),
      'chunk stamps are sums of its gaps; E2E ends with the last chunk',
      'a failure’s time is not in the file',
    ],
  };
}

/** Of a Python traceback, the line that says what it was. */
function lastLine(text: string): string {
  return text.trim().split('\n').at(-1) ?? '';
}
