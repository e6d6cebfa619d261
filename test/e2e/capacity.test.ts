import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { emulate, folderOf, run, type Served, scratch, start } from './cli.ts';

const { dir, remove } = scratch();
afterAll(remove);

const ENGINE = ['--simulate', '--ideal', '--model', 'llama-3.1-8b', '--gpu', 'h100-sxm'];
const SIMULATED = ['capacity', ...ENGINE, '--out', dir, '--json'];
const SMALL = ['--input', '128', '--output', '32', '--replications', '4', '--requests', '300', '--steer', '300'];

describe('capacity of a simulated engine', () => {
  it('is an interval with the published keys, the same again from the same seed', async () => {
    const args = [...SIMULATED, ...SMALL, '--slo', 'ttft=200ms,tpot=8ms', '--gpus', '2'];
    const [done, again] = await Promise.all([run(args), run(args)]);
    expect(done.code).toBe(0);
    const report = JSON.parse(done.stdout);
    expect(JSON.parse(again.stdout)).toEqual(report);
    expect(report).toMatchObject({ schema: 'goodput.capacity/1', end: 'found', target: 0.9 });
    const { low, high, confidence } = report.capacity;
    expect(low).toBeGreaterThan(0);
    expect(high).toBeGreaterThan(low);
    expect(confidence).toBe(0.95);
    expect(report.per_gpu_rps).toBeCloseTo(low / 2, 9);
    expect(report.goodput_at_capacity_rps).toBeGreaterThan(0.88 * low);
    expect(report.goodput_at_capacity_rps).toBeLessThanOrEqual(low);
    for (const p of report.probes) {
      for (const key of ['rate', 'attainment', 'low', 'high', 'goodput_rps', 'offered'])
        expect(typeof p[key]).toBe('number');
      expect(['pass', 'fail', 'undecided', 'void']).toContain(p.verdict);
      expect(typeof p.unstable).toBe('boolean');
    }
    const confirmed = report.probes.filter((p: { role: string }) => p.role === 'confirm');
    expect(confirmed.find((p: { rate: number }) => p.rate === low)).toMatchObject({ verdict: 'pass', replications: 4 });
    expect(confirmed.find((p: { rate: number }) => p.rate === high)).toMatchObject({ verdict: 'fail' });
    expect(done.stderr).toMatch(/Search {4}from .* runs and .* requests/);
  });

  it('infeasible at any rate exits 1 and names the limit', async () => {
    const done = await run([...SIMULATED, ...SMALL, '--slo', 'ttft=200ms,tpot=1ms']);
    expect(done.code).toBe(1);
    const report = JSON.parse(done.stdout);
    expect(report).toMatchObject({ end: 'infeasible', binding: { limit: 'tpot', class: 'default' } });
    expect(report.capacity).toMatchObject({ low: null, high: null });
  });

  it('draws the curve for people', async () => {
    const done = await run([...SIMULATED.slice(0, -1), ...SMALL, '--slo', 'ttft=200ms,tpot=8ms']);
    expect(done.stdout).toMatch(/Capacity [\d.]+ to [\d.]+ requests\/s at 90 % attainment \(95 % confidence\)/);
    expect(done.stdout).toMatch(/90 % ┤/);
    expect(done.stdout).toContain('●');
  });

  it('cut, it is reported as far as it went, and taken up again it ends as if it had not been', async () => {
    const args = [...SIMULATED, ...SMALL, '--slo', 'ttft=200ms,tpot=8ms'];
    const whole = JSON.parse((await run(args)).stdout);
    const cut = await run([...args, '--budget', '20ms']);
    expect(cut.code).toBe(3);
    const folder = folderOf(cut);
    // As a killed search leaves it: no verdict of its own.
    rmSync(join(folder, 'capacity.json'));
    const seen = await run(['report', folder, '--json']);
    expect(seen.code).toBe(3);
    expect(JSON.parse(seen.stdout)).toMatchObject({ end: 'interrupted', capacity: { low: null, high: null } });
    const resumed = await run(['capacity', '--resume', folder, '--json']);
    expect(resumed.code).toBe(0);
    expect(JSON.parse(resumed.stdout)).toEqual(whole);

    const report = await run(['report', folder]);
    expect(report.code).toBe(0);
    expect(report.stdout).toMatch(/Capacity [\d.]+ to [\d.]+ requests\/s/);
    const csv = await run(['report', folder, '--format', 'csv']);
    expect(csv.stdout.trim().split('\n')).toHaveLength(1 + whole.curve.length);
    const md = await run(['report', folder, '--format', 'md']);
    expect(md.stdout.match(/^\| [\d.]+ \|/gm)).toHaveLength(whole.curve.length);
    const other = await run(['report', folder, '--format', 'vllm']);
    expect(other.code).toBe(2);
    expect(other.stderr).toMatch(/holds a curve, and vllm is of one run/);
  }, 120_000);

  it('of sessions is in sessions per second; a cache state is told and kept', async () => {
    const file = join(dir, 'chats.yaml');
    const chat = 'input: 64, output: 16, prefix: { tokens: 256 }, session: { turns: 3, think: 1s }, slo: ttft=100ms';
    writeFileSync(file, `name: chats\nclasses:\n  - { name: chat, ${chat} }\n`);
    const args = [...SIMULATED, ...SMALL.slice(4), '--max-num-seqs', '4', '--workload', file, '--cache', 'warm'];
    const done = await run(args);
    expect(done.code).toBe(0);
    const found = JSON.parse(done.stdout);
    expect(found).toMatchObject({ end: 'found', unit: 'sessions' });
    expect(found.about.load).toMatch(/workload chats: chat, by session, cache warm/);
    // Three turns a session, so that good requests outnumber good sessions.
    expect(found.goodput_at_capacity_rps).toBeGreaterThan(2.5 * found.capacity.low);

    const resumed = folderOf(await run([...args, '--budget', '10ms']));
    writeFileSync(file, `name: chats\nclasses:\n  - { name: chat, ${chat.replace('64', '65')} }\n`);
    const changed = await run(['capacity', '--resume', resumed]);
    expect(changed.code).toBe(2);
    expect(changed.stderr).toMatch(/is not what it was when the search began/);
  }, 120_000);

  it.each([
    [['--concurrency', '4'], /closed loop slows down with the server/],
    [['--attainment', '100%'], /refuted and never shown/],
    [['--replications', '2'], /3 or more/],
  ])('refuses %j with the reason', async (flags, why) => {
    const done = await run([...SIMULATED, '--slo', 'ttft=1s', ...flags]);
    expect(done.code).toBe(2);
    expect(done.stderr).toMatch(why);
  });
});

