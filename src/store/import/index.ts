/** Result files of other tools, told apart by their keys, and read into records. docs/other-tools.md is the reference. */
import { closeSync, createReadStream, openSync, readFileSync, readSync, statSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { InputError, messageOf, oneLine } from '../../base/errors.ts';
import { importAiperf } from './aiperf.ts';
import { importGuidellm } from './guidellm.ts';
import type { Imported } from './imported.ts';
import { importSglang } from './sglang.ts';
import { importVllm } from './vllm.ts';

export type { Imported } from './imported.ts';

/** A JSON text must fit one string of the JavaScript engine. */
const LARGEST = 500 * 2 ** 20;
const KNOWN = 'vllm bench (JSON), guidellm (JSON), aiperf (profile_export.jsonl), sglang bench_serving (JSONL)';

/**
 * @param entry which run of a file that holds several, from 1.
 * @throws InputError naming the file and the line or key that is unknown or damaged.
 */
export async function importResults(path: string, entry?: number): Promise<Imported> {
  const where = oneLine(path, 200);
  const head = headOf(path, where);
  const end = head.indexOf('\n');
  const first = tryParse(end < 0 ? head : head.slice(0, end));
  if (isObject(first) && 'metadata' in first && 'metrics' in first) return importAiperf(linesOf(path, where), where);
  // A run a line, or one long line; else one value over many lines.
  if (isObject(first) || end < 0) {
    const runs: { value: unknown; line: number }[] = [];
    for await (const run of linesOf(path, where)) runs.push(run);
    return one(runs, where, entry);
  }
  return one([{ value: wholeFile(path, where), line: 1 }], where, entry);
}

function one(runs: readonly { value: unknown; line: number }[], where: string, entry: number | undefined): Imported {
  const only = runs.length === 1 ? runs[0]!.value : undefined;
  if (isObject(only) && Array.isArray(only.benchmarks)) {
    const { benchmarks } = only;
    const i = pick(benchmarks.length, where, entry);
    return importGuidellm(benchmarks[i], `${where}: benchmarks[${i}]`);
  }
  const i = pick(runs.length, where, entry);
  const { value, line } = runs[i] as (typeof runs)[number];
  const at = runs.length > 1 ? `${where} line ${line}` : where;
  if (!isObject(value)) throw unknown(where);
  if ('request_latency' in value && isObject(value.request_latency)) {
    throw new InputError(
      `${where}: is AIPerf's summary, which holds no requests; give profile_export.jsonl, which stands beside it`,
    );
  }
  if ('total_output_tokens_retokenized' in value || 'mean_e2e_latency_ms' in value) return importSglang(value, at);
  if ('ttfts' in value || 'mean_ttft_ms' in value || 'request_throughput' in value) return importVllm(value, at);
  throw unknown(where);
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

function headOf(path: string, where: string): string {
  try {
    const size = statSync(path).size;
    if (size === 0) throw new InputError(`${where}: is empty`);
    const file = openSync(path, 'r');
    try {
      const buffer = Buffer.alloc(Math.min(size, 256 * 1024));
      return buffer.toString('utf8', 0, readSync(file, buffer, 0, buffer.length, 0));
    } finally {
      closeSync(file);
    }
  } catch (error) {
    if (error instanceof InputError) throw error;
    throw new InputError(`${where}: cannot be read (${messageOf(error)})`, { cause: error });
  }
}

function wholeFile(path: string, where: string): unknown {
  const { size } = statSync(path);
  if (size > LARGEST) {
    throw new InputError(
      `${where}: is ${Math.round(size / 2 ** 20)} MB of one JSON value, more than can be read; keep fewer runs in a file`,
    );
  }
  return parsed(readFileSync(path, 'utf8'), where);
}

function parsed(text: string, where: string, line?: number): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const position = Number(/position (\d+)/.exec(messageOf(error))?.[1] ?? text.length);
    const at = line ?? text.slice(0, position).split('\n').length;
    throw new InputError(`${where} line ${at}: is not JSON (${oneLine(messageOf(error), 120)}); is the file whole?`, {
      cause: error,
    });
  }
}

async function* linesOf(path: string, where: string): AsyncGenerator<{ value: unknown; line: number }> {
  const lines = createInterface({ input: createReadStream(path, 'utf8'), crlfDelay: Number.POSITIVE_INFINITY });
  let line = 0;
  for await (const text of lines) {
    line++;
    if (text.trim() !== '') yield { value: parsed(text, where, line), line };
  }
}

function tryParse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
