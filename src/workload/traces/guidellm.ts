/**
 * GuideLLM's benchmarks.json: each benchmark's requests, by how they ended. A request's arrival is when it was targeted
 * (`targeted_start`), where the file says so, else when it was sent. Of several benchmarks the first is taken.
 */
import { InputError } from '../../base/errors.ts';
import { readJson } from '../json-stream.ts';
import type { Chunks } from '../lines.ts';
import { type Trace, TraceBuilder, type TraceOptions } from './trace.ts';

interface Found {
  targeted?: number;
  started?: number;
  input?: number;
  output?: number;
  line: number;
}

const STARTS: ReadonlySet<string> = new Set(['request_start', 'request_start_time', 'resolve_start', 'start_time']);
const GROUPS: ReadonlySet<string> = new Set(['successful', 'incomplete', 'errored']);

export async function readGuideLlm(chunks: Chunks, what: string, options?: TraceOptions): Promise<Trace> {
  const found: Found[] = [];
  let open: Found | undefined;
  let benchmarks = 0;
  let untimed = 0;
  // benchmarks[b].requests.GROUP[i]
  const isRequest = (path: readonly (string | number)[]): boolean =>
    path.length === 5 &&
    path[0] === 'benchmarks' &&
    path[2] === 'requests' &&
    GROUPS.has(path[3] as string) &&
    typeof path[4] === 'number';
  await readJson(
    chunks,
    what,
    {
      opened(path, kind, line) {
        if (path.length === 2 && path[0] === 'benchmarks') benchmarks = Math.max(benchmarks, (path[1] as number) + 1);
        if (kind === '{' && path[1] === 0 && isRequest(path)) open = { line };
      },
      scalar(path, value) {
        if (!open || path.length < 6 || typeof value !== 'number') return;
        const key = path.at(-1) as string;
        // Until 0.2 −1 says that none was set.
        if ((key === 'targeted_start' || key === 'targeted_start_time') && value > 0) open.targeted = value;
        else if (STARTS.has(key)) open.started ??= value;
        else if (path.length === 6 && key === 'prompt_tokens') open.input = value;
        else if (path.length === 6 && key === 'output_tokens') open.output = value;
        else if (key === 'total_tokens' || key === 'text_tokens') {
          if (path[5] === 'input_metrics') open.input ??= value;
          if (path[5] === 'output_metrics') open.output ??= value;
        }
      },
      closed(path, kind) {
        if (kind !== '{' || !open || !isRequest(path)) return;
        if ((open.targeted ?? open.started) === undefined || open.input === undefined) untimed++;
        else found.push(open);
        open = undefined;
      },
    },
    64,
  );
  if (found.length === 0) {
    throw new InputError(
      benchmarks === 0
        ? `${what}: no 'benchmarks'; give GuideLLM's JSON output`
        : `${what}: no request of the first benchmark tells its start and prompt tokens; nothing to replay`,
    );
  }
  const trace = new TraceBuilder(what, 'guidellm', options, false);
  const startOf = (f: Found): number => (f.targeted ?? f.started) as number;
  const origin = found.reduce((least, f) => Math.min(least, startOf(f)), Number.POSITIVE_INFINITY);
  for (const f of found) {
    trace.add(
      Math.round((startOf(f) - origin) * 1e6),
      Math.max(1, f.input as number),
      f.output ?? 0,
      `${what}:${f.line}`,
    );
  }
  if (benchmarks > 1) trace.notes.push(`the first of ${benchmarks} benchmarks in the file is replayed`);
  if (untimed > 0) trace.notes.push(`${untimed} requests without a start or a prompt length are left out`);
  return trace.finish();
}
