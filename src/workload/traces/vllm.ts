/**
 * Result files of `vllm bench serve` and of tools that kept its format: columns `start_times` (seconds of one monotonic
 * clock), `input_lens`, `output_lens`. Only saved in detail (`--save-result --save-detailed`) do they tell each request.
 */
import { InputError } from '../../base/errors.ts';
import { readJson } from '../json-stream.ts';
import type { Chunks } from '../lines.ts';
import { type Trace, TraceBuilder, type TraceOptions } from './trace.ts';

const COLUMNS = ['start_times', 'input_lens', 'output_lens'] as const;

export async function readVllm(chunks: Chunks, what: string, options?: TraceOptions): Promise<Trace> {
  const columns: Record<string, number[]> = {};
  const lines: number[] = [];
  await readJson(
    chunks,
    what,
    {
      opened(path, kind) {
        if (kind === '[' && path.length === 1) columns[path[0] as string] ??= [];
      },
      scalar(path, value, line) {
        if (path.length !== 2 || typeof path[1] !== 'number') return;
        const name = path[0] as (typeof COLUMNS)[number];
        if (!COLUMNS.includes(name)) return;
        if (typeof value !== 'number') throw new InputError(`${what}:${line}: ${name}[${path[1]}] is not a number`);
        (columns[name] as number[])[path[1]] = value;
        if (name === 'input_lens') lines[path[1]] = line;
      },
    },
    64, // generated texts are passed over
  );
  const [starts, inputs, outputs] = COLUMNS.map((name) => columns[name]);
  if (!inputs || !outputs) {
    throw new InputError(`${what}: no 'input_lens' and 'output_lens'; save the result with --save-detailed`);
  }
  if (!starts) {
    throw new InputError(
      `${what}: no 'start_times': it does not say when requests were sent; its lengths alone can be used as a workload's input and output`,
    );
  }
  if (inputs.length !== starts.length || outputs.length !== starts.length) {
    throw new InputError(
      `${what}: ${starts.length} start_times, ${inputs.length} input_lens, ${outputs.length} output_lens; they must be as many`,
    );
  }
  const trace = new TraceBuilder(what, 'vllm', options, false);
  const origin = starts.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
  starts.forEach((start, i) => {
    // Failed requests have neither length; they arrived all the same.
    trace.add(
      Math.round((start - origin) * 1e6),
      Math.max(1, inputs[i] as number),
      outputs[i] as number,
      `${what}:${lines[i] ?? 1}`,
    );
  });
  return trace.finish();
}
