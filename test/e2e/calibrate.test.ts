import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { emulate, folderOf, run, type Served, scratch } from './cli.ts';

const { dir, remove } = scratch();
afterAll(remove);

/** Few and slow steps: what is tested is the path, on any machine. */
const DESIGN = ['--rounds', '1', '--max-batch', '4', '--prompts', '16-256', '--held-tokens', '24'];

describe('calibrate', () => {
  let server: Served;
  beforeAll(async () => {
    server = await emulate(['--gpu', 'l4', '--speed', '2', '--max-num-seqs', '8']);
  });
  afterAll(() => server.stop());

  it('--collect measures by design, leaves a run folder and a profile that simulate takes; a run is fitted again', async () => {
    const file = join(dir, 'profile.yaml');
    const done = await run(['calibrate', '--collect', server.url, ...DESIGN, '--out', dir, '-o', file, '--json']);
    expect(done.stderr).not.toContain('defect');
    expect(done.code).toBe(0);
    const profile = JSON.parse(done.stdout);
    expect(profile).toMatchObject({ schema: 'goodput.profile/1', range: { sequences: [1, expect.any(Number)] } });
    for (const e of Object.values(profile.coefficients) as { value: number; low: number; high: number }[]) {
      expect(e.low).toBeLessThanOrEqual(e.value);
      expect(e.high).toBeGreaterThanOrEqual(e.value);
    }
    const { replayed, held_out } = profile.fit;
    expect(replayed.requests).toBeGreaterThan(30);
    expect(replayed.e2e.measured).toBeGreaterThan(0);
    expect(typeof held_out.decode).toBe('number');
    expect(done.stderr).toMatch(/Design {4}1 rounds: .*a mix/);
    expect(done.stderr).toContain(`Profile: ${file}`);
    expect(readFileSync(file, 'utf8')).toContain('schema: goodput.profile/1');

    const folder = folderOf(done);
    expect(existsSync(join(folder, 'run.json'))).toBe(true);
    const again = await run(['calibrate', folder, '-o', join(dir, 'again.yaml'), '--json']);
    expect(again.code).toBe(0);
    expect(JSON.parse(again.stdout).coefficients).toEqual(profile.coefficients);
    const people = await run(['calibrate', folder, '-o', join(dir, 'people.yaml')]);
    expect(people.stdout).toMatch(/^Profile '.*': step time as/);
    expect(people.stdout).toMatch(/Its own arrivals simulated \(\d+ requests, measured → simulated means\): TTFT/);

    const load = ['--rate', '1', '--requests', '20', '--input', '64', '--output', '16', '--slo', 'ttft=10s', '--json'];
    const simulated = await run(['simulate', '--profile', file, ...load]);
    expect(simulated.code).toBe(0);
    const report = JSON.parse(simulated.stdout);
    expect(report.cohort.offered).toBe(20);
    expect(report.run.remarks.join()).toMatch(/step times calibrated/);
  }, 120_000);

  it.each([
    [[], /nothing to fit; give run folders, or --collect URL/],
    [['--collect', 'null:'], /there is no engine to calibrate/],
    [['/nowhere'], /nowhere/],
  ])('refuses %j in one line', async (args, why) => {
    const done = await run(['calibrate', ...args, '-o', join(dir, 'none.yaml')]);
    expect(done.code).toBe(2);
    expect(done.stderr).toMatch(why);
    expect(done.stderr.trim().split('\n')).toHaveLength(1);
    expect(done.stdout).toBe('');
  });
});

describe('model and simulate, bad input: one line, exit 2', () => {
  const lacking = join(dir, 'config.json');
  writeFileSync(lacking, JSON.stringify({ model_type: 'llama', num_hidden_layers: 2, hidden_size: 64 }));
  const H100 = ['--gpu', 'h100'];
  const SIMULATE = ['simulate', '--slo', 'ttft=1s'];
  it.each([
    [['model', '--model', 'llama-3.1-8b', ...H100, '--tp', '3'], /tensor parallelism 3 does not divide the 32 heads/],
    [['model', '--model', 'llama-3.1-8b', ...H100, '--pp', '40'], /pipeline parallelism 40 exceeds the 32 layers/],
    [['model', '--model', 'llama-3.1-70b', ...H100], /leaves no room for KV on 1 × h100-sxm/],
    [['model', '--model', 'lama-3.1-8b', ...H100], /unknown model 'lama-3.1-8b' \(did you mean 'llama-3.1-8b'\?\)/],
    [['model', '--model', 'llama-3.1-8b', '--gpu', 'h10'], /unknown accelerator 'h10' \(did you mean 'h100'\?\)/],
    [['model', '--model', lacking, ...H100], /lacks 'num_attention_heads'; add it/],
    [[...SIMULATE, '--model', 'llama-3.1-70b', ...H100], /leaves no room for KV/],
    [[...SIMULATE, '--model', 'llama-3.1-8b', ...H100, '--kv-blocks', '0'], /--kv-blocks: '0' is not a whole number/],
    [[...SIMULATE, '--model', 'llama-3.1-8b', ...H100, '--n', '2'], /--n 2: a simulated request has one choice/],
    [[...SIMULATE, '--profile', lacking], /its schema is missing/],
  ])('%j', async (args, why) => {
    const done = await run(args);
    expect(done.code).toBe(2);
    expect(done.stderr).toMatch(why);
    expect(done.stderr.trim().split('\n')).toHaveLength(1);
    expect(done.stdout).toBe('');
  });
});
