/** What must be concluded from each sample, as its header notes it. */
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { renderMerge } from './render.ts';
import { merged } from './testing.ts';

const FOLDER = new URL('../../../samples/metrics/', import.meta.url);
const of = (name: string, ...limits: Parameters<typeof merged>[1][]) =>
  merged({ [name]: readFileSync(new URL(`${name}.txt`, FOLDER), 'utf8') }, ...limits);

const CONCLUSIONS: Record<string, () => void> = {
  'epp-inference-extension': () => {
    const d = of('epp-inference-extension', { ttft: 1, tpot: 0.05 });
    expect(d.slo_violations).toMatchObject({ count: 21, by: { ttft: 12, tpot: 9 } });
    expect(d.notes.join()).toMatch(/without the number of requests judged: neither a share nor joint attainment/);
    expect(d.ttft).toMatchObject({ count: 100, mean: 0.41, quantiles: { p50: { low: 0.1, high: 1 } } });
    expect(d.notes.join()).toMatch(/non-streaming mode the TTFT .* is the end-to-end time/);
    expect(d.joint?.limits.ttft).toMatchObject({ low: 0.9, high: 0.9 });
    expect(d.joint).not.toHaveProperty('low'); // no TPOT, so nothing joint
    expect(d.gauges.waiting?.sum).toBe(4);
  },
  litellm: () => {
    const d = of('litellm');
    expect(d.ttft).toMatchObject({ count: 100, sum: 71, mean: 0.71 });
    expect(d.ttft?.meaning?.observation).toMatch(/an attempt.*retries/);
    expect(d.ttft?.meaning?.clock).toMatch(/each attempt/);
    expect(d.ttft?.quantiles?.p99).toMatchObject({ low: 1, high: null });
    expect(d.failures).toMatchObject({ count: 6, by: { '429': 6 } });
    expect(d.finishes).toMatchObject({ count: 100, by: { '200': 100 } });
    expect(d.e2e?.mean).toBe(4.02);
    expect(d.replicas[0]?.role).toBe('router');
  },
  llamacpp: () => {
    const d = of('llamacpp');
    expect(d.derived.prefill_tokens_per_second?.value).toBeCloseTo(2.37, 2);
    expect(d.derived.decode_tokens_per_second?.value).toBeCloseTo(0.979, 3);
    expect(d.ttft).toBeUndefined();
    expect(d.notes.join()).toMatch(/no histograms.*only means/);
  },
  lmdeploy: () => {
    const d = of('lmdeploy');
    expect(d.generation_tokens?.count).toBe(1000);
    expect(d.notes.join()).toMatch(/\(2000\) is twice .*\(1000\)/);
    expect(d.output_length).toMatchObject({ count: 10, sum: 1000, mean: 100 });
    expect(d.gauges.kv_usage?.mean).toBe(0.2);
  },
  'openmetrics-exemplars': () => {
    const d = of('openmetrics-exemplars');
    expect(d.errors).toEqual([]);
    expect(d.ttft).toMatchObject({
      count: 10,
      sum: 8.1,
      quantiles: { p50: { low: 0, high: 0.5 }, p90: { low: 0.5, high: null } },
    });
  },
  'otel-genai': () => {
    const d = of('otel-genai');
    expect(d.ttft?.quantiles?.p99).toMatchObject({ low: 10, high: null });
    expect(d.ttft?.meaning?.misses).toMatch(/failed requests/);
    expect(d.notes.join()).toMatch(/last standard bound is 10 s/);
    expect(d.output_length).toMatchObject({ count: 100, mean: 204.8, meaning: { unit: 'tokens' } });
    expect(d.prompt_length).toBeUndefined();
  },
  'production-stack-router': () => {
    const d = of('production-stack-router');
    expect(d.replicas).toMatchObject([{ engine: 'production-stack router', role: 'router' }]);
    expect(d.gauges.running?.sum).toBe(8);
    expect(d).not.toHaveProperty('itl'); // avg_itl is −1
    expect(d).not.toHaveProperty('ttft');
    expect(d.notes.join()).toMatch(/adding the two would count twice/);
    // Beside the engine it is not added.
    const both = merged({
      router: readFileSync(new URL('production-stack-router.txt', FOLDER), 'utf8'),
      engine: 'vllm:num_requests_running{engine="0",model_name="m"} 8\n',
    });
    expect(both.gauges.running).toMatchObject({ sum: 8, replicas: 1 });
    expect(both.gauges.running?.notes.join()).toMatch(/production-stack router .* not added/);
  },
  'sglang-saturated': () => {
    const d = of('sglang-saturated');
    expect(d.ttft?.mean).toBeCloseTo(213.7, 1);
    for (const q of ['p50', 'p90', 'p95', 'p99'] as const) {
      expect(d.ttft?.quantiles?.[q]).toEqual({ low: 30, high: null, promql: 30 });
      expect(d.e2e?.quantiles?.[q]).toMatchObject({ low: 60, high: null });
    }
    expect(d.ttft?.notes.join()).toMatch(/22\.8 %/);
    expect(renderMerge(d, 100)).toContain('> 30 s');
    expect(d.gauges).toMatchObject({ running: { sum: 162 }, waiting: { sum: 2826 }, kv_usage: { mean: 0.28 } });
    expect(d.itl?.meaning?.observation).toMatch(/a token: .*smoothed/);
  },
  tgi: () => {
    const d = of('tgi');
    expect(d.ttft).toBeUndefined();
    expect(d.notes.join()).toMatch(/no TTFT/);
    expect(d.queue).toMatchObject({ count: 90, sum: 0.021 });
    expect(d.queue?.buckets).toHaveLength(36);
    expect(d.queue?.quantiles?.p50).toMatchObject({ low: 0.000759375, high: 0.00113906 });
    expect(d.notes.join()).toMatch(/its buckets allow at least/); // 0.021 s is below what 90 such observations come to
    expect(d.tpot).toMatchObject({ count: 90, sum: 2.7, mean: expect.closeTo(0.03, 12) });
    expect(d.tpot?.meaning?.observation).toMatch(/prefill included/);
    expect(d.failures).toMatchObject({ count: 10, by: { overloaded: 7, validation: 3 } });
    expect(d.finishes?.count).toBe(90);
  },
  'trtllm-serve': () => {
    const d = of('trtllm-serve');
    expect(d.finishes).toMatchObject({ count: 155, by: { stop: 150, length: 5 } });
    expect(d.prefix_cache_hits).toMatchObject({ count: 600, meaning: { unit: 'blocks' } });
    expect(d.prefix_cache_queries).toMatchObject({ count: 1000, meaning: { unit: 'blocks' } });
    expect(d.derived.prefix_cache_hit_rate?.value).toBe(0.6);
    expect(d.notes.join()).toMatch(/blocks, not tokens/);
    expect(d.ttft?.quantiles?.p50).toMatchObject({ low: 0.05, high: null });
  },
  'vllm-design-doc': () => {
    const d = of('vllm-design-doc');
    expect(d.gauges.running?.sum).toBe(8);
    expect(d.generation_tokens?.count).toBe(27453); // and not its _created
  },
  'vllm-imbalanced-engines': () => {
    const d = of('vllm-imbalanced-engines');
    expect(d.ttft?.quantiles?.p99).toMatchObject({ low: 1, high: 2.5 });
    expect(d.ttft?.quantiles?.p99.promql).toBeCloseTo(2.47, 10);
    const [zero, one] = d.replicas.map((r) => r.concepts.ttft?.quantiles?.p99.promql);
    expect([zero, one]).toEqual([0.1, expect.closeTo(2.485, 10)]);
    expect(d.notes[0]).toMatch(/replicas differ in ttft: .*engine=1 .*engine=0/);
    expect(d.ttft).not.toHaveProperty('mean'); // no _sum
  },
  'vllm-inconsistent-count': () => {
    const d = of('vllm-inconsistent-count');
    expect(d.ttft).toBeUndefined();
    expect(d.errors).toEqual([
      expect.stringMatching(/^vllm-inconsistent-count:9: .*_count is 10000 but its \+Inf bucket 9000/),
    ]);
  },
  'vllm-iteration-tokens-trap': () => {
    const d = of('vllm-iteration-tokens-trap');
    expect(d.step_tokens).toMatchObject({
      count: 500,
      sum: 61234,
      meaning: { unit: 'tokens' },
      quantiles: { p50: { low: 1, high: 8 } },
    });
  },
  'vllm-production-13h': () => {
    const d = of('vllm-production-13h');
    expect(d.derived.inference_less_phases_seconds?.value).toBeCloseTo(0, 6);
    expect(d.ttft?.count).toBe((d.finishes?.count ?? 0) + 1); // one in flight
    expect(d.derived.tokens_per_step?.value).toBe(1);
    expect((d.ttft?.sum ?? 0) - (d.queue?.sum ?? 0) - (d.prefill?.sum ?? 0)).toBeCloseTo(142.6, 1);
    expect(d.derived.frontend_seconds?.value).toBeCloseTo(0.09, 3);
    expect(d.queue?.notes.join()).toMatch(/93\.1 % lie in the first bucket/);
    expect(d.prefix_cache_hits?.count).toBe(71071168);
    expect(d.prefill).toMatchObject({ count: 1578, sum: 2853.42 });
    expect(d.prefill).not.toHaveProperty('quantiles');
    expect(d.preemptions?.count).toBe(197);
  },
  'vllm-renames': () => {
    const d = of('vllm-renames');
    // Six names of vLLM's, two of SGLang's: one value each, never a sum.
    expect(d.gauges.kv_usage).toMatchObject({ mean: 0.62, min: 0.62, max: 0.62, replicas: 2 });
    expect(d.replicas.map((r) => r.engine)).toEqual(['vLLM', 'SGLang', 'SGLang, by its router']);
    expect(d.itl?.count).toBe(10);
    const lone = [
      'vllm:gpu_cache_usage_perc{model_name="m"}',
      'kserve_vllm:kv_cache_usage_perc{engine="0"}',
      'ray_vllm:kv_cache_usage_perc{WorkerId="w"}',
      'ray_vllm_kv_cache_usage_perc{engine="0"}',
      'sglang:token_usage{}',
      'sglang_token_usage{worker_addr="http://10.0.0.1:30000"}',
    ];
    for (const series of lone) expect(merged({ a: `${series} 0.62\n` }).gauges.kv_usage?.mean, series).toBe(0.62);
    expect(merged({ a: 'vllm:time_per_output_token_seconds_count{model_name="m"} 10\n' }).itl?.count).toBe(10);
  },
  'vllm-success-reasons': () => {
    const d = of('vllm-success-reasons');
    expect(d.finishes).toMatchObject({ count: 10, by: { stop: 7, length: 2, abort: 1, error: 0 } });
    expect(d.notes.join()).toMatch(/counts every finish reason/);
  },
  'vllm-ttft-single': () => {
    const d = of('vllm-ttft-single');
    expect(d.ttft?.quantiles?.p50).toMatchObject({ low: 0.1, high: 0.5 });
    expect(d.ttft?.quantiles?.p50.promql).toBeCloseTo(0.34682, 5);
    expect(d.ttft?.quantiles?.p99).toMatchObject({ low: 10, high: 2560 });
    expect(d.ttft?.quantiles?.p99.promql).toBeCloseTo(1356, 0);
    expect(d.ttft?.notes.join()).toMatch(/p99 .*made of the bucket's width, not measured/);
  },
  'vllm-two-engines': () => {
    const d = of('vllm-two-engines');
    expect(d.ttft?.buckets).toEqual([
      { le: 0.1, count: 150 },
      { le: 1, count: 750 },
      { le: null, count: 750 },
    ]);
    expect(d.ttft).toMatchObject({ count: 750, replicas: 2 });
  },
};

describe('samples of real servers', () => {
  for (const file of readdirSync(FOLDER)) {
    const name = file.replace('.txt', '');
    it(name, () => {
      expect(Object.keys(CONCLUSIONS)).toContain(name);
      CONCLUSIONS[name]!();
    });
  }

  it('are all shown for a terminal, each value with its meaning', () => {
    for (const file of readdirSync(FOLDER)) {
      const text = renderMerge(of(file.replace('.txt', '')), 100);
      expect(text.split('\n').every((line) => !/[\u0000-\u0008\u000b-\u001f]/.test(line))).toBe(true);
      if (text.includes('\n  ttft ')) expect(text).toMatch(/ttft: \S+ \([^)]+\); clock: /);
    }
  });
});
