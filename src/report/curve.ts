/** The attainment–rate curve drawn in a terminal: each rate with its interval, the target, and where capacity lies. */
import type { PerSecond, Share } from '../base/units.ts';
import { trim } from '../base/units.ts';
import { type Paint, paint } from './text.ts';

export type CurveVerdict = 'pass' | 'fail' | 'undecided' | 'void';

export interface CurvePlot {
  readonly points: readonly {
    readonly rate: PerSecond;
    readonly attainment: Share;
    readonly low: Share;
    readonly high: Share;
    readonly verdict: CurveVerdict;
    /** Rests on replications, not on one run. */
    readonly confirmed: boolean;
  }[];
  readonly target: Share;
  /** Marked under the axis. */
  readonly capacity?: { readonly low: PerSecond | null; readonly high: PerSecond | null };
  /** What a rate counts, default requests. */
  readonly unit?: string;
}

/** Rows of attainment, from 100 % down to the lowest point seen. */
const ROWS = 11;
const LABEL = 6;

const MARK: Readonly<Record<CurveVerdict, readonly [single: string, confirmed: string]>> = {
  pass: ['o', '●'],
  fail: ['x', '✖'],
  undecided: ['?', '?'],
  void: ['-', '-'],
};

/** Lines of at most `columns` characters, rates on a log axis. Fewer than two distinct rates draw nothing. */
export function drawCurve(plot: CurvePlot, terminal: { readonly color: boolean; readonly columns: number }): string[] {
  const points = plot.points.filter((p) => p.verdict !== 'void' && p.rate > 0);
  const rates = points.map((p) => p.rate);
  const from = Math.min(...rates);
  const to = Math.max(...rates);
  if (!(to > from)) return [];
  const p = paint(terminal.color);
  const width = Math.max(20, Math.min(terminal.columns, 100) - LABEL - 3);
  const column = (rate: PerSecond): number => Math.round((Math.log(rate / from) / Math.log(to / from)) * (width - 1));
  const floor = Math.max(0, Math.min(plot.target - 0.1, Math.floor(Math.min(...points.map((q) => q.low)) * 10) / 10));
  const row = (share: Share): number => Math.round(((1 - share) / (1 - floor)) * (ROWS - 1));

  const cells: string[][] = Array.from({ length: ROWS }, () => Array.from({ length: width }, () => ' '));
  const put = (r: number, c: number, text: string): void => {
    const line = cells[Math.max(0, Math.min(ROWS - 1, r))];
    if (line) line[Math.max(0, Math.min(width - 1, c))] = text;
  };
  for (let c = 0; c < width; c++) put(row(plot.target), c, p.dim('┄'));
  // What was confirmed is drawn last, over what only steered; bars before marks.
  const order = [...points].sort((a, b) => Number(a.confirmed) - Number(b.confirmed) || a.rate - b.rate);
  for (const q of order) {
    for (let r = row(q.high); r <= row(q.low); r++) put(r, column(q.rate), q.confirmed ? '│' : p.dim('╎'));
  }
  for (const q of order) put(row(q.attainment), column(q.rate), styled(q.verdict, q.confirmed, p));

  const lines = cells.map((line, r) => {
    const share = 1 - (r * (1 - floor)) / (ROWS - 1);
    const label = r === row(plot.target) ? percent(plot.target) : r % 5 === 0 ? percent(share) : '';
    return `${label.padStart(LABEL)} ┤${line.join('')}`.trimEnd();
  });
  const ticks = axis(from, to, width, column, plot);
  const legend = '● pass  ✖ fail  ? undecided, with their intervals; o x one run, which only steers';
  return [
    ...lines,
    ...ticks.map((t) => `${' '.repeat(LABEL + 2)}${t}`.trimEnd()),
    p.dim(`${' '.repeat(LABEL + 2)}${legend}`),
  ];
}

function styled(verdict: CurveVerdict, confirmed: boolean, p: Paint): string {
  const mark = MARK[verdict][confirmed ? 1 : 0];
  if (!confirmed) return p.dim(mark);
  return verdict === 'pass' ? p.green(mark) : verdict === 'fail' ? p.red(mark) : p.yellow(mark);
}

/** The axis, its labels where they find room, and capacity under it. */
function axis(
  from: PerSecond,
  to: PerSecond,
  width: number,
  column: (rate: PerSecond) => number,
  { capacity, unit = 'requests' }: CurvePlot,
): string[] {
  const line = Array.from({ length: width }, () => '─');
  const labels = Array.from({ length: width + 12 }, () => ' ');
  let free = 0;
  const last = `${trim(to, 3)}/s`;
  const end = Math.max(0, width - last.length);
  for (const rate of [from, ...decades(from, to), to]) {
    const text = rate === to ? last : trim(rate, 3);
    const at = rate === to ? end : column(rate);
    if (at < free || (rate !== to && at + text.length + 1 > end)) continue;
    line[Math.min(width - 1, column(rate))] = '┬';
    for (let i = 0; i < text.length; i++) labels[at + i] = text[i] as string;
    free = at + text.length + 2;
  }
  const out = [line.join(''), labels.join('')];
  if (capacity && capacity.low !== null && capacity.high !== null) {
    const a = column(Math.max(from, capacity.low));
    const b = Math.max(a, column(Math.min(to, capacity.high)));
    const text = `${trim(capacity.low, 4)} to ${trim(capacity.high, 4)} ${unit}/s`;
    const bar = a === b ? '▲' : `▲${'═'.repeat(b - a - 1)}▲`;
    const before = a - text.length - 1;
    out.push(
      b + 1 + text.length <= width || before < 0
        ? `${' '.repeat(a)}${bar} ${text}`
        : `${' '.repeat(before)}${text} ${bar}`,
    );
  }
  return out;
}

/** 1, 2 and 5 times the powers of ten between two rates. */
function decades(from: PerSecond, to: PerSecond): number[] {
  const found: number[] = [];
  for (let e = Math.floor(Math.log10(from)); e <= Math.ceil(Math.log10(to)); e++) {
    for (const m of [1, 2, 5]) {
      const rate = Number(`${m}e${e}`);
      if (rate > from * 1.05 && rate < to / 1.05) found.push(rate);
    }
  }
  return found;
}

const percent = (x: Share): string => `${trim(100 * x, 3)} %`;
