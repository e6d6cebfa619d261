import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { merge } from './merge.ts';
import { runCommand } from './testing.ts';

const sample = (name: string) => fileURLToPath(new URL(`../../samples/metrics/${name}.txt`, import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'goodput-merge-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const file = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};

describe('merge', () => {
  it('prints one key a concept, intervals with null above the last bound, and exits 0', async () => {
    const { out, code } = await runCommand(merge, ['--json', sample('sglang-saturated')]);
    expect(code).toBe(0);
    const d = JSON.parse(out);
    expect(d.schema).toBe('goodput.merge/1');
    expect(d.ttft.quantiles.p99).toEqual({ low: 30, high: null, promql: 30 });
    expect(d.ttft).toMatchObject({ count: 11008, replicas: 1, notes: expect.any(Array), meaning: { unit: 'seconds' } });
    expect(d.errors).toEqual([]);
  });

  it('exits 2 where nothing could be read and 3 where a family was left out, and prints either way', async () => {
    const none = await runCommand(merge, ['--json', sample('vllm-inconsistent-count')]);
    expect(none.code).toBe(2);
    expect(JSON.parse(none.out).errors[0]).toMatch(/vllm-inconsistent-count\.txt:9: /);
    const some = await runCommand(merge, ['--json', sample('vllm-inconsistent-count'), sample('trtllm-serve')]);
    expect(some.code).toBe(3);
    expect(JSON.parse(some.out).finishes.count).toBe(155);
    const other = await runCommand(merge, [file('node.txt', 'node_cpu_seconds_total 1\n')]);
    expect(other.code).toBe(2);
    expect(other.err).toMatch(/none of the 1 metrics is of a known engine/);
    expect((await runCommand(merge, [join(folder, 'no-such.txt')])).err).toMatch(/there is no such file/);
  });

  it('takes windows and limits', async () => {
    const before = file('b.txt', 'vllm:generation_tokens_total 10\n');
    const after = file('a.txt', 'vllm:generation_tokens_total 25\n');
    for (const args of [['--window', before, after], [`${before}..${after}`]]) {
      const { out } = await runCommand(merge, ['--json', ...args]);
      expect(JSON.parse(out).generation_tokens.count).toBe(15);
    }
    const limits = await runCommand(merge, ['--json', '--slo', 'ttft=500ms,tpot=50ms', sample('vllm-ttft-single')]);
    expect(JSON.parse(limits.out).joint.limits.ttft.low).toBeCloseTo(1749 / 2644, 12);
    expect((await runCommand(merge, ['--slo', 'gap=1s', before])).err).toMatch(/no server tells 'gap'/);
    expect((await runCommand(merge, ['--ttft', '1s', '--slo', 'ttft=2s', before])).err).toMatch(/given twice/);
  });
});
