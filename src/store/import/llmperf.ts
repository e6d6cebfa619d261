/** llmperf's `…_individual_responses.json`: a list of requests, each by its durations in seconds; no start times. */
import { ENDS_ONLY, Fields, type Imported, NO_TRUNCATION, outcomeOfError, recordOfKnown } from './imported.ts';

export function importLlmperf(list: readonly unknown[], where: string): Imported {
  let timed = 0;
  const records = list.map((value, operation) => {
    const request = new Fields(value, `${where}: [${operation}]`);
    const ttft = request.number('ttft_s') ?? 0;
    const latency = request.number('end_to_end_latency_s') ?? 0;
    const code = request.has('error_code') ? Number(request.text('error_code')) : undefined;
    const message = request.text('error_msg') ?? '';
    const began = request.number('start_time') ?? request.number('request_start_time_s');
    if (began !== undefined) timed++;
    const start = 1000 * (began ?? 0);
    const hasOutput = ttft > 0;
    const failed =
      code !== undefined || message !== ''
        ? outcomeOfError(message, code !== undefined && Number.isFinite(code) ? code : undefined)
        : !hasOutput
          ? { outcome: 'failed' as const, reason: 'no-output' }
          : undefined;
    const input = request.number('number_input_tokens');
    const output = request.number('number_output_tokens');
    const first = start + 1000 * ttft;
    const last = start + 1000 * latency;
    return recordOfKnown(operation, {
      start,
      receipts: !hasOutput ? [] : last > first ? [first, last] : [first],
      ...(latency > 0 && { ended: last }),
      ...(input !== undefined && { input }),
      ...(output !== undefined && output > 0 && { output }),
      countedBy: 'tokenizer',
      ...(code !== undefined && code >= 100 && code < 600 && { status: code }),
      outcome: failed?.outcome ?? 'completed',
      ...(failed && { reason: failed.reason, detail: message }),
    });
  });
  return {
    tool: 'llmperf',
    records,
    count: records.length,
    endsOnly: true,
    cannotTell: [
      ...(timed === records.length
        ? []
        : ['start times are not in the file: arrivals, rates and the order of requests are unknown']),
      ENDS_ONLY,
      'its inter-token latency is the whole time, TTFT included, over the tokens; TPOT here is the decode time over the later ones',
      "tokens were counted by one tokenizer (Llama's) whatever the model",
      'the end of a request is taken for its last output',
      NO_TRUNCATION,
    ],
  };
}