describe('capacity of a server', () => {
  let server: Served;
  /** Generous: what is tested is the path. The client may be late by 5 % of the TTFT limit. */
  const SLO = ['--slo', 'ttft=20s,e2e=25s'];
  const QUICK = [
    '--input',
    '16',
    '--output',
    '4',
    '--replications',
    '3',
    '--requests',
    '20',
    '--steer',
    '20',
    '--max-rate',
    '40',
  ];

  beforeAll(async () => {
    server = await emulate(['--ttft', '5ms', '--itl', '2ms']);
  });
  afterAll(() => server?.stop());

  it('stopped, it says what is known and how to go on; resumed, it does not measure again what it knows', async () => {
    const running = start(['capacity', server.url, ...SLO, ...QUICK, '--out', dir]);
    await running.said(/% good|void/);
    running.child.kill('SIGINT');
    const done = await running.done;
    expect(done.code).toBe(3);
    expect(done.stdout).toMatch(/Capacity (undecided|not found)/);
    const folder = folderOf(done);
    expect(done.stdout).toContain(`goodput capacity --resume ${folder}`);
    const before = JSON.parse(readFileSync(join(folder, 'search.json'), 'utf8'));
    const known = before.probes.filter(
      (p: { measure: { clientBound: string[] } }) => p.measure.clientBound.length === 0,
    );

    const more = await run(['capacity', '--resume', folder, '--json']);
    // On a busy machine the client may be the bottleneck, which is 3 and no statement about the server.
    expect([0, 3]).toContain(more.code);
    const after = JSON.parse(readFileSync(join(folder, 'search.json'), 'utf8'));
    expect(after.probes.slice(0, known.length)).toEqual(known);
    expect(after.probes.length).toBeGreaterThan(known.length);
    expect(['above-range', 'client-bound', 'undecided']).toContain(JSON.parse(more.stdout).end);
    for (const { run: name } of after.probes) expect(existsSync(join(folder, name, 'run.json'))).toBe(true);
  }, 120_000);

  it('a sweep puts its rates into one folder with one curve', async () => {
    const done = await run([
      'bench',
      server.url,
      ...SLO,
      ...[
        '--rates',
        '10..20/10,40',
        '--requests',
        '20',
        '--warmup',
        '0.2s',
        '--input',
        '16',
        '--output',
        '4',
        '--out',
        dir,
        '--json',
      ],
    ]);
    expect([0, 3]).toContain(done.code);
    const report = JSON.parse(done.stdout);
    expect(report.end).toBe('sweep');
    expect(report.probes.map((p: { rate: number }) => p.rate)).toEqual([10, 20, 40]);
    const folder = folderOf(done);
    expect(readdirSync(join(folder, 'probes'))).toHaveLength(3);
    expect(JSON.parse(readFileSync(join(folder, 'capacity.json'), 'utf8')).probes).toHaveLength(3);
  }, 60_000);
});
