/** What a search for capacity or a sweep reports: the JSON is this object. */
import { oneLine } from '../base/errors.ts';
import { formatDuration, type Millis, type PerSecond, type Share, trim } from '../base/units.ts';
import { type CurveVerdict, drawCurve } from './curve.ts';
import { paint, table, wrapText } from './text.ts';

export interface CurveQuantiles {
  readonly p50: Millis | null;
  readonly p90: Millis | null;
  readonly p99: Millis | null;
}

/** A rate: one run, or the replications of a group together. */
export interface CurveRow {
  /** Offered, requests/s. */
  readonly rate: PerSecond;
  readonly verdict: CurveVerdict;
  readonly attainment: Share;
  /** Interval of attainment, at `level`. */
  readonly low: Share;
  readonly high: Share;
  readonly level: Share;
  readonly goodput_rps: PerSecond;
  /** Operations of the cohorts. */
  readonly offered: number;
  /** TTFT climbs through the run: the queue grows without bound. */
  readonly unstable: boolean;
  readonly throughput_tps: PerSecond | null;
  /** Over offered operations; null: that quantile never came. */
  readonly ttft_ms: CurveQuantiles;
  readonly tpot_ms: CurveQuantiles;
  readonly role: 'unloaded' | 'steer' | 'confirm' | 'sweep';
  readonly replications: number;
  /** Share cancelled at the deadline. */
  readonly shed: Share;
  readonly because: string;
  readonly why: string;
  /** Run folder of a single run, within the folder of the whole. */
  readonly run?: string;
}

export interface CapacityReport {
  readonly schema: 'goodput.capacity/1';
  /** `sweep` looks at given rates and decides no capacity. */
  readonly end: 'found' | 'infeasible' | 'client-bound' | 'above-range' | 'undecided' | 'interrupted' | 'sweep';
  /** What a rate counts. Absent: requests. */
  readonly unit?: 'requests' | 'sessions';
  readonly capacity: { readonly low: PerSecond | null; readonly high: PerSecond | null; readonly confidence: Share };
  readonly target: Share;
  /** In the order they were run. */
  readonly probes: readonly CurveRow[];
  /** By rate: of each the entry that rests on most. */
  readonly curve: readonly CurveRow[];
  /** Goodput measured at the highest rate that passes. */
  readonly goodput_at_capacity_rps: PerSecond | null;
  /** `capacity.low` a GPU, and that goodput a GPU; null without --gpus. */
  readonly per_gpu_rps: PerSecond | null;
  readonly goodput_per_gpu_rps: PerSecond | null;
  readonly gpus: number | null;
  /** Where capacity seems to lie by single runs alone. */
  readonly bracket: { readonly low: PerSecond | null; readonly high: PerSecond | null };
  /** What is missed most: unloaded when infeasible, else at the lowest rate that fails. */
  readonly binding: { readonly limit: string; readonly class: string; readonly share: Share } | null;
  readonly notes: readonly string[];
  readonly runs: number;
  readonly offered: number;
  readonly seconds: number;
  /** Target, contract and load in words. */
  readonly about: Readonly<Record<string, string>>;
}

export function renderCapacity(
  report: CapacityReport,
  terminal: { readonly color: boolean; readonly columns: number },
): string {
  const p = paint(terminal.color);
  const width = Math.max(60, Math.min(terminal.columns, 110));
  const about = Object.entries(report.about).map(([name, text]) =>
    wrapText(oneLine(text, 400), width, `${name.padEnd(9)} `, ' '.repeat(10)),
  );
  const [headline = '', ...rest] = answerOf(report);
  const rows = report.curve.map((r) => [
    trim(r.rate, 4),
    r.verdict + (r.replications > 1 ? '' : ' ·'),
    percent(r.attainment),
    `${percent(r.low)}–${percent(r.high)}`,
    trim(r.goodput_rps, 4),
    r.throughput_tps === null ? '?' : String(Math.round(r.throughput_tps)),
    quantile(r.ttft_ms.p50),
    quantile(r.ttft_ms.p99),
    quantile(r.tpot_ms.p50),
    quantile(r.tpot_ms.p90),
    r.unstable ? 'grows' : '',
  ]);
  const head = [
    'rate',
    'verdict',
    'good',
    'interval',
    'goodput',
    'tokens/s',
    'TTFT p50',
    'p99',
    'TPOT p50',
    'p90',
    'queue',
  ];
  const drawn = drawCurve(
    {
      points: aboutTheKnee(report).map((r) => ({ ...r, confirmed: r.replications > 1 })),
      target: report.target,
      capacity: report.capacity,
      unit: report.unit ?? 'requests',
    },
    terminal,
  );
  const notes = report.notes.map((n) => wrapText(n, width, '- ', '  '));
  const single = report.curve.some((r) => r.replications === 1)
    ? [p.dim('  · one run: its interval is indicative only')]
    : [];
  return `${[
    about,
    [wrapText(p.bold(headline), width), ...rest.map((line) => wrapText(line, width, '  ', '  '))],
    drawn,
    rows.length > 0 ? [...table([head, ...rows]), ...single] : [],
    notes,
  ]
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n')}\n`;
}

