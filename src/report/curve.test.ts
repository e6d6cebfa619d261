import { describe, expect, it } from 'vitest';
import { drawCurve } from './curve.ts';

const plain = { color: false, columns: 80 };
const at = (rate: number, attainment: number, verdict: 'pass' | 'fail' | 'undecided' | 'void', confirmed = true) => ({
  rate,
  attainment,
  low: Math.max(0, attainment - 0.05),
  high: Math.min(1, attainment + 0.05),
  verdict,
  confirmed,
});

describe('the drawn curve', () => {
  it('shows each verdict with its interval, the target and capacity, within the width', () => {
    const lines = drawCurve(
      {
        points: [at(1, 0.99, 'pass', false), at(10, 0.96, 'pass'), at(12, 0.7, 'fail'), at(11, 0.9, 'undecided')],
        target: 0.9,
        capacity: { low: 10, high: 12 },
      },
      plain,
    );
    const text = lines.join('\n');
    for (const mark of ['o', '●', '✖', '?', '│', '┄', '▲', '90 % ┤', '100 % ┤', '10 to 12 requests/s'])
      expect(text).toContain(mark);
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(plain.columns + 10);
  });

  it('draws nothing of a single rate, and leaves void probes out', () => {
    expect(drawCurve({ points: [at(5, 0.9, 'pass')], target: 0.9 }, plain)).toEqual([]);
    expect(drawCurve({ points: [at(5, 0.9, 'pass'), at(9, 0.9, 'void')], target: 0.9 }, plain)).toEqual([]);
  });
});
