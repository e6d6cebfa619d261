import { describe, expect, it } from 'vitest';
import { curveCsv, curveMarkdown } from './curve-formats.ts';
import { type CapacityReport, type CurveRow, renderCapacity } from './curve-report.ts';

const row = (rate: number, verdict: CurveRow['verdict']): CurveRow => ({
  rate,
  verdict,
  attainment: 0.95,
  low: 0.92,
  high: 0.97,
  level: 0.95,
  goodput_rps: 0.95 * rate,
  offered: 500,
  unstable: false,
  throughput_tps: null,
  ttft_ms: { p50: 100, p90: 200, p99: null },
  tpot_ms: { p50: 10, p90: 12, p99: 15 },
  role: 'confirm',
  replications: 5,
  shed: 0,
  because: '',
  why: '',
});
const report: CapacityReport = {
  schema: 'goodput.capacity/1',
  end: 'found',
  unit: 'sessions',
  capacity: { low: 8, high: 9, confidence: 0.95 },
  target: 0.9,
  probes: [row(8, 'pass'), row(9, 'fail')],
  curve: [row(8, 'pass'), row(9, 'fail')],
  goodput_at_capacity_rps: 7.6,
  per_gpu_rps: null,
  goodput_per_gpu_rps: null,
  gpus: null,
  bracket: { low: 8, high: 9 },
  binding: { limit: 'ttft', class: 'chat', share: 0.2 },
  notes: [],
  runs: 10,
  offered: 5000,
  seconds: 60,
  about: { target: 'a <script>|`server`' },
};

describe('a curve in other forms', () => {
  it('is a row a rate, empty where a quantile never came', () => {
    const [head = '', first = '', ...rest] = curveCsv(report).trim().split('\n');
    const at = (name: string): string | undefined => first.split(',')[head.split(',').indexOf(name)];
    expect([at('rate'), at('verdict'), at('ttft_p90_ms'), at('ttft_p99_ms')]).toEqual(['8', 'pass', '200', '']);
    expect(rest).toHaveLength(1);
  });

  it('as Markdown leads with the answer, and lets no markup of a server through', () => {
    const text = curveMarkdown(report);
    expect(text).toMatch(/^\*\*Capacity 8 to 9 sessions\/s at 90 % attainment/);
    expect(text).toContain('| 8 | pass | 95 % |');
    expect(text).toContain('∞');
    expect(text).not.toMatch(/[^\\]<script/);
    expect(text).not.toMatch(/[^\\]`server/);
  });

  it('names the unit of its rates, and the class whose limit is missed', () => {
    const text = renderCapacity(report, { color: false, columns: 100 });
    expect(text).toContain('Capacity 8 to 9 sessions/s');
    expect(text).toContain('Goodput there 7.6 requests/s');
    expect(text).toMatch(/▲═+▲ 8 to 9 sessions\/s|8 to 9 sessions\/s ▲═+▲/);
    expect(text).toContain('the TTFT limit of class chat');
  });
});
