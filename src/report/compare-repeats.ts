/** Repeated runs of one system: what each showed, and how much they differ, which a comparison can be told (`--spread`). */
import { formatDuration, trim } from '../base/units.ts';
import { percentText } from './contract-text.ts';
import type { Report } from './report.ts';
import { table } from './text.ts';

export function repeatsText(reports: readonly Report[]): string {
  const rows = reports.map((r, i) => [
    `run ${i + 1}`,
    r.attainment.value === null ? '–' : percentText(r.attainment.value, 4),
    r.goodput_rps === null ? '–' : `${trim(r.goodput_rps, 4)}/s`,
    ...MEANS.map((m) => (r.metrics[m] ? formatDuration(r.metrics[m].mean) : '–')),
  ]);
  const spreads = MEANS.map((m) => relativeSpread(reports.map((r) => r.metrics[m]?.mean)));
  const largest = Math.max(...spreads.map((s) => s ?? 0));
  const lines = table([
    ['', 'attainment', 'goodput', 'TTFT mean', 'TPOT mean', 'E2E mean'],
    ...rows,
    ['spread', '', '', ...spreads.map((s) => (s === undefined ? '–' : percentText(s, 2)))],
  ]);
  // Two runs, or a client that was itself the bottleneck, measure no spread of a system.
  const isWorth = reports.length >= 3 && reports.every((r) => r.client.verdict !== 'client-bound');
  if (reports.length < 2) return `${lines.join('\n')}\n`;
  return `${lines.join('\n')}\nSpread is the standard deviation between these ${reports.length} runs over their mean, other seeds included${
    reports.length < 5 ? '; of so few it is itself uncertain' : ''
  }.\n${largest > 0 && isWorth ? `A comparison can be told a spread you have measured: goodput compare --spread ${percentText(largest, 2).replace(' ', '')} A B\n` : ''}`;
}

const MEANS = ['ttft_ms', 'tpot_ms', 'e2e_ms'] as const;

function relativeSpread(values: readonly (number | undefined)[]): number | undefined {
  const x = values.filter((v) => v !== undefined);
  if (x.length < 2 || x.length < values.length) return undefined;
  const mean = x.reduce((a, b) => a + b, 0) / x.length;
  return mean > 0 ? Math.sqrt(x.reduce((s, v) => s + (v - mean) ** 2, 0) / (x.length - 1)) / mean : undefined;
}
