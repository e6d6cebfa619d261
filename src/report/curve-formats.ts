/** A curve for spreadsheets and for pull requests. */
import { oneLine } from '../base/errors.ts';
import { trim } from '../base/units.ts';
import { answerOf, type CapacityReport, type CurveRow } from './curve-report.ts';

const COLUMNS: Readonly<Record<string, (r: CurveRow) => string | number | boolean | null>> = {
  rate: (r) => r.rate,
  verdict: (r) => r.verdict,
  attainment: (r) => r.attainment,
  low: (r) => r.low,
  high: (r) => r.high,
  level: (r) => r.level,
  goodput_rps: (r) => r.goodput_rps,
  throughput_tps: (r) => r.throughput_tps,
  offered: (r) => r.offered,
  replications: (r) => r.replications,
  unstable: (r) => r.unstable,
  shed: (r) => r.shed,
  ttft_p50_ms: (r) => r.ttft_ms.p50,
  ttft_p90_ms: (r) => r.ttft_ms.p90,
  ttft_p99_ms: (r) => r.ttft_ms.p99,
  tpot_p50_ms: (r) => r.tpot_ms.p50,
  tpot_p90_ms: (r) => r.tpot_ms.p90,
  tpot_p99_ms: (r) => r.tpot_ms.p99,
};

/** A row a rate; empty where a quantile never came. */
export function curveCsv({ curve }: CapacityReport): string {
  const rows = curve.map((r) =>
    Object.values(COLUMNS)
      .map((of) => of(r) ?? '')
      .join(','),
  );
  return `${[Object.keys(COLUMNS).join(','), ...rows].join('\n')}\n`;
}

export function curveMarkdown(report: CapacityReport): string {
  const [headline = '', ...rest] = answerOf(report);
  const percent = (x: number): string => `${trim(100 * x, 3)} %`;
  const ms = (x: number | null): string => (x === null ? '∞' : `${trim(x, 4)} ms`);
  const rows = report.curve.map((r) =>
    [
      trim(r.rate, 4),
      r.verdict,
      percent(r.attainment),
      `${percent(r.low)}–${percent(r.high)}`,
      trim(r.goodput_rps, 4),
      r.throughput_tps === null ? '?' : String(Math.round(r.throughput_tps)),
      ms(r.ttft_ms.p50),
      ms(r.ttft_ms.p99),
      ms(r.tpot_ms.p50),
      String(r.replications),
    ].join(' | '),
  );
  return `${[
    `**${cell(headline)}**`,
    '',
    ...rest.map(cell),
    '',
    '| rate | verdict | good | interval | goodput | tokens/s | TTFT p50 | TTFT p99 | TPOT p50 | runs |',
    '| ---: | :--- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |',
    ...rows.map((row) => `| ${row} |`),
    ...(report.notes.length > 0 ? ['', ...report.notes.map((n) => `- ${cell(n)}`)] : []),
    '',
    ...Object.entries(report.about).map(([name, text]) => `- ${cell(name)}: ${cell(text)}`),
  ].join('\n')}\n`;
}

/** Names come from servers and files: no markup of theirs. */
const cell = (text: string): string => oneLine(text, 400).replace(/[|<>`*_[\]\\]/g, (c) => `\\${c}`);
