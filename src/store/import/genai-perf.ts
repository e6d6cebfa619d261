/**
 * The `profile_export.json` of perf_analyzer and genai-perf: experiments, each with its requests; nanoseconds of one clock,
 * and what was received at each (an SSE text of an OpenAI endpoint, fields of a Triton one). `data: [DONE]`, role and usage
 * chunks are no output.
 */
import { InputError } from '../../base/errors.ts';
import { Fields, type Imported, NO_TRUNCATION, ranks, recordOfKnown, UNSCHEDULED } from './imported.ts';

/** @param value one of `experiments`. */
export function importGenaiPerf(value: unknown, where: string): Imported {
  const experiment = new Fields(value, where);
  const requests = experiment.list('requests');
  if (!requests || requests.length === 0)
    throw new InputError(`${where}: holds no requests; give the profile export of a finished run`);
  let unread = 0;
  const read = requests.map((request, i) => {
    const fields = new Fields(request, `${where}: requests[${i}]`);
    const start = fields.number('timestamp');
    if (start === undefined) throw fields.wrong('timestamp', 'nanoseconds');
    const times = fields.numbers('response_timestamps') ?? [];
    const outputs = fields.list('response_outputs');
    if (outputs && outputs.length !== times.length) {
      throw fields.wrong('response_outputs', `a list of ${times.length} like 'response_timestamps'`);
    }
    if (!outputs) unread++;
    const said = outputs?.map((output) => saidIn(output)) ?? times.map(() => PLAIN);
    return { start, times, said };
  });
  const origin = read.reduce((least, r) => Math.min(least, r.start), Number.POSITIVE_INFINITY);
  const rank = ranks(read.map((r) => r.start));
  const ms = (ns: number): number => (ns - origin) / 1e6;
  let untold = 0;
  const records = read.map(({ start, times, said }, i) => {
    const receipts = times.filter((_, k) => said[k]?.output);
    const usage = said.map((s) => s.usage).findLast((u) => u !== undefined);
    const error = said.find((s) => s.error)?.error;
    const streamed = !said.some((s) => s.whole && s.output);
    const last = times.at(-1);
    if (usage === undefined) untold++;
    const failed = error !== undefined || receipts.length === 0;
    return recordOfKnown(rank[i] as number, {
      start: ms(start),
      receipts: receipts.map(ms),
      streamed,
      ...(last !== undefined && { ended: ms(last) }),
      ...(usage !== undefined && { output: usage }),
      countedBy: 'server',
      outcome: failed ? 'failed' : 'completed',
      ...(failed && { reason: error === undefined ? 'no-output' : 'stream-error', detail: error ?? '' }),
    });
  });
  const load = experiment.object('experiment');
  const mode = load?.text('mode');
  const amount = load?.number('value');
  return {
    tool: 'genai-perf',
    records,
    count: records.length,
    endsOnly: false,
    ...(mode === 'concurrency' && amount !== undefined && { concurrency: amount }),
    ...(mode === 'request_rate' && amount !== undefined && amount > 0 && { rate: amount }),
    cannotTell: [
      UNSCHEDULED,
      ...(untold > 0
        ? [
            `${untold} requests carry no usage: their tokens were counted by that tool's tokenizer, which is not in the file, so TPOT is unknown`,
          ]
        : []),
      ...(unread > 0
        ? [`${unread} requests keep no outputs: every response is taken for output, a role chunk too`]
        : []),
      'requests that failed may not be in the file at all',
      NO_TRUNCATION,
    ],
  };
}

interface Said {
  readonly output: boolean;
  readonly usage?: number;
  readonly error?: string;
  /** Not a stream: one answer. */
  readonly whole?: boolean;
}
const PLAIN: Said = { output: true };

/** What one response held: several events may have come in one. */
function saidIn(output: unknown): Said {
  if (typeof output === 'string') return textSaid(output);
  if (typeof output !== 'object' || output === null) return { output: false };
  const { response, text_output } = output as Readonly<Record<string, unknown>>;
  if (typeof response === 'string') return textSaid(response);
  if (typeof text_output === 'string') return { output: text_output !== '' };
  return { output: Object.keys(output).length > 0 };
}

function textSaid(text: string): Said {
  const trimmed = text.trim();
  if (trimmed === '') return { output: false };
  if (!/^(data|event|:)/.test(trimmed)) return { ...event(trimmed), ...(trimmed.startsWith('{') && { whole: true }) };
  let said: Said = { output: false };
  for (const line of trimmed.split(/\r?\n/)) {
    if (!line.startsWith('data:')) continue;
    const one = event(line.slice(5).trim());
    said = { ...said, ...one, output: said.output || one.output };
  }
  return said;
}

type Json = Readonly<Record<string, unknown>>;

function event(data: string): Said {
  if (data === '' || data === '[DONE]') return { output: false };
  let value: Json;
  try {
    value = JSON.parse(data) as Json;
  } catch {
    return PLAIN; // not the form of an OpenAI endpoint: text as it came
  }
  const error = value.error as Json | string | undefined;
  if (error) return { output: false, error: typeof error === 'string' ? error : String(error.message ?? 'error') };
  const choices = Array.isArray(value.choices) ? (value.choices as Json[]) : [];
  const tokens = (value.usage as Json | undefined)?.completion_tokens;
  const output = choices.some((choice) => {
    const said = (choice.delta ?? choice.message ?? choice) as Json;
    return (
      [said.content, said.reasoning_content, said.reasoning, said.refusal, said.text].some(
        (t) => typeof t === 'string' && t !== '',
      ) ||
      (Array.isArray(said.tool_calls) && said.tool_calls.length > 0)
    );
  });
  const isWhole = choices.some((choice) => choice.message !== undefined);
  return { output, ...(typeof tokens === 'number' && { usage: tokens }), ...(isWhole && { whole: true }) };
}
