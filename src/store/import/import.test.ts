import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { contractOf } from '../../core/contract.ts';
import { judgeRecord } from '../../core/judge.ts';
import { importAll } from './testing.ts';

const SAMPLES = join(import.meta.dirname, '..', '..', '..', 'samples', 'results');
const dir = mkdtempSync(join(tmpdir(), 'goodput-import-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));
const sample = (name: string): string => join(SAMPLES, name);
let made = 0;
function damaged(name: string, change: (text: string) => string): string {
  const path = join(dir, `${name}-${made++}`);
  writeFileSync(path, change(readFileSync(sample(name), 'utf8')));
  return path;
}
const contract = contractOf({ ttft: 75, tpot: 50 });

describe('importResults', () => {
  it.each([
    ['vllm.json', 'vllm bench', 'usage', [10, 20, 30]],
    ['sglang.jsonl', 'sglang bench_serving', 'usage', [10, 20, 30]],
    ['guidellm.json', 'guidellm', 'usage', [60]],
    ['aiperf.jsonl', 'aiperf', 'tokenizer', [10, 20, 30]],
  ] as const)('reads the five requests of %s', async (name, tool, source, gaps) => {
    const found = await importAll(sample(name));
    expect(found.tool).toBe(tool);
    expect(found.records).toHaveLength(5);
    expect(found.cannotTell.length).toBeGreaterThan(0);
    const measured = found.records.map((r) => judgeRecord(r, contract));
    // GuideLLM's clock starts at its targeted start, 2 ms before.
    const lead = tool === 'guidellm' ? 2 : 0;
    [50, 60, 70, 80].forEach((ttft, i) => {
      const { metrics } = measured[i]!;
      expect(metrics.ttft).toBeCloseTo(ttft + lead, 2);
      expect(metrics.tpot).toBeCloseTo(20, 2);
      expect(metrics.n).toBe(4);
      expect(metrics.tokenSource).toBe(source);
      const { at } = found.records[i]!.timeline;
      gaps.forEach((gap, k) => void expect(at[k + 1]! - at[k]!).toBeCloseTo(gap, 2));
    });
    expect(measured.map((m) => m.verdict.class)).toEqual(['good', 'good', 'good', 'late', 'failed']);
    expect(found.records[4]).toMatchObject({
      outcome: 'failed',
      reason: 'http-500',
      detail: expect.stringContaining('Internal') as string,
    });
  });

  it('takes start times where the file has them, and says where not', async () => {
    const starts = async (name: string) =>
      (await importAll(sample(name))).records.map((r) => Math.round(r.stamps.dispatched!));
    expect(await starts('vllm.json')).toEqual([0, 100, 200, 300, 400]);
    expect(await starts('aiperf.jsonl')).toEqual([0, 100, 200, 300, 400]);
    expect(await starts('sglang.jsonl')).toEqual([0, 0, 0, 0, 0]);
    expect((await importAll(sample('sglang.jsonl'))).cannotTell.join()).toMatch(/start times are not in the file/);
  });

  it('asks which of several runs', async () => {
    await expect(importAll(sample('sglang-two-runs.jsonl'))).rejects.toThrow(/holds 2 runs; say which with --entry/);
    expect((await importAll(sample('sglang-two-runs.jsonl'), 2)).records).toHaveLength(5);
    await expect(importAll(sample('sglang-two-runs.jsonl'), 3)).rejects.toThrow(/holds 2 runs/);
  });

  it.each([
    ['vllm-summary.json', (t: string) => t, /only summaries.*--save-detailed/],
    ['aiperf-summary.json', (t: string) => t, /summary.*profile_export\.jsonl/],
    ['vllm.json', (t: string) => t.slice(0, 300), /line 1: is not JSON/],
    ['vllm.json', (t: string) => t.replace('"ttfts": [0.05', '"ttfts": ["x"'), /'ttfts\[0\]' is "x"/],
    ['vllm.json', (t: string) => t.replace('"ttfts": [0.05, ', '"ttfts": ['), /'itls'.*a list of 4/],
    ['guidellm.json', (t: string) => t.slice(0, 900), /line \d+: is not JSON/],
    [
      'guidellm.json',
      (t: string) => t.replace(/"request_start": [\d.]+/, '"request_start": "soon"'),
      /requests\.successful\[0\].*'request_start' is "soon"/,
    ],
    [
      'aiperf.jsonl',
      (t: string) => t.replace('"request_start_ns": 1790000000100000000', '"request_start_ns": null'),
      /line 2.*'request_start_ns'/,
    ],
    ['aiperf.jsonl', (t: string) => `${t.split('\n').slice(0, 2).join('\n')}\n{"metadata": \n`, /line 3: is not JSON/],
    ['sglang.jsonl', () => '{"hello": 1}\n', /no result file known here/],
    ['sglang.jsonl', () => '', /is empty/],
    ['sglang.jsonl', () => '[1, 2]', /no result file known here/],
  ])('says in one line what is wrong with a damaged %s', async (name, change, about) => {
    const path = damaged(name, change);
    await expect(importAll(path)).rejects.toThrow(about);
    const message = await importAll(path).catch((e: Error) => e.message);
    expect(message).not.toContain('\n');
  });
});
