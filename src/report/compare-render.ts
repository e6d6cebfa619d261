/** A comparison for people: text for a terminal, Markdown for a pull request. What may be said stands first. */
import { oneLine } from '../base/errors.ts';
import { formatDuration, trim } from '../base/units.ts';
import type { ComparedRunFacts, Comparison } from './compare.ts';
import type { Figure } from './compare-figure.ts';
import type { ThresholdResult } from './compare-thresholds.ts';
import { limitsText, percentText } from './contract-text.ts';
import type { TextTarget } from './render.ts';
import { type Paint, paint, table, wrapText } from './text.ts';

const HEAD = ['', 'A', 'B', 'B − A', '95 % interval', 'verdict'] as const;

export function renderComparison(
  comparison: Comparison,
  terminal: TextTarget,
  thresholds: readonly ThresholdResult[] = [],
): string {
  const p = paint(terminal.color);
  const width = Math.max(60, Math.min(terminal.columns, 110));
  const rows = shownFigures(comparison).map((f) => cells(f));
  const lines = table([[...HEAD], ...rows]);
  const sections = [
    [p.bold(colour(comparison.verdict, p)(wrapText(sentence(comparison), width)))],
    [
      ...sideLines('A', comparison.a, width),
      ...sideLines('B', comparison.b, width),
      wrapText(`contract  ${limitsText(comparison.contract)}`, width, '', ' '.repeat(10)),
      wrapText(`compared  ${groundsText(comparison)}`, width, '', ' '.repeat(10)),
    ],
    lines.map((line, i) => (i === 0 ? p.dim(line) : line)),
    whyLines(comparison, width),
    thresholdLines(thresholds, p),
    comparison.notes.length === 0
      ? []
      : [p.bold('Notes'), ...comparison.notes.map((note) => wrapText(oneLine(note, 1000), width, '  - ', '    '))],
  ];
  return `${sections
    .filter((section) => section.length > 0)
    .map((section) => section.join('\n'))
    .join('\n\n')}\n`;
}

export function comparisonMarkdown(comparison: Comparison, thresholds: readonly ThresholdResult[] = []): string {
  const row = (texts: readonly string[]): string => `| ${texts.map(cell).join(' | ')} |`;
  const lines = [
    `### ${cell(sentence(comparison))}`,
    '',
    `A: ${comparison.a.map((run) => cell(run.name)).join(', ')}  `,
    `B: ${comparison.b.map((run) => cell(run.name)).join(', ')}  `,
    `Contract: ${cell(limitsText(comparison.contract))}; compared ${cell(groundsText(comparison))}.`,
    '',
    row(['figure', ...HEAD.slice(1)]),
    '|---|--:|--:|--:|--:|---|',
    ...shownFigures(comparison).map((f) => row(cells(f))),
  ];
  if (thresholds.length > 0) {
    lines.push(
      '',
      ...thresholds.map((t) => `- ${t.missed ? '**missed**' : 'kept'}: \`${t.text}\` (${cell(foundText(t))})`),
    );
  }
  if (comparison.notes.length > 0) lines.push('', ...comparison.notes.map((note) => `- ${cell(note)}`));
  return `${lines.join('\n')}\n`;
}

export function comparisonJson(comparison: Comparison, thresholds: readonly ThresholdResult[] = []): string {
  return `${JSON.stringify({ ...comparison, thresholds }, null, 2)}\n`;
}

/** Those that are there and say something of their own. */
function shownFigures({ figures }: Comparison): Figure[] {
  return figures.filter(
    (f) => f.same_as === null && !(f.a === null && f.b === null && f.why === 'not known in every run'),
  );
}

/** What must be known of figures, each reason once. */
function whyLines({ figures }: Comparison, width: number): string[] {
  const names = new Map<string, string[]>();
  for (const f of figures) {
    if (f.why === null || f.same_as !== null || f.why === 'not known in every run') continue;
    names.set(f.why, [...(names.get(f.why) ?? []), f.name]);
  }
  return [...names].map(([why, of]) => wrapText(`${of.join(', ')}: ${why}`, width, '  ', '    '));
}