/** Within a factor of three of where capacity lies: the almost unloaded rate would take up most of the axis. */
function aboutTheKnee({ curve, capacity, bracket }: CapacityReport): readonly CurveRow[] {
  const low = capacity.low ?? bracket.low;
  const high = capacity.high ?? bracket.high;
  if (low === null || high === null) return curve;
  const near = curve.filter((r) => r.rate >= low / 3 && r.rate <= high * 3);
  return near.length >= 3 ? near : curve;
}

/** The answer in sentences, the first of them the headline. */
export function answerOf(report: CapacityReport): string[] {
  const { capacity, bracket, binding, target, unit = 'requests' } = report;
  const rate = (x: PerSecond): string => `${trim(x, 4)} ${unit}/s`;
  const cost = `From ${report.offered.toLocaleString('en')} measured requests in ${report.runs} runs, ${formatDuration(report.seconds * 1000)} of load.`;
  const missed = binding
    ? `${limitWords(binding.limit)}${binding.class === 'default' ? '' : ` of class ${oneLine(binding.class, 60)}`} is missed by ${percent(binding.share)}`
    : undefined;
  const at = `at ${percent(target)} attainment`;
  const seems =
    bracket.low !== null && bracket.high !== null
      ? `Single runs place it between ${rate(bracket.low)} and ${rate(bracket.high)}, which is a hint and no finding.`
      : bracket.low !== null
        ? `Single runs seemed to pass up to ${rate(bracket.low)}.`
        : undefined;
  const known =
    capacity.low !== null
      ? `Shown so far: ${rate(capacity.low)} passes.`
      : capacity.high !== null
        ? `Shown so far: ${rate(capacity.high)} fails.`
        : undefined;
  const present = (...lines: (string | undefined)[]): string[] => lines.filter((l) => l !== undefined);
  switch (report.end) {
    case 'found':
      return present(
        `Capacity ${trim(capacity.low as number, 4)} to ${trim(capacity.high as number, 4)} ${unit}/s ${at} (${percent(capacity.confidence)} confidence)`,
        report.goodput_at_capacity_rps === null
          ? undefined
          : `Goodput there ${trim(report.goodput_at_capacity_rps, 4)} requests/s${report.per_gpu_rps === null ? '' : `; capacity per GPU ${rate(report.per_gpu_rps)}`}.`,
        missed && `Beyond it ${missed}.`,
        cost,
      );
    case 'infeasible':
      return present(
        `Infeasible at any rate: ${missed ?? 'the target is missed'} when the server is almost unloaded`,
        cost,
      );
    case 'client-bound':
      return present(
        capacity.low === null
          ? 'Capacity not found: this client cannot offer the rates it needs'
          : `Capacity at least ${rate(capacity.low)} ${at}; this client can offer no more`,
        capacity.low === null ? seems : undefined,
        cost,
      );
    case 'above-range':
      return present(
        `Capacity above every rate tried${capacity.low === null ? '' : `: ${rate(capacity.low)} passes`}`,
        cost,
      );
    case 'undecided':
      return present('Capacity undecided: the runs allowed do not show it', known, seems, cost);
    case 'interrupted':
      return present('Capacity undecided: the search was ended before it was done', known, seems, cost);
    case 'sweep':
      return present(
        report.curve.length === 0 && report.probes.length > 0
          ? `Sweep over ${report.probes.length} rates: all void, nothing is known of the server`
          : `Sweep over ${report.probes.length} rates; the target is ${percent(target)}`,
        cost,
      );
  }
}

const LIMIT_WORDS: Readonly<Record<string, string>> = {
  ttft: 'the TTFT limit',
  ttfa: 'the TTFA limit',
  tpot: 'the TPOT limit',
  gap: 'the gap limit',
  smoothness: 'the smoothness limit',
  latency: 'the last-token limit',
  e2e: 'the E2E limit',
  'timed-out': 'the deadline',
};

function limitWords(limit: string): string {
  return LIMIT_WORDS[limit] ?? `a good end (${limit})`;
}

const percent = (x: Share): string => `${trim(100 * x, 3)} %`;
const quantile = (x: Millis | null): string => (x === null ? '∞' : formatDuration(x));
