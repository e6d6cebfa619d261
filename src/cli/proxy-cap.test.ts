import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { readCap } from './proxy-cap.ts';

const dir = mkdtempSync(join(tmpdir(), 'goodput-cap-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));
const file = (name: string, json: unknown): string => {
  const path = join(dir, name);
  writeFileSync(path, JSON.stringify(json));
  return path;
};

describe('a concurrency cap', () => {
  it('is a number, the cap a plan chose, or what was in flight at the highest rate that passed', () => {
    expect(readCap('12').requests).toBe(12);
    const rows = [
      { gpu: 'a', cap: 8, gpus: 2, frontier: false },
      { gpu: 'b', cap: 64, gpus: 1, frontier: true },
    ];
    expect(readCap(file('plan.json', { schema: 'goodput.plan/1', rows })).requests).toBe(64);
    const row = (rate: number, verdict: string) => ({
      rate,
      verdict,
      ttft_ms: { p50: 500 },
      tpot_ms: { p50: 20 },
      throughput_tps: rate * 100,
    });
    const curve = [row(1, 'pass'), row(4, 'pass'), row(8, 'fail')];
    // 4/s × 0.5 s waiting, and 400 tokens/s × 20 ms each being written.
    expect(readCap(file('capacity.json', { schema: 'goodput.capacity/1', curve })).requests).toBe(10);
    expect(readCap(dir).requests).toBe(10); // a run folder
  });

  it('is refused where nothing says it', () => {
    expect(() => readCap('0')).toThrow(/serve nobody/);
    expect(() => readCap(join(dir, 'none'))).toThrow(/give a number/);
    expect(() => readCap(file('x.json', { schema: 'other' }))).toThrow(/neither a whole number/);
    expect(() => readCap(file('p.json', { schema: 'goodput.plan/1', rows: [] }))).toThrow(/no deployment/);
    expect(() => readCap(file('c.json', { schema: 'goodput.capacity/1', curve: [] }))).toThrow(/no rate that passed/);
  });
});
