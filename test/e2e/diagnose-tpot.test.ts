/** ΔTPOT on simulated servers whose mechanics are known: the term that was turned is the one that holds the change. */
import { describe, expect, it } from 'vitest';
import { singleCase } from '../../bench/diagnose/gym.ts';
import { SCENARIOS } from '../../bench/diagnose/scenarios.ts';
import { diagnose, type TpotAttribution, type TpotPart } from '../../src/diagnose/index.ts';

const attributed = (id: string, seed: number): TpotAttribution => {
  const c = singleCase(SCENARIOS.find((s) => s.id === id)!, seed);
  return diagnose(c.a, c.b, { changes: c.changes }).attributionTpot;
};

describe('the split of ΔTPOT on simulated servers', () => {
  it.each([
    ['longer-outputs', 12, 'batch'],
    ['load-rise', 12, 'batch'],
    ['kv-pressure', 11, 'preemption'],
    ['speculative-acceptance', 11, 'speculation'],
    ['speculative-acceptance', 12, 'speculation'],
  ] as const)('%s (%d): %s', { timeout: 60_000 }, (id, seed, part: TpotPart) => {
    const { total, parts, residual } = attributed(id, seed);
    expect(total!.value).toBeGreaterThan(0);
    expect(parts[part]!.value).toBeGreaterThan(0.6 * total!.value);
    expect(Math.abs(residual!.value)).toBeLessThan(0.3 * total!.value);
  });

  it('a slower device at the same batch is none of the terms: the residual', { timeout: 60_000 }, () => {
    const { total, residual, parts } = attributed('clock-throttling', 12);
    expect(residual!.value).toBeGreaterThan(0.6 * total!.value);
    expect(parts.batch!.value).toBeLessThan(0.3 * total!.value);
  });
});
