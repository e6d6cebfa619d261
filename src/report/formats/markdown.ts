/** The report as Markdown: for a pull request, an issue, a wiki. */
import { oneLine } from '../../base/errors.ts';
import { formatDuration, trim } from '../../base/units.ts';
import { limitsText, percentText } from '../contract-text.ts';
import type { MetricName, Report } from '../report.ts';

const METRICS: readonly [MetricName, string][] = [
  ['ttft_ms', 'TTFT'],
  ['ttfa_ms', 'TTFA'],
  ['tpot_ms', 'TPOT'],
  ['chunk_gap_ms', 'chunk gap'],
  ['max_gap_ms', 'largest gap'],
  ['latency_ms', 'last-token latency'],
  ['e2e_ms', 'E2E'],
];

export function reportMarkdown(report: Report): string {
  const { attainment: a, contract, cohort, run, client } = report;
  const share = a.value === null ? 'undefined' : percentText(a.value, 4);
  const lines = [
    `### ${client.verdict === 'client-bound' ? 'CLIENT-BOUND, proves nothing: ' : ''}${safe(run.name ?? 'run')}: ${share} good, target ${percentText(a.target)} ${a.met ? 'met' : 'missed'}`,
    '',
    ...[
      ['target', run.target],
      ['model', run.model],
      ['load', run.workload],
      ['contract', limitsText(contract)],
      ['clock', report.boundary === 'scheduled' ? 'from the scheduled start' : 'from dispatch'],
      [
        '95 % interval',
        a.low === null || a.high === null ? undefined : `${percentText(a.low, 3)} to ${percentText(a.high, 3)}`,
      ],
      ['goodput', rate(report.goodput_rps, 'requests/s')],
      ['offered', rate(report.offered_rps, 'requests/s')],
      ['throughput', rate(report.throughput_tps, 'output tokens/s')],
    ].flatMap(([name, value]) => (value === undefined ? [] : [`- **${name}**: ${safe(value)}`])),
    '',
    '| operations | |',
    '|---|--:|',
    ...Object.entries(cohort)
      .filter(([key, n]) => key !== 'window_s' && n !== 0)
      .map(([key, n]) => `| ${key.replace('_', ' ')} | ${n} |`),
    '',
    '| | count | mean | p50 | p90 | p95 | p99 | p99 over offered |',
    '|---|--:|--:|--:|--:|--:|--:|--:|',
    ...METRICS.flatMap(([key, word]) => {
      const m = report.metrics[key];
      if (!m) return [];
      const mark = (q: 'p90' | 'p95' | 'p99' | 'p50'): string =>
        `${formatDuration(m[q])}${m.unsupported.includes(q) ? ' \\*' : ''}`;
      const offered =
        m.offered === null
          ? '–'
          : m.offered.p99 === null
            ? `> ${formatDuration(m.offered.censored_above ?? 0)}`
            : formatDuration(m.offered.p99);
      return [
        `| ${word} | ${m.count} | ${formatDuration(m.mean)} | ${mark('p50')} | ${mark('p90')} | ${mark('p95')} | ${mark('p99')} | ${offered} |`,
      ];
    }),
    '',
    '\\* more than so many values can support.',
  ];
  if (report.notes.length > 0) lines.push('', ...report.notes.map((n) => `- ${safe(n.text)}`));
  return `${lines.join('\n')}\n`;
}

function rate(x: number | null, unit: string): string | undefined {
  return x === null ? undefined : `${trim(x, 4)} ${unit}`;
}

function safe(text: string): string {
  return oneLine(text, 1000).replace(/[|<>`*_[\]\\]/g, (c) => `\\${c}`);
}
