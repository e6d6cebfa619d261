/** Kinds of metrics beyond the samples: what is added, what is kept apart, what is refused. */
import { describe, expect, it } from 'vitest';
import { renderMerge } from './render.ts';
import { merged } from './testing.ts';

const histogram = (name: string, counts: Record<string, number>, sum?: number, labels = ''): string => {
  const inner = labels === '' ? '' : `${labels},`;
  const outer = labels === '' ? '' : `{${labels}}`;
  const last = Object.values(counts).at(-1)!;
  return [
    ...Object.entries(counts).map(([le, n]) => `${name}_bucket{${inner}le="${le}"} ${n}`),
    `${name}_count${outer} ${last}`,
    ...(sum === undefined ? [] : [`${name}_sum${outer} ${sum}`]),
    '',
  ].join('\n');
};
const TTFT = 'vllm:time_to_first_token_seconds';
const TPOT = 'vllm:request_time_per_output_token_seconds';

describe('replicas', () => {
  it('of different buckets are told at the bounds all share, naming both', () => {
    const d = merged({
      a: histogram(TTFT, { '0.1': 1, '0.5': 2, '1': 3, '+Inf': 4 }, 4),
      b: histogram(TTFT, { '0.2': 1, '0.5': 5, '1': 6, '+Inf': 6 }, 3),
    });
    expect(d.ttft?.buckets).toEqual([
      { le: 0.5, count: 7 },
      { le: 1, count: 9 },
      { le: null, count: 10 },
    ]);
    expect(d.ttft?.mean).toBe(0.7);
    expect(d.ttft?.notes.join()).toMatch(/a and b have different buckets.*2 bounds/);
  });

  it('without a common bound have no quantiles, but a count and a mean', () => {
    const d = merged({
      a: histogram(TTFT, { '0.1': 1, '+Inf': 2 }, 1),
      b: histogram(TTFT, { '0.2': 1, '+Inf': 2 }, 1),
    });
    expect(d.ttft).toMatchObject({ count: 4, mean: 0.5 });
    expect(d.ttft).not.toHaveProperty('quantiles');
    expect(d.errors.join()).toMatch(/ttft: .*a and b/);
  });

  it('one of which has no buckets have no quantiles', () => {
    const d = merged({ a: histogram(TTFT, { '1': 1, '+Inf': 2 }, 1), b: `${TTFT}_count 5\n${TTFT}_sum 9\n` });
    expect(d.ttft).toMatchObject({ count: 7, sum: 10 });
    expect(d.ttft?.notes.join()).toMatch(/no quantiles: b tell no buckets/);
  });

  it('of several engines in one text are kept apart where they mean different things', () => {
    const itl = { '0.05': 10, '+Inf': 10 };
    const d = merged({
      a:
        histogram('vllm:inter_token_latency_seconds', itl, 0.4) +
        histogram('sglang:inter_token_latency_seconds', itl, 0.2) +
        histogram(TTFT, { '1': 1, '+Inf': 1 }, 0.5) +
        histogram('sglang:time_to_first_token_seconds', { '1': 3, '+Inf': 3 }, 0.5),
    });
    expect(d.itl).not.toHaveProperty('count');
    expect(d.itl?.apart?.map((p) => [p.meaning.engine, p.count])).toEqual([
      ['vLLM', 10],
      ['SGLang', 10],
    ]);
    expect(d.itl?.notes[0]).toMatch(/mean different things by itl: they are not added/);
    expect(d.ttft).toMatchObject({ count: 4, mean: 0.25 });
    expect(d.ttft?.notes.join()).toMatch(/clocks of vLLM \| SGLang start at different moments/);
    expect(renderMerge(d, 100)).toMatch(/itl \(vLLM\).*\n.*itl \(SGLang\)/);
  });

  it('of several models, ranks and LoRAs: replicas apart, ranks of one engine once, other labels added', () => {
    const d = merged({
      a: [
        'vllm:num_requests_running{model_name="a"} 1',
        'vllm:num_requests_running{model_name="b"} 2',
        'sglang:num_running_reqs{tp_rank="0",pp_rank="0"} 5',
        'sglang:num_running_reqs{tp_rank="1",pp_rank="0"} 5',
        'vllm:generation_tokens_total{model_name="a",lora="x"} 3',
        'vllm:generation_tokens_total{model_name="a",lora="y"} 4',
        '',
      ].join('\n'),
    });
    expect(d.gauges.running?.by).toEqual({ 'a model=a': 1, 'a model=b': 2, a: 5 });
    expect(d.generation_tokens?.count).toBe(7);
  });

  it('that a router stands before are not counted twice', () => {
    const d = merged({
      engine: histogram(TTFT, { '1': 5, '+Inf': 5 }, 1),
      frontend: histogram('dynamo_frontend_time_to_first_token_seconds', { '1': 5, '+Inf': 5 }, 2),
    });
    expect(d.ttft).toMatchObject({ count: 5, sum: 1, replicas: 1 });
    expect(d.ttft?.notes.join()).toMatch(/Dynamo frontend \(frontend\) tells ttft too \(count 5\).*not added/);
  });

  it('one of which suffers are named', () => {
    const quick = histogram(TTFT, { '0.1': 90, '1': 100, '+Inf': 100 }, 9);
    const d = merged({ a: quick, b: quick, c: histogram(TTFT, { '0.1': 0, '1': 0, '5': 100, '+Inf': 100 }, 300) });
    expect(d.notes[0]).toMatch(/replicas differ in ttft: p50 is 1–5 s at c/);
    expect(renderMerge(d, 100)).toMatch(/Replicas\n[\s\S]*\n {2}c +vLLM/);
  });
});

