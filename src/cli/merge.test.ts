import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
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

describe('merge of files that are not right', () => {
  const ttft = (rows: string) => `# TYPE vllm:time_to_first_token_seconds histogram\n${rows}`;
  const row = (le: string, n: number | string) =>
    `vllm:time_to_first_token_seconds_bucket{engine="0",le="${le}"} ${n}\n`;
  const whole = ttft(`${row('0.5', 1)}${row('+Inf', 2)}vllm:time_to_first_token_seconds_count{engine="0"} 2\n`);

  it.each([
    ['no +Inf', ttft(row('0.5', 1) + row('1', 2)), /:3: the \+Inf bucket .* is missing/],
    ['NaN in a bucket', ttft(row('0.5', 'NaN') + row('+Inf', 2)), /:2: a bucket .* counts NaN/],
    ['an infinite count', ttft(row('0.5', 1) + row('+Inf', '+Inf')), /:3: a bucket .* counts Infinity/],
    [
      'a negative counter',
      '# TYPE vllm:generation_tokens_total counter\nvllm:generation_tokens_total -4\n',
      /:2: .* negative/,
    ],
    [
      'a series twice',
      'vllm:generation_tokens_total 4\nvllm:generation_tokens_total 5\n',
      /:2: .* stands twice .* line 1/,
    ],
    [
      'two times of one series',
      'vllm:generation_tokens_total 4 1000\nvllm:generation_tokens_total 5 2000\n',
      /:2: .* twice/,
    ],
    ['a cut last line', `${whole.slice(0, -1)}1`, /:4: the last line is not ended/],
    ['an HTML error page', '<html><body>502 Bad Gateway</body></html>\n', /:1: the body is HTML/],
    ['an error as JSON', '{"detail":"Not Found"}', /:1: the body is JSON/],
    ['nothing', '', /it is empty/],
    ['a blank', '\n\n', /there is no metric in it/],
    ['a protobuf', Buffer.from([0x2a, 0x0a, 3, 0, 1, 2, 0x10, 0, 0, 0, 0]).toString('latin1'), /binary/],
    ['an unclosed label', 'vllm:generation_tokens_total{model_name="m} 5\n', /:1: .* not closed/],
  ])('%s: the line, and no number', async (name, text, error) => {
    const { out, code } = await runCommand(merge, ['--json', file(`${name.replaceAll(/\W/g, '-')}.txt`, text)]);
    const d = JSON.parse(out);
    expect(code).toBe(2);
    expect(d.errors.join('\n')).toMatch(error);
    expect(d.ttft ?? d.generation_tokens).toBeUndefined();
  });

  it('reads CRLF, byte order marks, gzip and escapes, and prints none of the escape codes of a label', async () => {
    const same = [whole.replaceAll('\n', '\r\n'), `\ufeff${whole}`];
    for (const [i, text] of same.entries()) {
      const { out, code } = await runCommand(merge, ['--json', file(`form-${i}.txt`, text)]);
      expect(code).toBe(0);
      expect(JSON.parse(out).ttft.count).toBe(2);
    }
    const zipped = join(folder, 'whole.txt.gz');
    writeFileSync(zipped, gzipSync(whole));
    expect(JSON.parse((await runCommand(merge, ['--json', zipped])).out).ttft.count).toBe(2);
    const hostile = file(
      'hostile.txt',
      'vllm:num_requests_running{engine="\u001b[2J\u001b]0;x\u0007\u009b1m"} 3\nvllm:num_requests_running{engine="b\\n\\"\\\\"} 4\n',
    );
    for (const args of [[hostile], ['--json', hostile]]) {
      const { out, err } = await runCommand(merge, args);
      expect(out + err).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
    }
    expect(JSON.parse((await runCommand(merge, ['--json', hostile])).out).gauges.running.sum).toBe(7);
  });

  it('takes windows over a restart, of replicas of different buckets, and of many lines', async () => {
    const at = (n: number, le = '0.5') => ttft(`${row(le, n)}${row('1', n)}${row('+Inf', n)}`);
    const pairs = [
      [at(100), at(130)],
      [at(100), at(30)],
      [at(10, '0.25'), at(20, '0.25')],
    ].map(([before, after], i) => `${file(`b${i}.txt`, before!)}..${file(`a${i}.txt`, after!)}`);
    const d = JSON.parse((await runCommand(merge, ['--json', ...pairs])).out);
    expect(d.ttft.count).toBe(30 + 30 + 10);
    expect(d.ttft.buckets.map((b: { le: number | null }) => b.le)).toEqual([1, null]);
    expect(d.replicas.map((r: { reset: boolean }) => r.reset)).toEqual([false, true, false]);
    const lines = Array.from({ length: 200_000 }, (_, i) => `x{i="${i % 1000}",j="${i}"} 1\n`).join('');
    const large = JSON.parse((await runCommand(merge, ['--json', file('large.txt', lines + whole)])).out);
    expect(large.ttft.count).toBe(2);
    expect(large.errors).toEqual([]);
  }, 60_000);
});
