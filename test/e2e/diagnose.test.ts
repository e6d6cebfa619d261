/** `goodput diagnose` as built: run folders, pairs of metrics files, told figures, changes; its JSON, exit codes and errors. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { folderOf, run, scratch } from './cli.ts';

const { dir, remove } = scratch();
afterAll(remove);

const simulated = async (name: string, ...flags: string[]): Promise<string> => {
  const out = await run([
    'simulate',
    '--model',
    'llama-3.1-8b',
    '--gpu',
    'h100-sxm',
    '--ideal',
    '--rate',
    '20',
    '--duration',
    '40s',
    '--input',
    'lognormal:1500,0.5',
    '--output',
    'lognormal:100,0.4',
    '--slo',
    'ttft=5s',
    '--seed',
    name.length.toString(),
    '--out',
    dir,
    '--name',
    name,
    ...flags,
  ]);
  expect(out.code, out.stderr).toBeLessThan(2);
  return folderOf(out);
};

interface Found {
  readonly verdict: string;
  readonly causes: readonly {
    readonly id: string;
    readonly confidence: number;
    readonly evidence: readonly { fact: string }[];
  }[];
  readonly attribution_ms: Readonly<Record<string, number | null>>;
  readonly ruled_out: readonly unknown[];
  readonly missing: readonly { how: string }[];
}

const diagnosed = async (args: readonly string[]): Promise<{ code: number | null; found: Found }> => {
  const out = await run(['diagnose', ...args, '--json']);
  expect(out.code, out.stderr).toBeLessThan(2);
  return { code: out.code, found: JSON.parse(out.stdout) as Found };
};

describe('goodput diagnose', () => {
  it('adds up the change of two run folders, and shows none between like ones', { timeout: 120_000 }, async () => {
    const [a, b, c] = [
      await simulated('calm'),
      await simulated('quiet'),
      await simulated('capped', '--max-num-seqs', '12'),
    ];
    const { found } = await diagnosed(['--before', a, '--after', c]);
    const parts = found.attribution_ms;
    expect(Object.keys(parts)).toEqual(['client', 'connect', 'queue', 'prefill', 'frontend', 'delivery', 'residual']);
    expect(parts.queue).toBeGreaterThan(100);
    expect(Math.abs(parts.residual ?? 0)).toBeLessThan(0.1 * (parts.queue ?? 0));
    // Without gauges the cap cannot be seen: queueing, and what would decide.
    expect(found.missing.map((m) => m.how).join(' ')).toContain('num_requests_running');
    const like = await diagnosed(['--before', a, '--after', b]);
    expect(like.found.verdict).toBe('not-shown');
    expect(like.code).toBe(0);
    const text = await run(['diagnose', '--before', a, '--after', c]);
    expect(text.stdout).toMatch(/server queue +\+/);
    const md = await run(['diagnose', '--before', a, '--after', c, '--format', 'md']);
    expect(md.stdout).toMatch(/^## Diagnosis: /);
  });

  it('reads pairs of metrics files', { timeout: 60_000 }, async () => {
    const scrape = (n: number, queue: number, prefill: number, prompt: number): string => {
      const h = (name: string, sum: number) =>
        `# TYPE vllm:${name} histogram\nvllm:${name}_bucket{model_name="m",le="0.3"} ${n}\nvllm:${name}_bucket{model_name="m",le="+Inf"} ${n}\nvllm:${name}_sum{model_name="m"} ${sum}\nvllm:${name}_count{model_name="m"} ${n}\n`;
      return `${h('request_queue_time_seconds', queue)}${h('request_prefill_time_seconds', prefill)}${h('time_to_first_token_seconds', queue + prefill + 0.01 * n)}${h('request_prompt_tokens', prompt)}`;
    };
    const put = (name: string, text: string): string => {
      const path = join(dir, name);
      writeFileSync(path, text);
      return path;
    };
    const a = `${put('a0.txt', scrape(100, 1, 20, 100_000))}..${put('a1.txt', scrape(1100, 11, 220, 1_100_000))}`;
    const b = `${put('b0.txt', scrape(100, 1, 20, 100_000))}..${put('b1.txt', scrape(1100, 11, 620, 3_100_000))}`;
    const { found } = await diagnosed(['--before', a, '--after', b]);
    // Δsum over Δcount: 200 ms to 600 ms, of which all is prefill.
    expect(found.attribution_ms.prefill).toBeCloseTo(400, 3);
    expect(found.attribution_ms.queue).toBeCloseTo(0, 3);
    expect(found.causes[0]?.id).toBe('longer-prompts');
  });

  it('reads told figures and changes, and prints no escape of theirs', { timeout: 60_000 }, async () => {
    const folder = join(dir, 'told');
    mkdirSync(folder);
    const file = (name: string, text: string): string => {
      writeFileSync(join(folder, name), text);
      return join(folder, name);
    };
    const a = file(
      'a.yaml',
      'source: "a \\e[31mred"\nfigures: { ttft_p50: 22.4, itl_p50: 5.49, latency: 330, bunched: 2%, ttft_share: 0.07 }\n',
    );
    const b = file(
      'b.yaml',
      'figures: { ttft_p50_s: 0.2872, itl_p50: 1.58, latency: 332, bunched: 70%, ttft_share: 0.87 }\n',
    );
    const changes = file('c.yaml', 'deployments: { "proxy_buffering \\e[2J": ["off", "on"] }\n');
    const out = await run(['diagnose', '--before', a, '--after', b, '--changes', changes]);
    expect(out.code).toBe(0);
    expect(out.stdout).toContain('proxy-buffering');
    expect(out.stdout).toContain('not a regression of the server');
    expect(out.stdout).not.toMatch(/\u001b/);
  });

  it('says in one line what is wrong with its input', { timeout: 60_000 }, async () => {
    const bad = async (args: readonly string[]): Promise<string> => {
      const out = await run(['diagnose', ...args]);
      expect(out.code).toBe(2);
      expect(out.stderr.trim().split('\n')).toHaveLength(1);
      return out.stderr;
    };
    expect(await bad(['--before', 'nowhere', '--after', 'nowhere'])).toMatch(/--before: nowhere does not exist/);
    const one = join(dir, 'one.txt');
    writeFileSync(one, 'a 1\n');
    expect(await bad(['--before', one, '--after', one])).toMatch(/is one scrape, which has no start/);
    const told = join(dir, 'bad.yaml');
    writeFileSync(told, 'figures: { tttft: 3 }\n');
    expect(await bad(['--before', told, '--after', told])).toMatch(/'tttft' is no figure.*ttft/);
    expect(await bad(['--before', 'prometheus+http://127.0.0.1:1@2/1', '--after', told])).toMatch(
      /time cannot be read|ends before/,
    );
  });
});
