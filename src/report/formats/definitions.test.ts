/**
 * The tools' figures again, written here from their own definitions and apart from the renderers: raw stamps in, numbers out.
 * vLLM: numpy's linear percentiles over successful requests, TPOT by (latency − TTFT)/(n − 1) for n > 1, gaps pooled. GuideLLM:
 * percentiles by the cumulated share without interpolation, TPOT from the start over n. AIPerf: linear percentiles, the
 * sample's standard deviation, ITL over n − 1 for n ≥ 2.
 */
import { describe, expect, it } from 'vitest';
import { keyed } from '../../base/random.ts';
import { CohortReducer, contractOf, type RequestRecord, ThroughputReducer, timelineOf } from '../../core/index.ts';
import { buildReport } from '../build.ts';
import { type Definition, SeenReducer, TOOL_FORMATS } from './index.ts';

const contract = contractOf({ ttft: 300, tpot: 60, e2e: 2000 });
const window = { start: 0, end: 20_000 };

interface Raw {
  readonly sent: number;
  readonly role: number;
  readonly chunks: readonly number[];
  readonly end: number;
  readonly tokens: number;
  readonly how: 'completed' | 'truncated' | 'failed';
}

const u = keyed(4, 'definitions');
const ms = (x: number): number => Math.round(x * 1000) / 1000;
const raws: Raw[] = Array.from({ length: 37 }, (_, i) => {
  const sent = ms(i * 500 + 20 * u());
  const how = i % 11 === 5 ? 'failed' : i % 13 === 7 ? 'truncated' : 'completed';
  const first = ms(sent + 100 + 300 * u());
  const chunks = [first];
  for (let k = Math.floor(u() * 12); k > 0; k--) chunks.push(ms(chunks.at(-1)! + 10 + 80 * u()));
  return {
    sent,
    role: ms(sent + 5 + 5 * u()),
    chunks: how === 'failed' ? [] : chunks,
    end: ms(chunks.at(-1)! + 3),
    tokens: chunks.length + Math.floor(3 * u()),
    how,
  };
});

const records = raws.map((r, operation): RequestRecord => {
  const [first, last] = [r.chunks[0], r.chunks.at(-1)];
  return {
    operation,
    attempt: 0,
    attempts: 1,
    lostHedge: false,
    class: 'default',
    asked: { input: 10, output: 16, choices: 1, stream: true },
    stamps: {
      scheduled: operation * 500,
      dispatched: r.sent,
      ...(first !== undefined && { firstEvent: r.role, firstOutput: first, firstAnswer: first, lastOutput: last! }),
      ended: r.end,
    },
    timeline: timelineOf(r.chunks),
    streamed: true,
    ...(r.how !== 'failed' && { usage: { input: 10, output: r.tokens } }),
    unseenEndTokens: 0,
    outcome: r.how,
    reason: r.how === 'completed' ? '' : r.how === 'failed' ? 'http-500' : 'no-finish',
    detail: '',
    phase: 'done',
    finish: 'stop',
    impliedEnd: false,
    events: r.chunks.length + 2,
    coalesced: 0,
    unclassified: 0,
  };
});

const input = (() => {
  const cohort = new CohortReducer(contract, window);
  const throughput = new ThroughputReducer(window);
  const seen = new SeenReducer(window);
  for (const r of records) for (const reducer of [cohort, throughput, seen]) reducer.add(r);
  const report = buildReport({
    contract,
    cohort: cohort.finish(),
    throughput: throughput.finish(),
    facts: { name: 'd' },
  });
  return { contract, report, seen: seen.finish().seen, name: 'd' };
})();
const told = (tool: keyof typeof TOOL_FORMATS) => {
  const list = (TOOL_FORMATS[tool](input) as { _definitions: Definition[] })._definitions;
  return (figure: string): Definition => list.find((d) => d.figure === figure)!;
};

const ok = raws.filter((r) => r.how !== 'failed');
const mean = (x: readonly number[]): number => x.reduce((a, b) => a + b, 0) / x.length;
/** numpy.percentile, method linear. */
const linear = (x: readonly number[], p: number): number => {
  const sorted = [...x].sort((a, b) => a - b);
  const h = ((sorted.length - 1) * p) / 100;
  const k = Math.floor(h);
  return sorted[k]! + (h - k) * ((sorted[k + 1] ?? sorted[k]!) - sorted[k]!);
};
/** The least value with at least that share of all at or below it. */
const least = (x: readonly number[], p: number): number =>
  [...x].sort((a, b) => a - b).find((v) => x.filter((w) => w <= v).length / x.length >= p / 100 - 1e-12)!;
const span = (Math.max(...raws.map((r) => r.end)) - Math.min(...raws.map((r) => r.sent))) / 1000;

