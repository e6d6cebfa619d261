/**
 * What a pool's mean hides: requests by time since the window began, by whether their class was just served, by prompt
 * length, and whether TTFT has two modes.
 */
import type { Millis } from '../base/units.ts';
import { type Estimate, meanEstimate } from './estimate.ts';
import type { QuantityId } from './quantities.ts';
import type { RequestRow, Requests } from './side.ts';
import { type Measures, put } from './table.ts';

const FEWEST = 60;
/** Classes served most recently that an engine is taken to hold at once (adapters, loaded models). */
const HELD = 2;

export function measureCohorts({ rows }: Requests, into: Measures): void {
  const timed = rows.filter((r) => r.ttft !== undefined);
  if (timed.length < FEWEST) return;
  const first = timed.slice(0, Math.floor(timed.length / 10)).map((r) => r.ttft as Millis);
  if (first.length >= 20) put(into, 'ttft_early', meanEstimate(first, 'requests', `${first.length} requests`));
  ratio(into, 'early', ...split(timed, (_, i) => i < timed.length / 10), (r) => r.ttft);
  const classes = new Set(timed.map((r) => r.class));
  if (classes.size > HELD) {
    const recent: string[] = [];
    const fresh = timed.map((r) => {
      const isHeld = recent.includes(r.class);
      if (isHeld) recent.splice(recent.indexOf(r.class), 1);
      recent.push(r.class);
      if (recent.length > HELD) recent.shift();
      return !isHeld;
    });
    ratio(into, 'switched', ...split(timed, (_, i) => fresh[i] as boolean), (r) => r.ttft);
  }
  byLength(timed, into);
  bimodal(timed, into);
}

function split(
  rows: readonly RequestRow[],
  isFirst: (r: RequestRow, i: number) => boolean,
): [RequestRow[], RequestRow[]] {
  const first: RequestRow[] = [];
  const second: RequestRow[] = [];
  rows.forEach((r, i) => void (isFirst(r, i) ? first : second).push(r));
  return [first, second];
}

function ratio(
  into: Measures,
  id: QuantityId,
  some: readonly RequestRow[],
  rest: readonly RequestRow[],
  of: (r: RequestRow) => number | undefined,
): void {
  const mean = (rows: readonly RequestRow[]): Estimate | undefined =>
    meanEstimate(
      rows.map(of).filter((x) => x !== undefined),
      'requests',
      '',
    );
  const [x, y] = [mean(some), mean(rest)];
  if (!x || !y || x.n < 8 || y.n < 8 || !(y.value > 0)) return;
  const value = x.value / y.value;
  put(into, id, {
    value,
    se: value * Math.hypot(x.se / Math.max(x.value, 1e-9), y.se / y.value),
    n: x.n + y.n,
    source: 'requests',
    population: `${x.n} requests against ${y.n}`,
  });
}

/** Prefill where the server told it, else the wait for the first token, of long prompts against short ones. */
function byLength(rows: readonly RequestRow[], into: Measures): void {
  const known = rows.filter((r) => r.prompt !== undefined).sort((a, b) => a.prompt! - b.prompt!);
  const third = Math.floor(known.length / 3);
  if (third < 20 || known[third]!.prompt! * 1.5 > known[known.length - third]!.prompt!) return;
  const prefill = known.filter((r) => r.prefill !== undefined).length > 0.8 * known.length;
  ratio(into, 'long_short', known.slice(-third), known.slice(0, third), (r) =>
    prefill ? r.prefill : r.ttft! - (r.client ?? 0) - (r.queue ?? 0),
  );
}

/** Between-mode distance over within-mode spread of ln TTFT, at the split that minimises the spread (Otsu 1979). */
function bimodal(rows: readonly RequestRow[], into: Measures): void {
  const x = Float64Array.from(rows, (r) => Math.log(Math.max(r.ttft as Millis, 0.1))).sort();
  const n = x.length;
  let sum = 0;
  let squares = 0;
  for (const v of x) {
    sum += v;
    squares += v * v;
  }
  let best = Number.POSITIVE_INFINITY;
  let value = 0;
  let s = 0;
  let q = 0;
  for (let k = 1; k < n; k++) {
    s += x[k - 1]!;
    q += x[k - 1]! ** 2;
    if (k < 0.08 * n || k > 0.92 * n) continue;
    const within = q - (s * s) / k + (squares - q) - (sum - s) ** 2 / (n - k);
    if (within >= best) continue;
    best = within;
    value = ((sum - s) / (n - k) - s / k) / Math.sqrt(Math.max(within / n, 1e-6));
  }
  put(into, 'bimodal', { value, se: 0.4, n, source: 'requests', population: `${n} requests` });
}