describe('numbers that are none', () => {
  it.each([
    ['NaN count', `${TTFT}_count NaN\n${TTFT}_sum 1\n`],
    ['infinite counter', 'vllm:generation_tokens_total +Inf\n'],
    ['negative counter', 'vllm:generation_tokens_total -3\n'],
    ['NaN sum', histogram(TTFT, { '1': 1, '+Inf': 1 }).concat(`${TTFT}_sum NaN\n`)],
    ['a share above 1', 'vllm:kv_cache_usage_perc 62\n'],
  ])('%s: told with its line, and no number', (_, text) => {
    const d = merged({ a: `${text}vllm:num_requests_running 1\n` });
    expect(d.errors.join()).toMatch(/^a:\d+: /);
    expect(Object.keys(d.gauges)).toEqual(['running']);
    for (const concept of ['ttft', 'generation_tokens'] as const) expect(d[concept]).toBeUndefined();
  });

  it('a gauge of NaN or −1 is not known, and no error', () => {
    const d = merged({
      a: 'vllm:num_requests_waiting NaN\nvllm:num_requests_running -1\nvllm:kv_cache_usage_perc 0.5\n',
    });
    expect(Object.keys(d.gauges)).toEqual(['kv_usage']);
    expect(d.errors).toEqual([]);
  });

  it('a malformed family leaves the others', () => {
    const bad =
      'vllm:e2e_request_latency_seconds_bucket{le="1"} 5\nvllm:e2e_request_latency_seconds_bucket{le="+Inf"} 4\n';
    const d = merged({ a: bad + histogram(TTFT, { '1': 1, '+Inf': 1 }, 0.5) });
    expect(d).not.toHaveProperty('e2e');
    expect(d.ttft?.mean).toBe(0.5);
    expect(d.errors).toEqual([expect.stringMatching(/^a:2: the buckets of vllm:e2e_request_latency_seconds decrease/)]);
  });

  it('bodies that are no metrics are told', () => {
    for (const [body, message] of [
      ['<html>', /HTML/],
      ['{"a":1}', /JSON/],
      ['', /no metric/],
    ] as const) {
      const d = merged({ a: body });
      expect(d.errors.join()).toMatch(message);
      expect(d.replicas).toEqual([]);
    }
  });
});

