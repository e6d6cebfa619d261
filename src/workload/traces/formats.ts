/** The trace formats: one table, and which of them a file is in. */
import { InputError } from '../../base/errors.ts';
import { didYouMean } from '../../base/nearest.ts';
import type { Chunks } from '../lines.ts';
import { readAzure } from './azure.ts';
import { readBurstGpt } from './burstgpt.ts';
import { readGuideLlm } from './guidellm.ts';
import { readBailian, readMooncake } from './mooncake.ts';
import type { Trace, TraceOptions } from './trace.ts';
import { readVllm } from './vllm.ts';

export const TRACE_FORMATS = {
  azure: { read: readAzure, what: 'Azure LLM inference trace 2023 or 2024 (CSV)' },
  burstgpt: { read: readBurstGpt, what: 'BurstGPT (CSV)' },
  mooncake: { read: readMooncake, what: 'Mooncake trace (JSON lines)' },
  bailian: { read: readBailian, what: 'Bailian usage trace (JSON lines)' },
  vllm: { read: readVllm, what: 'result of vllm bench serve, saved in detail (JSON)' },
  guidellm: { read: readGuideLlm, what: "GuideLLM's benchmarks.json" },
} as const satisfies Record<
  string,
  { read: (chunks: Chunks, what: string, options?: TraceOptions) => Promise<Trace>; what: string }
>;

export type TraceFormat = keyof typeof TRACE_FORMATS;
export const TRACE_FORMAT_NAMES = Object.keys(TRACE_FORMATS) as readonly TraceFormat[];

/** @throws InputError naming the formats there are. */
export function traceFormat(name: string, flag: string): TraceFormat {
  if (Object.hasOwn(TRACE_FORMATS, name)) return name as TraceFormat;
  throw new InputError(
    `${flag}: '${name}' is not one of ${TRACE_FORMAT_NAMES.join(', ')}${didYouMean(name, TRACE_FORMAT_NAMES)}`,
  );
}

/** Enough of a file to tell its format by. */
const SNIFF = 16_384;

/**
 * Reads a trace, telling its format by its beginning unless `format` names one.
 * @param what the file's name, for errors. @throws InputError naming the line and what to do.
 */
export async function readTrace(
  chunks: Chunks,
  what: string,
  options: TraceOptions & { readonly format?: TraceFormat } = {},
): Promise<Trace> {
  if (options.format) return TRACE_FORMATS[options.format].read(chunks, what, options);
  const { head, whole } = await peeked(chunks, SNIFF);
  return TRACE_FORMATS[sniff(head, what)].read(whole, what, options);
}

function sniff(head: string, what: string): TraceFormat {
  const text = head.replace(/^\ufeff/, '').trimStart();
  const first = text.slice(0, text.indexOf('\n') < 0 ? text.length : text.indexOf('\n'));
  if (text.startsWith('{')) {
    if (/"input_length"/.test(first)) return /"(parent_)?chat_id"/.test(first) ? 'bailian' : 'mooncake';
    return /"benchmarks"\s*:/.test(head) ? 'guidellm' : 'vllm';
  }
  if (/contexttokens/i.test(first)) return 'azure';
  if (/request tokens/i.test(first)) return 'burstgpt';
  throw new InputError(
    `${what}: not a trace of a known format (${TRACE_FORMAT_NAMES.join(', ')}); name one with --format, or check the file`,
  );
}

/** The beginning of a stream, and the whole stream still to be read. */
async function peeked(chunks: Chunks, characters: number): Promise<{ head: string; whole: AsyncIterable<string> }> {
  const source = (async function* () {
    yield* chunks;
  })();
  const taken: string[] = [];
  let length = 0;
  while (length < characters) {
    const { done, value } = await source.next();
    if (done) break;
    taken.push(value);
    length += value.length;
  }
  return {
    head: taken.join('').slice(0, characters),
    whole: (async function* () {
      yield* taken;
      yield* source;
    })(),
  };
}
