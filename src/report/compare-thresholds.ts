/**
 * Thresholds for a pipeline: `ttft.p99>+5%,attainment<90%`. Each names a figure, a relation and a value, and is missed when
 * the relation holds.
 *
 *   list   = threshold *("," threshold)
 *   threshold = figure (">" | ">=" | "<" | "<=") value
 *   figure = "attainment" | "goodput" | "throughput" | metric ["." statistic]     statistic p50 when absent
 *   value  = ("+" | "-") number "%"      a change of B against A in percent; of attainment, in percentage points
 *          | ("+" | "-") number [unit]   a change in the figure's unit
 *          | number ["%" | unit]         the figure of B itself
 *   unit   = "us" | "ms" | "s"           of metrics; without one, ms
 */
import { InputError, oneLine } from '../base/errors.ts';
import { didYouMean } from '../base/nearest.ts';
import type { Comparison } from './compare.ts';
import { FIGURE_NAMES } from './compare-drafts.ts';
import type { Figure } from './compare-figure.ts';
import { COMPARED_METRICS } from './compare-run.ts';

type Relation = '>' | '>=' | '<' | '<=';

export interface Threshold {
  /** As written. */
  readonly text: string;
  readonly figure: string;
  readonly relation: Relation;
  /** What is held against the value: B's figure, its difference to A's, or that as a share of A's. */
  readonly of: 'b' | 'difference' | 'relative';
  readonly value: number;
}

export interface ThresholdResult extends Threshold {
  readonly missed: boolean;
  /** The whole interval lies beyond the value: it is missed beyond chance in these runs. Null for B's figure itself. */
  readonly shown: boolean | null;
  /** What was held against the value; null where the figure is undefined or infinite. */
  readonly found: number | null;
}

const ONE = /^\s*([A-Za-z][A-Za-z0-9_.]*)\s*(>=|<=|>|<)\s*([+-]?)\s*(\d+(?:\.\d+)?|\.\d+)\s*(%|us|µs|ms|s)?\s*$/;
const UNIT: Readonly<Record<string, number>> = { us: 0.001, µs: 0.001, ms: 1, s: 1000 };

/** @throws InputError naming the part that cannot be read, with the nearest name for an unknown one. */
export function parseThresholds(text: string): Threshold[] {
  return text.split(',').map((part) => {
    const m = ONE.exec(part);
    if (!m) {
      throw new InputError(
        `--fail-on: '${oneLine(part, 60)}' is not a threshold; write like 'ttft.p99>+5%', 'attainment<90%' or 'tpot.p50>30ms'`,
      );
    }
    const [, name, relation, sign, digits, unit] = m as unknown as [string, string, Relation, string, string, string?];
    const figure = figureName(name);
    const isMetric = figure.includes('.');
    const number = Number(digits) * (sign === '-' ? -1 : 1);
    if (unit !== undefined && unit !== '%' && !isMetric) {
      throw new InputError(`--fail-on: '${oneLine(part, 60)}' gives ${figure} a time; write a plain number or a share`);
    }
    const base = { text: part.trim(), figure, relation };
    if (unit === '%' && figure === 'attainment') {
      return { ...base, of: sign === '' ? 'b' : 'difference', value: number / 100 };
    }
    if (unit === '%') {
      if (sign === '') {
        throw new InputError(
          `--fail-on: '${oneLine(part, 60)}' is no change: write +${digits}% or -${digits}%, or the value itself with its unit`,
        );
      }
      return { ...base, of: 'relative', value: number / 100 };
    }
    return {
      ...base,
      of: sign === '' ? 'b' : 'difference',
      value: number * (isMetric ? (UNIT[unit ?? 'ms'] as number) : 1),
    };
  });
}

/** @throws InputError for a name that is no figure's. */
export function checkFigureName(name: string, flag: string): void {
  if (FIGURE_NAMES.includes(name)) return;
  throw new InputError(
    `${flag}: no figure is called '${oneLine(name, 40)}'${didYouMean(name, [...COMPARED_METRICS, ...FIGURE_NAMES])}; there are attainment, goodput, throughput and ${COMPARED_METRICS.join(', ')} with .mean, .p50, .p90, .p95 or .p99`,
  );
}

function figureName(name: string): string {
  if (FIGURE_NAMES.includes(name)) return name;
  if ((COMPARED_METRICS as readonly string[]).includes(name)) return `${name}.p50`;
  checkFigureName(name, '--fail-on');
  return name;
}

/** @param onlyShown a change counts as missed only when its whole interval is beyond the value. */
export function checkThresholds(
  comparison: Comparison,
  thresholds: readonly Threshold[],
  onlyShown = false,
): ThresholdResult[] {
  return thresholds.map((t) => {
    let figure = comparison.figures.find((f) => f.name === t.figure);
    if (figure?.same_as) figure = comparison.figures.find((f) => f.name === figure!.same_as);
    const found = figure ? figure[t.of] : null;
    if (!figure || found === null) {
      // An infinite quantile exceeds any limit; what is not known cannot be passed.
      return { ...t, missed: true, shown: null, found: null };
    }
    const holds = compare(found, t);
    const shown = t.of === 'b' ? null : holds && compare(edge(figure, t), t);
    return { ...t, found, shown, missed: holds && (!onlyShown || shown !== false) };
  });
}

/** The end of the interval nearest to the threshold's other side. */
function edge(figure: Figure, { of, relation }: Threshold): number {
  const [low, high] = of === 'relative' ? [figure.relative_low, figure.relative_high] : [figure.low, figure.high];
  return relation.startsWith('>') ? (low ?? Number.NEGATIVE_INFINITY) : (high ?? Number.POSITIVE_INFINITY);
}

function compare(x: number, { relation, value }: Threshold): boolean {
  switch (relation) {
    case '>':
      return x > value;
    case '>=':
      return x >= value;
    case '<':
      return x < value;
    default:
      return x <= value;
  }
}
