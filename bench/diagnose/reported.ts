/**
 * Public reports as an outsider would feed them: their figures, and only those, as pairs of payloads in the engine's own
 * metric names, or told. Nothing of `src/diagnose` decides how a payload is made.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { type Diagnosis, diagnose, readChanges, readTold, type Side } from '../../src/diagnose/index.ts';
import { evidenceOf, SnapshotReader } from '../../src/observe/evidence/index.ts';

/** What is known of one side. Histograms are given by their mean over the window, counters by their growth in it. */
export interface ReportedSide {
  readonly requests?: number;
  readonly seconds?: number;
  readonly histograms?: Readonly<Record<string, number>>;
  readonly counters?: Readonly<Record<string, number>>;
  readonly gauges?: Readonly<Record<string, number>>;
  /** Figures of a client or a dashboard. */
  readonly figures?: Readonly<Record<string, unknown>>;
}

export interface Reported {
  readonly name: string;
  readonly report: string;
  readonly settled: 'yes' | 'no' | 'no-regression';
  readonly said: string;
  /** The order of collection: a batch was measured before anything was changed for it. */
  readonly batch: number;
  readonly before: ReportedSide;
  readonly after: ReportedSide;
  readonly changes?: unknown;
  readonly expected: {
    readonly verdict?: readonly string[];
    readonly top2?: readonly string[];
    /** At work as well, and no wrong answer. */
    readonly also?: readonly string[];
    readonly tell?: readonly string[];
    readonly regression?: readonly string[];
  };
}

const ROOT = new URL('../../samples/incidents/reported/', import.meta.url);

export function reportedIncidents(): Reported[] {
  return readdirSync(ROOT)
    .filter((f) => f.endsWith('.yaml'))
    .sort()
    .map((f) => {
      const one = parse(readFileSync(new URL(f, ROOT), 'utf8')) as Omit<Reported, 'name' | 'settled'> & {
        settled: string | boolean;
      };
      return { ...one, name: f.replace('.yaml', ''), settled: settledOf(one.settled) };
    });
}

const settledOf = (x: string | boolean): Reported['settled'] =>
  x === true || x === 'yes' ? 'yes' : x === 'no-regression' ? x : 'no';

/** How a payload is written: none of it changes what is said. */
export interface Writing {
  /** Buckets of histograms, or sums and counts alone. */
  readonly buckets?: boolean;
  readonly labels?: string;
  /** What the process had counted when the window began, as a multiple of the window. */
  readonly history?: number;
  /** Seconds by which the clock of the later scrape is wrong. */
  readonly skew?: number;
  /** The process restarted within the window: counters begin anew. */
  readonly restarted?: boolean;
}

const BOUNDS = [1, 1.5, 2, 3, 5, 7].flatMap((m) => [-4, -3, -2, -1, 0, 1, 2, 3, 4].map((e) => m * 10 ** e));
BOUNDS.sort((x, y) => x - y);

/** Bucket counts of n values around `mean` (log-normal), whose middle is moved so that the mean is right. */
function bucketsOf(mean: number, n: number, sigma: number): number[] {
  const z = (p: number): number => Math.log(p / (1 - p)) / 1.702;
  const raw = Array.from({ length: n }, (_, i) => Math.exp(sigma * z((i + 0.5) / n)));
  const scale = mean / (raw.reduce((s, x) => s + x, 0) / n);
  return BOUNDS.map((b) => raw.filter((x) => x * scale <= b).length);
}

export function payloads(side: ReportedSide, writing: Writing = {}): readonly [string, string] | undefined {
  const { requests = 200, histograms = {}, counters = {}, gauges = {} } = side;
  if ([histograms, counters, gauges].every((x) => Object.keys(x).length === 0)) return undefined;
  const { buckets = true, labels = 'model_name="m",engine="0"', history = 3, restarted = false } = writing;
  const text = (end: boolean): string => {
    const had = restarted ? (end ? 0 : history) : history;
    const lines: string[] = [];
    for (const [name, mean] of Object.entries(histograms)) {
      const n = Math.round(requests * (had + (end ? 1 : 0)));
      lines.push(`# TYPE ${name} histogram`);
      if (buckets) {
        const own = bucketsOf(mean, requests, /inter_token|per_output_token/.test(name) ? 0.1 : 0.4);
        BOUNDS.forEach((b, i) => {
          lines.push(`${name}_bucket{${labels},le="${b}"} ${Math.round(own[i]! * (had + (end ? 1 : 0)))}`);
        });
        lines.push(`${name}_bucket{${labels},le="+Inf"} ${n}`);
      }
      lines.push(`${name}_sum{${labels}} ${n * mean}`, `${name}_count{${labels}} ${n}`);
    }
    for (const [name, growth] of Object.entries(counters))
      lines.push(`# TYPE ${name} counter`, `${name}{${labels}} ${growth * (had + (end ? 1 : 0))}`);
    for (const [name, value] of Object.entries(gauges))
      lines.push(`# TYPE ${name} gauge`, `${name}{${labels}} ${value}`);
    return `${lines.join('\n')}\n`;
  };
  return [text(false), text(true)];
}