describe('vLLM', () => {
  const figure = told('vllm');
  const ttft = ok.map((r) => r.role - r.sent);
  const latency = ok.map((r) => r.chunks.at(-1)! - r.sent);
  const tpot = ok.flatMap((r, i) => (r.tokens > 1 ? [(latency[i]! - ttft[i]!) / (r.tokens - 1)] : []));
  const itl = ok.flatMap((r) => [r.role, ...r.chunks].slice(1).map((t, k) => t - [r.role, ...r.chunks][k]!));
  it.each([
    ['ttft', ttft],
    ['tpot', tpot],
    ['itl', itl],
    ['e2el', latency],
  ] as const)('%s', (name, values) => {
    expect(figure(`mean_${name}_ms`).theirs).toBeCloseTo(mean(values), 9);
    expect(figure(`median_${name}_ms`).theirs).toBeCloseTo(linear(values, 50), 9);
    for (const p of [90, 95, 99]) expect(figure(`p${p}_${name}_ms`).theirs).toBeCloseTo(linear(values, p), 9);
  });
  it('rates by the whole duration; one-token answers pass TPOT', () => {
    expect(figure('request_throughput').theirs).toBeCloseTo(ok.length / span, 9);
    expect(figure('output_throughput').theirs).toBeCloseTo(ok.reduce((n, r) => n + r.tokens, 0) / span, 9);
    const good = ok.filter(
      (r, i) =>
        ttft[i]! <= 300 && latency[i]! <= 2000 && (r.tokens > 1 ? (latency[i]! - ttft[i]!) / (r.tokens - 1) : 0) <= 60,
    );
    expect(figure('request_goodput').theirs).toBeCloseTo(good.length / span, 9);
  });
});

describe('GuideLLM', () => {
  const figure = told('guidellm');
  it.each([
    ['request_latency', ok.map((r) => (r.end - r.sent) / 1000)],
    ['time_to_first_token_ms', ok.map((r) => r.chunks[0]! - r.sent)],
    ['time_per_output_token_ms', ok.map((r) => (r.chunks.at(-1)! - r.sent) / r.tokens)],
    [
      'inter_token_latency_ms',
      ok.flatMap((r) => (r.tokens > 1 ? [(r.chunks.at(-1)! - r.chunks[0]!) / (r.tokens - 1)] : [])),
    ],
  ] as const)('%s', (name, values) => {
    expect(figure(`${name}.mean`).theirs).toBeCloseTo(mean(values), 9);
    expect(figure(`${name}.median`).theirs).toBeCloseTo(least(values, 50), 9);
    for (const p of [90, 95, 99]) expect(figure(`${name}.percentiles.p${p}`).theirs).toBeCloseTo(least(values, p), 9);
    expect(figure(`${name}.median`).differs).toMatch(/ours interpolates/);
    expect(figure(`${name}.mean`).differs).not.toMatch(/interpolates/);
  });
});

describe('AIPerf', () => {
  const figure = told('aiperf');
  const shape = TOOL_FORMATS.aiperf(input) as Record<string, { std: number; count: number }>;
  it.each([
    ['time_to_first_token', ok.map((r) => r.chunks[0]! - r.sent)],
    ['request_latency', ok.map((r) => r.chunks.at(-1)! - r.sent)],
    [
      'inter_token_latency',
      ok.flatMap((r) => (r.tokens > 1 ? [(r.chunks.at(-1)! - r.chunks[0]!) / (r.tokens - 1)] : [])),
    ],
    ['inter_chunk_latency', ok.flatMap((r) => r.chunks.slice(1).map((t, k) => t - r.chunks[k]!))],
  ] as const)('%s', (name, values) => {
    expect(figure(`${name}.avg`).theirs).toBeCloseTo(mean(values), 9);
    for (const p of [50, 90, 95, 99]) expect(figure(`${name}.p${p}`).theirs).toBeCloseTo(linear(values, p), 9);
    const m = mean(values);
    expect(shape[name]!.std).toBeCloseTo(
      Math.sqrt(values.reduce((s, v) => s + (v - m) ** 2, 0) / (values.length - 1)),
      9,
    );
    expect(shape[name]!.count).toBe(values.length);
  });
  it('good by its own figures, over valid and errors', () => {
    const good = ok.filter((r) => {
      const itl = r.tokens > 1 ? (r.chunks.at(-1)! - r.chunks[0]!) / (r.tokens - 1) : 0;
      return r.chunks[0]! - r.sent <= 300 && itl <= 60 && r.chunks.at(-1)! - r.sent <= 2000;
    });
    expect(figure('good_request_fraction.avg').theirs).toBeCloseTo(good.length / raws.length, 9);
  });
});
