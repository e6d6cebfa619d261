/** The shapes of other tools and of their versions, made here after what their sources write. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { contractOf } from '../../core/contract.ts';
import { judgeRecord } from '../../core/judge.ts';
import { importAll } from './testing.ts';

const dir = mkdtempSync(join(tmpdir(), 'goodput-others-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));
let made = 0;
function file(content: unknown, ext = 'json'): string {
  const path = join(dir, `${made++}.${ext}`);
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}
const contract = contractOf({ ttft: 100, tpot: 50 });
const metricsOf = async (path: string) =>
  (await importAll(path)).records.map((r) => {
    const { metrics, verdict } = judgeRecord(r, contract);
    return { ttft: metrics.ttft, tpot: metrics.tpot, e2e: metrics.e2e, n: metrics.n, class: verdict.class };
  });

describe('GuideLLM', () => {
  // Until 0.2: times in the request itself.
  const flat = (i: number) => ({
    type_: 'generative_text_response',
    request_id: `r${i}`,
    scheduler_info: {
      requested: true,
      targeted_start_time: 100 + i,
      queued_time: 100,
      worker_start: 100 + i,
      process_id: 0,
    },
    prompt_tokens: 10,
    output_tokens: 5,
    start_time: 100.002 + i,
    first_token_time: 100.052 + i,
    last_token_time: 100.132 + i,
    end_time: 100.14 + i,
    request_latency: 0.138,
    time_to_first_token_ms: 50,
  });
  const old = {
    benchmarks: [
      {
        type_: 'generative_benchmark',
        args: { strategy: { type_: 'constant', rate: 2.5 } },
        sampled_size: { successful: 2 },
        requests: {
          successful: [flat(0), flat(1)],
          incomplete: [{ ...flat(2), first_token_time: null, last_token_time: null, error: 'cancelled' }],
          errored: [
            {
              ...flat(3),
              output_tokens: null,
              first_token_time: null,
              last_token_time: null,
              error: '429 Too Many Requests',
            },
          ],
        },
      },
    ],
  };
  it('0.2, JSON and YAML alike', async () => {
    const json = await importAll(file(old));
    expect(await importAll(file(stringify(old), 'yaml'))).toEqual(json);
    expect(json).toMatchObject({ tool: 'guidellm', rate: 2.5, endsOnly: true });
    expect(json.cannotTell.join()).toMatch(/clock starts at its targeted start.*are a sample/);
    const read = await metricsOf(file(old));
    expect(read[0]).toMatchObject({ n: 5, class: 'good' });
    expect(read[0]!.ttft).toBeCloseTo(52, 3);
    expect(read[0]!.tpot).toBeCloseTo(20, 3);
    expect(read.map((r) => r.class)).toEqual(['good', 'good', 'undecided', 'rejected']);
  });
  it('0.3: scheduler_info.request_timings', async () => {
    const request = {
      scheduler_info: {
        status: 'completed',
        request_timings: {
          request_start: 5,
          first_iteration: 5.05,
          last_iteration: 5.13,
          iterations: 5,
          request_end: 5.14,
        },
      },
      prompt_tokens: 10,
      output_tokens: 5,
    };
    const [read] = await metricsOf(
      file({ benchmarks: [{ requests: { successful: [request], incomplete: [], errored: [] } }] }),
    );
    expect(read!.tpot).toBeCloseTo(20, 3);
  });
});

it('SGLang writes an unlimited rate as Infinity', async () => {
  const line =
    '{"backend": "sglang", "request_rate": Infinity, "max_concurrency": null, "completed": 1, "total_output_tokens_retokenized": 3, "mean_e2e_latency_ms": 90.0, "accept_length": NaN, "input_lens": [9], "output_lens": [3], "ttfts": [0.05], "itls": [[0.02, 0.02]], "generated_texts": ["say NaN \\"Infinity\\""], "errors": [""]}';
  for (const text of [line, `${line}\n${line}`]) {
    const found = await importAll(file(text, 'jsonl'), 1);
    expect(found.rate).toBeUndefined();
    expect(found.records).toHaveLength(1);
    expect(found.cannotTell.join()).toMatch(/spread evenly/);
  }
});

describe('AIPerf', () => {
  const line = (i: number, more: object = {}, metadata: object = {}) =>
    JSON.stringify({
      metadata: {
        x_correlation_id: `s${i % 2}`,
        turn_index: i >> 1,
        request_start_ns: 1_790_000_000_000_000_000 - i * 1e9,
        request_end_ns: 1_790_000_000_100_000_000 - i * 1e9,
        benchmark_phase: 'profiling',
        was_cancelled: false,
        ...metadata,
      },
      metrics: {
        request_latency: { value: 100, unit: 'ms' },
        output_sequence_length: { value: 3, unit: 'tokens' },
        ...more,
      },
      error: null,
    });
  const streamed = {
    time_to_first_token: { value: 0.06, unit: 's' },
    inter_chunk_latency: { value: [20, 20], unit: 'ms' },
  };
  it('numbers requests by their start, with the turns of sessions', async () => {
    const { records } = await importAll(file([0, 1, 2, 3].map((i) => line(i, streamed)).join('\n'), 'jsonl'));
    expect(records.map((r) => [r.operation, r.session, r.turn])).toEqual([
      [0, 1, 1],
      [1, 0, 1],
      [2, 1, 0],
      [3, 0, 0],
    ]);
    expect(records.map((r) => r.stamps.dispatched)).toEqual([0, 1000, 2000, 3000]);
    expect(records[0]!.stamps.firstOutput).toBeCloseTo(60, 3);
  });
  it('what was not streamed has its end alone', async () => {
    const found = await importAll(file(line(0), 'jsonl'));
    expect(found.records[0]).toMatchObject({ streamed: false, outcome: 'completed' });
    expect(found.cannotTell.join()).toMatch(/1 requests were not streamed/);
    const [read] = await metricsOf(file(line(0), 'jsonl'));
    expect(read).toMatchObject({ e2e: 100, class: 'late' });
    expect(read!.ttft).toBeUndefined();
  });
});

describe('genai-perf', () => {
  const sse = (...values: unknown[]) => ({
    response: values.map((v) => `data: ${typeof v === 'string' ? v : JSON.stringify(v)}\n\n`).join(''),
  });
  const delta = (d: object) => ({ choices: [{ delta: d }] });
  const profile = (requests: unknown[]) => ({
    version: '1.2.0',
    service_kind: 'openai',
    endpoint: 'v1/chat/completions',
    experiments: [{ experiment: { mode: 'concurrency', value: 4 }, requests, window_boundaries: [] }],
  });
  it('takes role, usage and [DONE] for what they are', async () => {
    const at = 1_729_000_000_000_000_000;
    const path = file(
      profile([
        {
          timestamp: at,
          request_inputs: { payload: '{}' },
          response_timestamps: [5e6, 50e6, 70e6, 90e6, 91e6].map((t) => at + t),
          response_outputs: [
            sse(delta({ role: 'assistant', content: '' })),
            sse(delta({ content: 'a' })),
            sse(delta({ content: 'b' }), delta({ content: 'c' })),
            sse(delta({ reasoning_content: 'd' })),
            sse({ choices: [], usage: { completion_tokens: 4 } }, '[DONE]'),
          ],
        },
        {
          timestamp: at + 1e9,
          response_timestamps: [at + 1.1e9],
          response_outputs: [{ response: '{"error":{"message":"overloaded"}}' }],
        },
        {
          timestamp: at + 2e9,
          response_timestamps: [at + 2.1e9],
          response_outputs: [
            { response: '{"choices":[{"message":{"content":"whole"}}],"usage":{"completion_tokens":2}}' },
          ],
        },
        {
          timestamp: at + 3e9,
          response_timestamps: [at + 3.05e9, at + 3.07e9],
          response_outputs: [{ text_output: 'I' }, { text_output: ' like' }],
        },
      ]),
    );
    const found = await importAll(path);
    expect(found).toMatchObject({ tool: 'genai-perf', concurrency: 4, count: 4 });
    const [read] = await metricsOf(path);
    expect(read).toMatchObject({ n: 4, class: 'good' });
    expect(read!.ttft).toBeCloseTo(50, 2);
    expect(read!.tpot).toBeCloseTo(40 / 3, 2);
    expect(found.records[0]!.timeline.length).toBe(3);
    expect(found.records.map((r) => [r.outcome, r.streamed])).toEqual([
      ['completed', true],
      ['failed', true],
      ['completed', false],
      ['completed', true],
    ]);
    expect(found.records[1]!.detail).toMatch(/overloaded/);
  });
  it.each([
    [profile([]), /holds no requests/],
    [profile([{ timestamp: 'x' }]), /requests\[0\]: 'timestamp' is "x"/],
    [
      profile([{ timestamp: 1, response_timestamps: [2, 3], response_outputs: [{}] }]),
      /'response_outputs'.*a list of 2/,
    ],
  ])('says what is wrong (%#)', async (content, message) => {
    await expect(importAll(file(content))).rejects.toThrow(message);
  });
});

describe('inference-perf', () => {
  it('older and newer, failures and whole answers', async () => {
    const older = {
      start_time: 10,
      end_time: 10.2,
      request: '',
      response: '',
      info: { input_tokens: 7, output_tokens: 4, output_token_times: [10.05, 10.07, 10.07, 10.11] },
      error: null,
    };
    const newer = {
      start_time: 9,
      end_time: 9.2,
      info: {
        request_metrics: { text: { input_tokens: 7 } },
        response_metrics: {
          output_tokens: 5,
          output_token_times: [9.05, 9.11],
          server_usage: { completion_tokens: 4 },
        },
      },
      error: null,
    };
    const failed = {
      start_time: 11,
      end_time: 11.01,
      info: { input_tokens: 7 },
      error: { error_type: 'HTTP Error 503', error_msg: 'busy' },
    };
    const whole = {
      start_time: 12,
      end_time: 12.5,
      info: { input_tokens: 7, output_tokens: 4, output_token_times: [] },
      error: null,
    };
    const path = file([older, newer, failed, whole]);
    const found = await importAll(path);
    expect(found.tool).toBe('inference-perf');
    expect(found.records.map((r) => r.stamps.dispatched)).toEqual([0, 1000, 2000, 3000]);
    expect(found.records.map((r) => [r.outcome, r.timeline.length, r.streamed])).toEqual([
      ['completed', 2, true],
      ['completed', 3, true],
      ['rejected', 0, true],
      ['completed', 1, false],
    ]);
    const read = await metricsOf(path);
    for (const r of read.slice(0, 2)) {
      expect(r.ttft).toBeCloseTo(50, 3);
      expect(r.tpot).toBeCloseTo(20, 3);
    }
    expect(found.cannotTell.join()).toMatch(
      /tokens of 3 requests were counted by a tokenizer.*in 1 requests tokens of one chunk/,
    );
  });
});

it('llmperf: durations alone', async () => {
  const good = {
    error_code: null,
    error_msg: '',
    inter_token_latency_s: 0.026,
    ttft_s: 0.05,
    end_to_end_latency_s: 0.13,
    number_input_tokens: 9,
    number_output_tokens: 5,
    number_total_tokens: 14,
    request_output_throughput_token_per_s: 38,
  };
  const bad = {
    ...good,
    error_code: 429,
    error_msg: 'Too many',
    ttft_s: 0,
    end_to_end_latency_s: 0,
    number_output_tokens: 0,
  };
  const path = file(JSON.stringify([good, bad], null, 4));
  const found = await importAll(path);
  expect(found).toMatchObject({ tool: 'llmperf', endsOnly: true, count: 2 });
  expect(found.cannotTell.join()).toMatch(/start times are not in the file/);
  const read = await metricsOf(path);
  expect(read[0]!.tpot).toBeCloseTo(20, 3);
  expect(read[1]!.class).toBe('rejected');
});

describe('files that hold no requests say what to give instead', () => {
  it.each([
    [
      'AIPerf',
      { request_latency: { unit: 'ms', avg: 5 }, input_config: {} },
      'json',
      /AIPerf's.*profile_export\.jsonl/,
    ],
    ['AIPerf CSV', 'Metric,avg,min,max\nTime to First Token (ms),1,2,3\n', 'csv', /AIPerf's summary as CSV/],
    ['GuideLLM CSV', 'Type,Run Id,Id,Name\n,,,Successful\nStrategy,a,b,c\n', 'csv', /GuideLLM's CSV.*JSON or YAML/],
    ['GuideLLM CSV later', 'Run Info,Run Info,Benchmark\nModel,Backend,Strategy\na,b,c\n', 'csv', /GuideLLM's CSV/],
    [
      'inference-perf',
      { load_summary: {}, successes: {}, failures: {} },
      'json',
      /inference-perf's summary.*per_request/,
    ],
    ['llmperf', { name: 'x', results_ttft_s_mean: 1 }, 'json', /llmperf's summary.*individual_responses/],
    ['MLPerf', ':::MLLOG {"key": "loadgen_version"}\n', 'txt', /MLPerf's log/],
    ['MLPerf summary', '================\nMLPerf Results Summary\n', 'txt', /MLPerf's log/],
    [
      'vLLM',
      { duration: 1, completed: 5, mean_ttft_ms: 5, request_throughput: 5 },
      'json',
      /only summaries.*--save-detailed/,
    ],
  ] as const)('%s', async (_name, content, ext, message) => {
    const error = await importAll(file(content, ext)).catch((e: Error) => e);
    expect((error as Error).message).toMatch(message);
    expect((error as Error).message).not.toContain('\n');
  });
});
