/** Result files of other tools, told apart by their keys, and read into records. docs/other-tools.md is the reference. */
import { InputError, oneLine } from '../../base/errors.ts';
import { importAiperf } from './aiperf.ts';
import { importGenaiPerf } from './genai-perf.ts';
import { importGuidellm } from './guidellm.ts';
import type { Imported } from './imported.ts';
import { importInferencePerf } from './inference-perf.ts';
import { importLlmperf } from './llmperf.ts';
import { importSglang } from './sglang.ts';
import { headOf, linesOf, tryParse, wholeFile, wholeYaml } from './text.ts';
import { importVllm } from './vllm.ts';

export type { Imported } from './imported.ts';

const KNOWN =
  'vllm bench (JSON), guidellm (JSON or YAML), aiperf (profile_export.jsonl), genai-perf (profile_export.json), sglang bench_serving (JSONL), inference-perf (per_request_lifecycle_metrics.json), llmperf (…_individual_responses.json)';

type Json = Readonly<Record<string, unknown>>;

/**
 * @param entry which run of a file that holds several, from 1.
 * @throws InputError naming the file and the line or key that is unknown or damaged.
 */
export async function importResults(path: string, entry?: number): Promise<Imported> {
  const where = oneLine(path, 200);
  const head = headOf(path, where);
  summaryOnly(head, where);
  if (/^(---\s*\n)?(#.*\n)*(args|benchmarks|metadata|type_):/.test(head)) {
    return one(await wholeYaml(path, where), where, entry);
  }
  const end = head.indexOf('\n');
  const first = tryParse(end < 0 ? head : head.slice(0, end));
  if (isObject(first) && 'metadata' in first && 'metrics' in first && !('benchmarks' in first)) {
    return importAiperf(() => linesOf(path, where), where);
  }
  // A run a line, or one long line; else one value over many lines. Of many runs the one asked for is held.
  if (isObject(first) || end < 0) {
    let kept: Run | undefined;
    let count = 0;
    for await (const run of linesOf(path, where)) {
      count++;
      if (count === 1) checkKind(run.value, where);
      if (count === (entry ?? 1)) kept = run;
    }
    if (count !== 1) pick(count, where, entry);
    if (kept && count > 1) return single(kept.value, where, `${where} line ${kept.line}`);
    return one(kept?.value, where, entry);
  }
  return one(wholeFile(path, where), where, entry);
}

interface Run {
  readonly value: unknown;
  readonly line: number;
}

/** What is no result at all is refused at its first line. */
function checkKind(value: unknown, where: string): void {
  if (Array.isArray(value) ? value.some(isObject) : isObject(value) && Object.keys(value).some((key) => KEYS.has(key)))
    return;
  if (isObject(value)) for (const [is, advice] of SUMMARIES) if (is(value)) throw new InputError(`${where}: ${advice}`);
  throw unknown(where);
}
const KEYS: ReadonlySet<string> = new Set([
  'benchmarks',
  'experiments',
  'ttfts',
  'mean_ttft_ms',
  'request_throughput',
  'mean_e2e_latency_ms',
  'total_output_tokens_retokenized',
]);

function one(value: unknown, where: string, entry: number | undefined): Imported {
  if (Array.isArray(value)) return listed(value, where, entry);
  if (isObject(value) && Array.isArray(value.benchmarks)) {
    const { benchmarks } = value;
    const i = pick(benchmarks.length, where, entry);
    return importGuidellm(benchmarks[i], `${where}: benchmarks[${i}]`);
  }
  if (isObject(value) && Array.isArray(value.experiments)) {
    const { experiments } = value;
    const i = pick(experiments.length, where, entry);
    return importGenaiPerf(experiments[i], `${where}: experiments[${i}]`);
  }
  pick(1, where, entry);
  return single(value, where, where);
}

/** A list of requests, or of runs. */
function listed(list: readonly unknown[], where: string, entry: number | undefined): Imported {
  const [first] = list;
  if (isObject(first) && 'start_time' in first && ('info' in first || 'error' in first))
    return importInferencePerf(list, where);
  if (isObject(first) && ('end_to_end_latency_s' in first || 'ttft_s' in first)) return importLlmperf(list, where);
  if (list.length > 0 && !list.some(isObject)) throw unknown(where);
  const i = pick(list.length, where, entry);
  return single(list[i], where, `${where}: [${i}]`);
}

function single(value: unknown, where: string, at: string): Imported {
  if (!isObject(value)) throw unknown(where);
  for (const [is, advice] of SUMMARIES) if (is(value)) throw new InputError(`${where}: ${advice}`);
  if ('total_output_tokens_retokenized' in value || 'mean_e2e_latency_ms' in value) return importSglang(value, at);
  if ('ttfts' in value || 'mean_ttft_ms' in value || 'request_throughput' in value) return importVllm(value, at);
  throw unknown(where);
}

/** Files of known tools that hold no requests, and what to give instead. */
const SUMMARIES: readonly (readonly [(value: Json) => boolean, string])[] = [
  [
    (v) => isObject(v.request_latency),
    "is AIPerf's (or genai-perf's) summary, which holds no requests; give profile_export.jsonl (genai-perf: profile_export.json), which stands beside it",
  ],
  [
    (v) => isObject(v.load_summary) || (isObject(v.successes) && isObject(v.failures)),
    "is inference-perf's summary, which holds no requests; run it with report.request_lifecycle.per_request and give per_request_lifecycle_metrics.json",
  ],
  [
    (v) => Object.keys(v).some((key) => /^results_(ttft_s|end_to_end_latency_s)/.test(key)) || 'results' in v,
    "is llmperf's summary, which holds no requests; give the …_individual_responses.json beside it",
  ],
  [
    (v) => Array.isArray(v.traceEvents),
    "is MLPerf's trace of events, which has no token times; its log tells summaries alone",
  ],
];

/** Summaries that are no JSON. @throws InputError */
function summaryOnly(head: string, where: string): void {
  const first = head.slice(0, head.indexOf('\n') < 0 ? head.length : head.indexOf('\n'));
  const say = (what: string): never => {
    throw new InputError(`${where}: is ${what}`);
  };
  if (head.startsWith(':::MLLOG') || /^=+\s*\nMLPerf Results Summary/.test(head)) {
    say("MLPerf's log, which holds summaries and no requests; figures of requests cannot be made from it");
  }
  if (/^"?Metric"?,/.test(first)) {
    say("AIPerf's summary as CSV, which holds no requests; give profile_export.jsonl, which stands beside it");
  }
  if (/^"?(Run Info|Type|Benchmark)\b.*,/.test(first) && /guidellm|Successful|Strategy|Requests/i.test(head)) {
    say("GuideLLM's CSV, which holds a line a benchmark and no requests; give its JSON or YAML output");
  }
}

function pick(count: number, where: string, entry: number | undefined): number {
  if (count === 0) throw new InputError(`${where}: holds no run; is the file whole?`);
  if (entry === undefined) {
    if (count > 1) throw new InputError(`${where}: holds ${count} runs; say which with --entry 1 to ${count}`);
    return 0;
  }
  if (entry > count) throw new InputError(`--entry ${entry}: ${where} holds ${count} ${count === 1 ? 'run' : 'runs'}`);
  return entry - 1;
}

function unknown(where: string): InputError {
  return new InputError(`${where}: is no result file known here; known are ${KNOWN}`);
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
