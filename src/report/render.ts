/** The report for people: what must be known first stands first. */
import { oneLine } from '../base/errors.ts';
import { formatDuration, trim } from '../base/units.ts';
import { LIMIT_WORDS, limitsText, percentText } from './contract-text.ts';
import { METRIC_WORDS, plural } from './notes.ts';
import type { CohortReport, MetricName, MetricReport, OfferedReport, QuantileName, Report } from './report.ts';
import { type Paint, paint, table, wrapText } from './text.ts';

/** What of a terminal a renderer needs to know. */
export interface TextTarget {
  readonly color: boolean;
  readonly columns: number;
}

/** The whole report as text, ending in a line feed. */
export function renderReport(report: Report, terminal: TextTarget): string {
  const p = paint(terminal.color);
  const width = Math.max(60, Math.min(terminal.columns, 110));
  const sections = [
    banner(report, p, width),
    header(report, width),
    cohortLines(report, p),
    attainmentLines(report, p, width),
    classLines(report, p),
    rateLines(report),
    quantileLines(report, p),
    missLines(report, p),
    clientLines(report, p),
    noteLines(report, p, width),
  ];
  return `${sections
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n')}\n`;
}

function banner(report: Report, p: Paint, width: number): string[] {
  if (report.client.verdict !== 'client-bound') return [];
  const why = report.client.why.join('; ');
  return [
    p.bold(p.red('CLIENT-BOUND: this run proves nothing about the server')),
    wrapText(`The client was itself the bottleneck: ${why}.`, width, '  ', '  '),
  ];
}

function header(report: Report, width: number): string[] {
  const { run, contract } = report;
  const rows: [string, string | undefined][] = [
    ['run', run.name],
    ['target', run.target],
    ['model', [run.model, run.dialect && `(${run.dialect})`].filter(Boolean).join(' ') || undefined],
    ['load', run.workload],
    ['contract', `${contract.name}: ${limitsText(contract)}; ${percentText(contract.attainment)} must be good`],
    ['clock', contract.boundary === 'scheduled' ? 'from the scheduled start' : 'from dispatch'],
  ];
  return rows
    .filter((row) => row[1] !== undefined)
    .map(([name, value]) => wrapText(oneLine(value as string, 400), width, `${name.padEnd(9)} `, ' '.repeat(10)));
}

const LEDGER_ROWS: readonly [Exclude<keyof CohortReport, 'window_s' | 'excluded' | 'offered'>, string][] = [
  ['good', 'good'],
  ['late', 'late'],
  ['invalid', 'invalid'],
  ['rejected', 'rejected'],
  ['failed', 'failed'],
  ['truncated', 'truncated'],
  ['timed_out', 'timed out'],
  ['cancelled', 'cancelled'],
  ['unsent', 'unsent'],
  ['undecided', 'undecided'],
];

function cohortLines({ cohort, window, reasons }: Report, p: Paint): string[] {
  const { offered } = cohort;
  const over =
    window.seconds === null
      ? ''
      : ` over ${formatDuration(window.seconds * 1000)}${window.estimated ? ' (estimated)' : ''}`;
  const rows = LEDGER_ROWS.map(([key, name]) => [name, String(cohort[key]), sharePart(cohort[key], offered)]);
  const lines = table([...rows, ['offered', String(offered), sharePart(offered, offered)]]);
  const sum = lines.pop() as string;
  return [
    p.bold(`Cohort: ${plural(offered, 'operation')} offered${over}`),
    ...lines.map((line, i) => (rows[i]?.[1] === '0' ? p.dim(line) : line)),
    p.dim(`  ${'─'.repeat(Math.max(0, sum.length - 2))}`),
    sum,
    ...reasons
      .slice(0, 5)
      .map(
        ({ reason, count, detail }) =>
          `  ${count} × ${oneLine(reason, 60)}${detail ? `, such as: ${oneLine(detail, 80)}` : ''}`,
      ),
    ...(reasons.length > 5 ? [`  and ${plural(reasons.length - 5, 'further reason')}`] : []),
  ];
}

const sharePart = (n: number, of: number): string => (of === 0 ? '–' : `${((100 * n) / of).toFixed(1)} %`);