export function reportedSide(name: string, side: ReportedSide, writing: Writing = {}): Side {
  const texts = payloads(side, writing);
  const reader = new SnapshotReader();
  const start = 1_790_000_000_000;
  const end = start + 1000 * ((side.seconds ?? 300) + (writing.skew ?? 0));
  return {
    name,
    ...(texts && {
      evidence: evidenceOf([[reader.read(texts[0], 'server', start), reader.read(texts[1], 'server', end)]]),
    }),
    ...(side.figures && { told: readTold({ source: 'the report', figures: side.figures }, name) }),
    notes: [],
  };
}

export function diagnoseReported(r: Reported, writing: Writing = {}): Diagnosis {
  return diagnose(reportedSide('before', r.before, writing), reportedSide('after', r.after, writing), {
    changes: r.changes === undefined ? undefined : readChanges(r.changes, r.name),
  });
}

/** What is wrong with an answer, or nothing. */
export function faultsOf({ expected }: Reported, d: Diagnosis): string[] {
  const faults: string[] = [];
  if (expected.verdict && !expected.verdict.includes(d.verdict))
    faults.push(`verdict ${d.verdict}, not ${expected.verdict.join(' or ')}`);
  if (expected.regression && !expected.regression.includes(d.regression))
    faults.push(`regression ${d.regression}, not ${expected.regression.join(' or ')}`);
  if (expected.top2) {
    const hit = d.causes.slice(0, 2).find((c) => expected.top2!.includes(c.cause.id));
    if (!hit) faults.push(`first two: ${d.causes.slice(0, 2).map((c) => c.cause.id)}`);
    else {
      const evidence = hit.evidence.map((e) => e.fact.id as string);
      for (const tell of expected.tell ?? []) if (!evidence.includes(tell)) faults.push(`without its tell ${tell}`);
    }
  }
  return faults;
}

/** Named with confidence, and not what it was. */
export function isWronglySure(r: Reported, d: Diagnosis): boolean {
  if (d.verdict !== 'cause' && d.verdict !== 'trade') return false;
  if (r.settled === 'no') return true;
  const top = d.causes[0]?.cause.id;
  if (r.settled === 'no-regression') return d.regression === 'server';
  const named = d.causes
    .slice(0, 2)
    .filter((c) => c.confidence >= 0.5)
    .map((c) => c.cause.id);
  const right = [...(r.expected.top2 ?? []), ...(r.expected.also ?? [])];
  return r.expected.top2 !== undefined && top !== undefined && !named.some((id) => right.includes(id));
}

export function main(argv: readonly string[]): void {
  const batch = argv.includes('--batch') ? Number(argv[argv.indexOf('--batch') + 1]) : undefined;
  const all = reportedIncidents().filter((r) => batch === undefined || r.batch === batch);
  const tally = new Map<string, { n: number; right: number; sure: number }>();
  for (const r of all) {
    const d = diagnoseReported(r);
    const faults = faultsOf(r, d);
    const sure = isWronglySure(r, d);
    const t = tally.get(r.settled) ?? { n: 0, right: 0, sure: 0 };
    tally.set(r.settled, {
      n: t.n + 1,
      right: t.right + (faults.length === 0 ? 1 : 0),
      sure: t.sure + (sure ? 1 : 0),
    });
    const shown = d.causes.slice(0, 3).map((c) => `${c.cause.id} ${c.confidence.toFixed(2)}`);
    console.log(
      `${faults.length === 0 ? 'right' : sure ? 'WRONG' : 'miss '}  ${r.settled.padEnd(13)} ${r.name}: ${d.verdict}, none ${d.none.toFixed(2)}, ${shown.join(', ')}${faults.length > 0 ? `  [${faults.join('; ')}]` : ''}`,
    );
  }
  console.log('');
  for (const [settled, t] of tally)
    console.log(`settled ${settled}: ${t.right} of ${t.n} right, ${t.sure} sure of something else`);
}
