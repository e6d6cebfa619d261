import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { emulate, folderOf, run, type Served, scratch, start } from './cli.ts';

const { dir, remove } = scratch();
afterAll(remove);

const SIMULATED = ['capacity', '--simulate', '--ideal', '--model', 'llama-3.1-8b', '--gpu', 'h100-sxm', '--json'];
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