describe('other forms', () => {
  it('summaries give count and mean; their quantiles are not merged', () => {
    const d = merged({
      a: '# TYPE nv_inference_queue_summary_us summary\nnv_inference_queue_summary_us{model="m",version="1",quantile="0.99"} 900\nnv_inference_queue_summary_us_count{model="m",version="1"} 4\nnv_inference_queue_summary_us_sum{model="m",version="1"} 2000\n',
    });
    expect(d.queue).toMatchObject({ count: 4, sum: expect.closeTo(0.002, 12), meaning: { unit: 'seconds' } });
    expect(d.queue).not.toHaveProperty('quantiles');
  });

  it("Triton's microsecond counters are a duration's count and sum", () => {
    const d = merged({
      a: '# TYPE nv_inference_request_success counter\nnv_inference_request_success{model="m",version="1"} 10\n# TYPE nv_inference_queue_duration_us counter\nnv_inference_queue_duration_us{model="m",version="1"} 5000\n# TYPE nv_gpu_utilization gauge\nnv_gpu_utilization{gpu_uuid="G"} 0.9\n',
    });
    expect(d.queue?.count).toBe(10);
    expect(d.queue?.mean).toBeCloseTo(0.0005, 12);
    expect(d.gauges.gpu_utilisation).toMatchObject({ mean: 0.9, meaning: { unit: 'share' } });
  });

  it('DCGM: shares, bytes, watts; by GPU', () => {
    const gpu = (name: string, a: number, b: number): string =>
      `# TYPE DCGM_FI_${name} gauge\nDCGM_FI_${name}{gpu="0",UUID="A",modelName="NVIDIA H100"} ${a}\nDCGM_FI_${name}{gpu="1",UUID="B",modelName="NVIDIA H100"} ${b}\n`;
    const d = merged({
      node:
        gpu('DEV_GPU_UTIL', 50, 100) +
        gpu('DEV_FB_USED', 1, 3) +
        gpu('DEV_POWER_USAGE', 300, 400) +
        gpu('DEV_SM_CLOCK', 1000, 1980),
    });
    expect(d.gauges).toMatchObject({
      gpu_utilisation: { mean: 0.75, max: 1 },
      gpu_memory: { sum: 4 * 1024 * 1024 },
      gpu_power: { sum: 700 },
      gpu_clock: { min: 1000, max: 1980 },
    });
    expect(d.gauges.gpu_power?.by).toEqual({ 'node UUID=A gpu=0': 300, 'node UUID=B gpu=1': 400 });
    expect(d.replicas[0]?.role).toBe('gpu');
  });

  it('native histograms have quantiles; in text without buckets, none', () => {
    const native = `# TYPE ${TTFT} histogram\n${TTFT} {count:4,sum:3,schema:0,zero_threshold:1e-4,zero_count:0,positive_spans:[0:2],positive_buckets:[1,3]}\n`;
    expect(merged({ a: native }).ttft?.quantiles?.p99).toMatchObject({ low: 1, high: 2 });
    const bare = merged({
      a: `# TYPE ${TTFT} histogram\n${TTFT}_bucket{le="+Inf"} 4\n${TTFT}_count 4\n${TTFT}_sum 3\n`,
    });
    expect(bare.ttft).toMatchObject({ count: 4, mean: 0.75 });
    expect(bare.ttft).not.toHaveProperty('quantiles');
    expect(bare.notes.join()).toMatch(/no finite bucket/);
  });

  it('unicode and hostile labels stay text', () => {
    const evil = '\\u001b[31m';
    const d = merged({
      a: `vllm:num_requests_running{engine="日本${JSON.parse(`"${evil}"`)}"} 1\nvllm:num_requests_running{engine="__proto__"} 2\n`,
    });
    expect(d.gauges.running?.sum).toBe(3);
    expect(Object.keys(d.gauges.running?.by ?? {})).toHaveLength(2);
    expect(renderMerge(d, 100)).not.toContain('\u001b');
  });

  it('CRLF, duplicated TYPE lines and joined texts', () => {
    const one = `# TYPE ${TTFT} histogram\n${histogram(TTFT, { '1': 2, '+Inf': 2 }, 1, 'engine="0"')}`;
    const two = `# TYPE ${TTFT} histogram\n${histogram(TTFT, { '1': 3, '+Inf': 3 }, 1, 'engine="1"')}`;
    expect(merged({ a: (one + two).replaceAll('\n', '\r\n') }).ttft).toMatchObject({ count: 5, replicas: 2 });
  });
});

