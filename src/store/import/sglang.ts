/** SGLang's `bench_serving --output-details`: one JSON object a line, a line a run, lists in seconds as vLLM's. */
import { Fields, type Imported } from './imported.ts';
import { requestsOfLists } from './vllm.ts';

export function importSglang(value: unknown, where: string): Imported {
  const file = new Fields(value, where);
  const { records, cannotTell } = requestsOfLists(file, where, '--output-details');
  const rate = Number(file.text('request_rate') ?? Number.NaN);
  const concurrency = file.number('max_concurrency');
  const backend = file.text('backend');
  return {
    tool: 'sglang bench_serving',
    records,
    count: records.length,
    endsOnly: false,
    ...(rate > 0 && Number.isFinite(rate) && { rate }),
    ...(concurrency !== undefined && { concurrency }),
    cannotTell: [
      ...cannotTell,
      'output lengths are those asked for unless the server sent its usage: TPOT may rest on tokens never generated',
      ...(backend === 'sglang' || backend === 'sglang-native'
        ? ['of chunks with several tokens the gap is spread evenly over them there: small gaps are means, not gaps']
        : []),
      'each request opens a connection inside the timer: TTFT includes it',
    ],
  };
}