function attainmentLines({ attainment: a }: Report, p: Paint, width: number): string[] {
  if (a.value === null || a.low === null || a.high === null)
    return [`${p.bold('Attainment')}: undefined, no operation counts`];
  const target = `target ${percentText(a.target)}`;
  const verdict = a.met ? p.green(`${target} met`) : p.red(`${target} missed`);
  const good = Math.round(a.value * a.denominator);
  const value = a.undecided
    ? `between ${percentText(a.undecided[0], 3)} and ${percentText(a.undecided[1], 3)}`
    : percentText(a.value, 4);
  const hedge =
    a.shown === 'neither'
      ? ', which reaches to both sides of the target: not shown either way'
      : ', and shown by the interval';
  return [
    `${p.bold('Attainment')} ${value}  (${good} good of ${a.denominator})  ${verdict}`,
    wrapText(
      `95 % interval ${percentText(a.low, 3)} to ${percentText(a.high, 3)}${hedge}. It rests on ${worth(a)}${a.method_note ? `; ${a.method_note}` : ''}.`,
      width,
      '  ',
      '  ',
    ),
  ];
}

/** `100 operations worth about 63 independent ones`. */
function worth({ denominator, effective_n: n }: Report['attainment']): string {
  const all = plural(denominator, 'operation');
  return n === null || n >= denominator - 0.5 ? all : `${all} worth about ${trim(n, 2)} independent ones`;
}

function rateLines(report: Report): string[] {
  const rate = (x: number | null): string => (x === null ? 'undefined' : `${trim(x, 4)} requests/s`);
  const rows: [string, string][] = [
    ['goodput', rate(report.goodput_rps)],
    ['offered', rate(report.offered_rps) + asked(report.run.asked_rps)],
    ['achieved', rate(report.achieved_rps)],
    ['throughput', report.throughput_tps === null ? 'unknown' : `${trim(report.throughput_tps, 4)} output tokens/s`],
  ];
  if (report.goodput_rps_per_gpu !== null) rows.splice(1, 0, ['  per GPU', rate(report.goodput_rps_per_gpu)]);
  return rows.map(([name, value]) => `${name.padEnd(11)}${value}`);
}

/** A row a traffic class, under its own contract. */
function classLines({ classes }: Report, p: Paint): string[] {
  if (!classes?.length) return [];
  const rows = classes.map(({ name, contract, offered: n, good, attainment: a, misses }) => [
    oneLine(name, 40),
    String(n),
    String(good),
    a.value === null ? '–' : percentText(a.value, 3),
    a.low === null || a.high === null ? '' : `${percentText(a.low, 3)} … ${percentText(a.high, 3)}`,
    a.value === null ? '' : `${percentText(a.target)} ${a.met ? p.green('met') : p.red('missed')}`,
    limitsText(contract) +
      (Object.keys(misses).length > 0
        ? ` (missed: ${Object.entries(misses)
            .map(([limit, count]) => `${LIMIT_WORDS[limit as keyof typeof LIMIT_WORDS]} ${count}`)
            .join(', ')})`
        : ''),
  ]);
  const [head, ...lines] = table([['', 'offered', 'good', 'attained', '95 % interval', 'target', 'limits'], ...rows]);
  return [p.bold('Traffic classes'), p.dim(head as string), ...lines];
}

/** Whether the load arrived as planned, in a line. */
function arrivalLine({ arrivals: a }: Report, p: Paint): string[] {
  if (!a) return [];
  const share = (x: number | null): string => (x === null ? '' : ` (p ${trim(x, 2)})`);
  const parts = [
    a.count && `${a.count.observed} ${a.unit} of ${trim(a.count.expected, 5)} expected${share(a.count.p)}`,
    a.gaps &&
      (a.process === 'constant'
        ? `${percentText(a.gaps.distance, 2)} of gaps off`
        : `gaps at distance ${trim(a.gaps.distance, 2)}${share(a.gaps.p)}`),
    a.lag_ms && `lag p99 ${formatDuration(a.lag_ms.p99)}`,
  ].filter(Boolean);
  const verdict = a.as_planned ? p.green('as planned') : p.red('not as planned');
  return [`${p.bold('Arrivals')} ${verdict} (${a.process}): ${parts.join('; ')}`];
}

const asked = (rps: number | undefined): string => (rps === undefined ? '' : ` (asked ${trim(rps, 4)})`);

const QUANTILE_NAMES: readonly QuantileName[] = ['p50', 'p90', 'p95', 'p99'];