describe('windows', () => {
  const scrape = (n: number, started?: number): string =>
    histogram(TTFT, { '0.1': n, '1': 2 * n, '+Inf': 3 * n }, n) +
    `vllm:request_success_total{finished_reason="stop"} ${n}\nvllm:request_success_total{finished_reason="abort"} 1\nvllm:num_requests_running ${n}\n` +
    (started === undefined ? '' : `process_start_time_seconds ${started}\n`);

  it('are whole differences', () => {
    const d = merged({ a: [scrape(10), scrape(14)] });
    expect(d.ttft).toMatchObject({ count: 12, sum: 4 });
    expect(d.finishes).toMatchObject({ count: 4, by: { stop: 4, abort: 0 } });
    expect(d.gauges.running).toMatchObject({ mean: 12, min: 10, max: 14 });
  });

  it('begin at a restart, seen by a fall or by the start time', () => {
    for (const pair of [
      [scrape(10), scrape(4)],
      [scrape(2, 100), scrape(4, 200)],
    ]) {
      const d = merged({ a: pair });
      expect(d.ttft?.count).toBe(12);
      expect(d.replicas[0]?.reset).toBe(true);
      expect(d.notes.join()).toMatch(/restarted within the window/);
    }
  });

  it('of replicas restart apart', () => {
    const d = merged({ a: [scrape(10), scrape(12)], b: [scrape(10), scrape(1)] });
    expect(d.ttft?.count).toBe(6 + 3);
    expect(d.replicas.map((r) => r.reset)).toEqual([false, true]);
    expect(d.notes.join()).toMatch(/b: its process restarted/);
  });

  it('of changed buckets give no number and say so', () => {
    const d = merged({
      a: [scrape(1), `${histogram(TTFT, { '0.2': 5, '1': 9, '+Inf': 9 }, 5)}vllm:num_requests_running 2\n`],
    });
    expect(d).not.toHaveProperty('ttft');
    expect(d.errors.join()).toMatch(/buckets of vllm:time_to_first_token_seconds changed between two scrapes/);
  });

  it('hold what appeared within them', () => {
    const d = merged({
      a: ['vllm:num_requests_running 0\n', `vllm:num_requests_running 1\n${histogram(TTFT, { '1': 3, '+Inf': 3 }, 1)}`],
    });
    expect(d.ttft?.count).toBe(3);
  });
});

describe('limits together', () => {
  const both = (ttft: number, tpot: number, n = 100): string =>
    histogram(TTFT, { '0.5': ttft, '1': n, '+Inf': n }, 1) + histogram(TPOT, { '0.05': tpot, '0.1': n, '+Inf': n }, 1);

  it('lie within the bounds of Fréchet, and no narrower', () => {
    const { joint } = merged({ a: both(90, 80) }, { ttft: 0.5, tpot: 0.05 });
    expect(joint?.limits).toMatchObject({ ttft: { low: 0.9, high: 0.9 }, tpot: { low: 0.8, high: 0.8 } });
    expect([joint?.low, joint?.high]).toEqual([expect.closeTo(0.7, 12), 0.8]);
  });

  it('widen where a limit lies within a bucket, and where populations differ', () => {
    const inside = merged({ a: both(90, 80) }, { ttft: 0.7, tpot: 0.05 }).joint!;
    expect(inside.limits.ttft).toMatchObject({ low: 0.9, high: 1 });
    expect(inside.notes.join()).toMatch(/ttft ≤ 0\.7 s: the limit lies within a bucket/);
    const differ = merged(
      { a: histogram(TTFT, { '0.5': 95, '1': 110, '+Inf': 110 }, 1) + histogram(TPOT, { '0.05': 80, '+Inf': 100 }, 1) },
      { ttft: 0.5, tpot: 0.05 },
    ).joint!;
    // Of the 100 that finished between 85 and 95 met TTFT.
    expect([differ.low, differ.high]).toEqual([expect.closeTo(0.65, 12), 0.8]);
    expect(differ.notes.join()).toMatch(/different populations \(ttft 110, tpot 100\)/);
  });

  it('say nothing where a marginal is missing', () => {
    const joint = merged({ a: histogram(TTFT, { '0.5': 95, '+Inf': 110 }, 1) }, { ttft: 0.5, tpot: 0.05 }).joint!;
    expect(joint).not.toHaveProperty('low');
    expect(joint.notes.join()).toMatch(/tpot: no server tells it/);
  });
});