function sentence({ verdict, summary }: Comparison): string {
  const text = summary.replace(/\s+/g, ' ');
  return verdict === 'void' ? text.replace(/^void/, 'VOID') : text[0]!.toUpperCase() + text.slice(1);
}

function colour(verdict: Comparison['verdict'], p: Paint): (s: string) => string {
  if (verdict === 'worse' || verdict === 'void') return p.red;
  if (verdict === 'better') return p.green;
  return verdict === 'mixed' ? p.yellow : (s) => s;
}

function sideLines(side: string, runs: readonly ComparedRunFacts[], width: number): string[] {
  return runs.map((run, i) =>
    wrapText(
      `${oneLine(run.name, 200)}: ${run.offered} operations, ${run.attainment === null ? 'attainment undefined' : `${percentText(run.attainment, 4)} good`}, seed ${run.seed ?? 'unknown'}`,
      width,
      i === 0 ? `${side}         ` : ' '.repeat(10),
      ' '.repeat(10),
    ),
  );
}

function groundsText({ a, b, paired, common_operations, stated_spread }: Comparison): string {
  const runs =
    a.length === b.length
      ? `${a.length} ${a.length === 1 ? 'run' : 'runs'} a side`
      : `${a.length} and ${b.length} runs`;
  const how = paired ? `paired over ${common_operations} common operations` : 'not paired';
  return `${runs}, ${how}${stated_spread === null ? '' : `, runs of one system taken to differ by ${percentText(stated_spread)}`}`;
}

function cells(f: Figure): string[] {
  const value = (x: number | null): string =>
    x === null ? (f.why?.includes('infinite') ? '∞' : '–') : figureText(f, x);
  const change = (x: number | null): string =>
    x === null ? '–' : f.relative === null ? signed(f, x) : percentSigned(x);
  const [middle, low, high] =
    f.relative === null ? [f.difference, f.low, f.high] : [f.relative, f.relative_low, f.relative_high];
  return [
    f.name,
    value(f.a),
    value(f.b),
    change(middle),
    low === null || high === null ? '–' : `${change(low)} … ${change(high)}`,
    f.verdict,
  ];
}

function figureText(f: Figure, x: number): string {
  switch (f.unit) {
    case 'share':
      return `${(100 * x).toFixed(2)} %`;
    case 'ms':
      return formatDuration(x);
    default:
      return `${trim(x, 4)}/s`;
  }
}

function signed(f: Figure, x: number): string {
  const sign = x > 0 ? '+' : x < 0 ? '−' : '';
  return f.unit === 'share' ? `${sign}${(100 * Math.abs(x)).toFixed(2)} pp` : `${sign}${figureText(f, Math.abs(x))}`;
}

function percentSigned(x: number): string {
  return `${x > 0 ? '+' : x < 0 ? '−' : ''}${(100 * Math.abs(x)).toFixed(1)} %`;
}

function thresholdLines(thresholds: readonly ThresholdResult[], p: Paint): string[] {
  return thresholds.map((t) => `${t.missed ? p.red('missed') : p.green('kept  ')}  ${t.text}  (${foundText(t)})`);
}

function foundText(t: ThresholdResult): string {
  if (t.found === null) return `${t.figure} is undefined or infinite, which no threshold passes`;
  const value =
    t.of === 'relative'
      ? percentSigned(t.found)
      : t.figure === 'attainment'
        ? `${t.of === 'difference' && t.found > 0 ? '+' : ''}${(100 * t.found).toFixed(2)} ${t.of === 'difference' ? 'pp' : '%'}`
        : t.figure.includes('.')
          ? formatDuration(t.found)
          : trim(t.found, 4);
  return `${value}${t.shown === false && t.missed ? ', not shown beyond chance' : t.shown ? ', shown' : ''}`;
}

function cell(text: string): string {
  return oneLine(text, 1000).replace(/[|<>`*_[\]\\]/g, (c) => `\\${c}`);
}
