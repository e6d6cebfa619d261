import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { diagnose } from './diagnose.ts';
import { pairNotes } from './diagnose-pair.ts';
import type { About, ReadSide } from './diagnose-sources.ts';
import { runCommand } from './testing.ts';

const dir = mkdtempSync(join(tmpdir(), 'goodput-pair-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const put = (name: string, text: string): string => {
  const path = join(dir, name);
  writeFileSync(path, text);
  return path;
};
/** A window of 100 requests with this mean TTFT, its scrapes at these Unix seconds. */
const pair = (engine: string, mean: number, at: number): string => {
  const name = `${engine}:time_to_first_token_seconds`;
  const text = (n: number): string => `# TYPE ${name} histogram\n${name}_sum ${n * mean}\n${name}_count ${n}\n`;
  return `${put(`${engine}-${mean}-${at}.txt`, text(0))}..${put(`${engine}-${mean}-${at + 60}.txt`, text(100))}`;
};

const side = (about: Partial<About>, of: Partial<ReadSide['side']> = {}): ReadSide => ({
  side: { name: 'x', notes: [], ...of },
  about: { sources: [], engines: [], ...about },
});
const told = { told: { figures: {}, source: 'x' } };
const requests = { requests: { rows: [], stalls: [], span: 0, dropped: 0 } };

describe('two sides', () => {
  it('of like kinds and in order need no word', () => {
    const [a, b] = [side({ from: 0, to: 10 }, requests), side({ from: 20, to: 30 }, requests)];
    expect(pairNotes(a, b)).toEqual([]);
  });

  it('say what one has and the other lacks, in which order they were, and what differs', () => {
    expect(pairNotes(side({}, { ...requests, ...told }), side({}, told))[0]).toMatch(
      /^before has a run folder, after has none: .* add them with a second --after$/,
    );
    expect(pairNotes(side({}, requests), side({}, told))[0]).toMatch(/nothing else in common/);
    expect(pairNotes(side({ from: 86_400_000, to: 86_460_000 }), side({ from: 0, to: 60_000 }))[0]).toMatch(
      /--before was measured after --after \(1970-01-02T00:00Z against 1970-01-01T00:00Z\)/,
    );
    expect(pairNotes(side({ from: 0, to: 20 }), side({ from: 10, to: 30 }))[0]).toMatch(/windows overlap/);
    expect(pairNotes(side({ engines: ['vLLM'] }), side({ engines: ['SGLang'] }))[0]).toMatch(
      /vLLM before and SGLang after/,
    );
    expect(pairNotes(side({ contract: '1' }), side({ contract: '2' }))[0]).toMatch(/different contracts/);
    expect(pairNotes(side({ model: 'a' }), side({ model: 'b' }))[0]).toMatch(/models differ/);
  });
});

describe('goodput diagnose of ill-matched sides', () => {
  it('one window on both sides is refused', async () => {
    const same = pair('vllm', 0.3, 1_790_000_000);
    const out = await runCommand(diagnose, ['--before', same, '--after', same]);
    expect(out.code).not.toBe(0);
    expect(out.err).toMatch(/both name .*cannot differ from itself/);
  });

  it('swapped windows and two engines are told, once, and kept in the JSON', async () => {
    const [later, earlier] = [pair('vllm', 0.3, 1_790_090_000), pair('sglang', 0.9, 1_790_000_000)];
    const out = await runCommand(diagnose, ['--before', later, '--after', earlier, '--json']);
    const notes = (JSON.parse(out.out) as { notes: string[] }).notes.join('\n');
    for (const text of [out.err, notes]) {
      expect(text).toMatch(/--before was measured after --after/);
      expect(text).toMatch(/the engines differ, vLLM before and SGLang after/);
    }
    expect(out.err.split('\n')).toHaveLength(2);
  });

  it('a Prometheus that does not answer is named with what failed', async () => {
    const out = await runCommand(diagnose, [
      '--before',
      'prometheus+http://127.0.0.1:1@1790000000/1790000600',
      '--after',
      pair('vllm', 0.3, 1_790_090_000),
    ]);
    expect(out.err).toMatch(/--before: .*127\.0\.0\.1:1/);
    expect(out.err.split('\n')).toHaveLength(1);
  });

  it('a side that is not given is asked for', async () => {
    const out = await runCommand(diagnose, ['--before', pair('vllm', 0.3, 1_790_000_000)]);
    expect(out.code).not.toBe(0);
    expect(out.err).toMatch(/after/);
  });
});