function quantileLines({ metrics }: Report, p: Paint): string[] {
  const rows: string[][] = [];
  const extra: string[][] = [];
  for (const name of Object.keys(METRIC_WORDS) as MetricName[]) {
    const m = metrics[name];
    if (m === null) continue;
    const label = METRIC_WORDS[name] + (m.exactness && m.exactness !== 'exact' ? ` (${m.exactness})` : '');
    rows.push([label, String(m.count), ...measured(m), '│', ...offered(m.offered)]);
    const [low, high] = m.ci?.p99 ?? [null, null];
    const interval =
      m.ci === null
        ? ''
        : `${low === null ? '?' : formatDuration(low)} … ${high === null ? '?' : formatDuration(high)}`;
    extra.push([label, formatDuration(m.mean), formatDuration(m.max), interval]);
  }
  const lines: string[] = [];
  if (rows.length > 0) {
    const head = ['', 'count', ...QUANTILE_NAMES, '│', ...QUANTILE_NAMES];
    const [first, ...rest] = table([head, ...rows]);
    lines.push(p.bold('Times over measured values │ over offered operations, where those that failed rank last'));
    lines.push(p.dim(first as string), ...rest, '');
    const [second, ...more] = table([['', 'mean', 'max', 'p99, 95 % interval'], ...extra]);
    lines.push(p.dim(second as string), ...more);
  }
  const s = metrics.smoothness;
  if (s) {
    lines.push(
      '',
      `  smoothness over ${s.count}: mean ${percentText(s.mean)}, p10 ${percentText(s.p10)}, p1 ${percentText(s.p1)}, least ${percentText(s.min)}`,
    );
  }
  return lines;
}

function measured(m: MetricReport): string[] {
  return QUANTILE_NAMES.map((q) => `${formatDuration(m[q])}${m.unsupported.includes(q) ? '*' : ''}`);
}

function offered(o: OfferedReport | null): string[] {
  return QUANTILE_NAMES.map((q) => {
    if (o === null) return '–';
    const value = o[q];
    return value === null ? `> ${formatDuration(o.censored_above ?? 0)}` : formatDuration(value);
  });
}

function missLines(report: Report, p: Paint): string[] {
  const names = Object.keys(report.misses) as (keyof typeof report.misses)[];
  if (names.length === 0) return [];
  const rows = names.map((name) => [
    LIMIT_WORDS[name],
    String(report.misses[name] ?? 0),
    String(report.misses_alone[name] ?? 0),
  ]);
  const [head, ...lines] = table([['', 'missed by', 'alone'], ...rows]);
  const joint = report.misses_joint
    .filter((m) => m.limits.length > 1)
    .slice(0, 6)
    .map((m) => `  ${m.count} missed ${m.limits.map((n) => LIMIT_WORDS[n]).join(' and ')} together`);
  return [p.bold('Limits missed by late operations'), p.dim(head as string), ...lines, ...joint];
}

function clientLines(report: Report, p: Paint): string[] {
  const { client, tokens } = report;
  const sources = Object.entries(tokens.sources).map(([source, n]) => `${SOURCE_WORDS[source] ?? source} (${n})`);
  const lines = [
    ...arrivalLine(report, p),
    `${p.bold('Tokens')} counted by ${sources.length === 0 ? 'nothing: no output' : sources.join(', ')}`,
  ];
  if (client.verdict === 'unknown') return [...lines, `${p.bold('Client')} unknown: nothing is recorded of it`];
  const parts: string[] = [];
  if (client.send_lag_ms)
    parts.push(`send lag p50 ${formatDuration(client.send_lag_ms.p50)}, p99 ${formatDuration(client.send_lag_ms.p99)}`);
  if (client.event_loop_ms) parts.push(`event-loop delay p99 ${formatDuration(client.event_loop_ms.p99)}`);
  if (client.stamp_late_ms) {
    const { p50, p99 } = client.stamp_late_ms;
    parts.push(`stamps late behind streams read first p50 ${formatDuration(p50)}, p99 ${formatDuration(p99)}`);
  }
  if (client.coalesced !== null) parts.push(`${percentText(client.coalesced, 2)} of events coalesced`);
  if (client.cpu !== null) parts.push(`CPU ${percentText(client.cpu, 2)} of one core`);
  const verdict = client.verdict === 'ok' ? p.green('ok') : p.red('client-bound');
  return [...lines, `${p.bold('Client')} ${verdict}${parts.length > 0 ? `: ${parts.join('; ')}` : ''}`];
}

const SOURCE_WORDS: Readonly<Record<string, string>> = {
  'per-chunk': 'the stream, chunk by chunk',
  usage: "the server's usage",
  tokenizer: 'a tokenizer',
  unknown: 'unknown',
};

function noteLines({ notes }: Report, p: Paint, width: number): string[] {
  const shown = notes.filter((n) => n.mark !== 'client-bound');
  if (shown.length === 0) return [];
  return [p.bold('Notes'), ...shown.map((n) => wrapText(oneLine(n.text, 1000), width, '  - ', '    '))];
}

/** The report as JSON, ending in a line feed. */
export function reportJson(report: Report): string {
  return `${JSON.stringify(report, null, 2)}\n`;
}
