/** What `goodput live` prints: what people felt by window of arrival, then who served it, then engines side by side. */
import { oneLine } from '../base/errors.ts';
import { formatDuration, type Millis } from '../base/units.ts';
import type { DurationConcept, GaugeConcept, ReplicaEvidence } from '../core/evidence.ts';
import { LEDGER, type LedgerClass } from '../core/judge.ts';
import type { LiveSnapshot } from '../observe/cohorts/snapshot.ts';
import type { Look } from '../observe/live/poll.ts';
import { type WindowTogether, windowsTogether } from '../observe/live/together.ts';
import { type Paint, table } from '../report/text.ts';

export interface LiveTextOptions {
  readonly windows: number;
  readonly paint: Paint;
  /** ms since 1970. */
  readonly now: Millis;
}

const NONE = '-';

export function liveText(looks: readonly Look[], options: LiveTextOptions): string[] {
  const { paint } = options;
  const snapshots = looks.flatMap((l) => (l.kind === 'proxy' ? [l.snapshot] : []));
  const engines = looks.flatMap((l) => (l.kind === 'engine' ? l.replicas : []));
  const lines = [paint.bold(`goodput live · ${new Date(options.now).toISOString().slice(11, 19)} UTC`)];
  for (const look of looks) if (look.kind === 'down') lines.push(paint.red(`  ${look.url}: not seen (${look.why})`));
  if (snapshots.length > 0) lines.push(...traffic(snapshots, options));
  if (engines.length > 0) {
    const since = looks.some((l) => l.kind === 'engine' && l.since);
    lines.push('', paint.bold(since ? 'Engines, since their start' : 'Engines, since the last look'));
    lines.push(...table(engineRows(engines)));
    lines.push(paint.dim('  By their own clocks: no network, no proxy, no request that was aborted or refused.'));
    const skewed = skew(engines);
    if (skewed) lines.push(paint.yellow(`  ${skewed}`));
  }
  return lines;
}

function traffic(snapshots: readonly LiveSnapshot[], options: LiveTextOptions): string[] {
  const { paint } = options;
  const windows = windowsTogether(snapshots, options.windows);
  const lines: string[] = [];
  const contracts = new Map(snapshots.flatMap((s) => Object.entries(s.contracts)));
  for (const [name, c] of contracts) {
    const limits = Object.entries(c.limits).map(([limit, value]) =>
      limit === 'smoothness' ? `${limit} ≥ ${value}` : `${limit} ≤ ${formatDuration(value)}`,
    );
    lines.push(
      paint.dim(
        `  ${oneLine(name, 40)}: ${limits.join(', ')}, jointly, on ${share(c.attainment)} (contract ${oneLine(c.name, 40)})`,
      ),
    );
  }
  const target = Math.max(...[...contracts.values()].map((c) => c.attainment));
  lines.push('', paint.bold('By arrival'));
  // Outcomes nobody had are left out of the width, not out of the sum.
  const seen = LEDGER.filter((name) => name === 'good' || windows.some((w) => w.outcomes[name] > 0));
  const rows: string[][] = [
    [
      'window',
      'offered',
      ...seen,
      'open',
      'attainment',
      'goodput/s',
      'TTFT p50',
      'p99',
      'TPOT p50',
      'p99',
      'oldest wait',
    ],
    ...windows.map((w) => windowRow(w, seen)),
  ];
  const printed = table(rows);
  printed.forEach((line, i) => {
    const window = windows[i - 1];
    const missed = window?.attainment != null && window.attainment.high < target;
    lines.push(missed ? paint.red(line) : window?.state === 'final' || i === 0 ? line : paint.dim(line));
  });
  lines.push(
    paint.dim('  Quantiles over all final operations: those that ended without it rank as infinite. Dim: not final.'),
  );
  const nowRows: string[][] = [['now', 'in flight', 'waiting', 'queued here', 'oldest wait']];
  for (const s of snapshots)
    nowRows.push([
      oneLine(s.instance, 40),
      String(s.now.in_flight),
      String(s.now.waiting),
      String(s.now.queued),
      duration(s.now.oldest_waiting_ms),
    ]);
  lines.push('', ...table(nowRows));
  const upstreams = snapshots.flatMap((s) => s.upstreams);
  if (upstreams.length > 0) {
    lines.push('', paint.bold('Upstreams'));
    lines.push(
      ...table([
        ['upstream', 'in flight', 'cap', 'requests', 'failures', 'state'],
        ...upstreams.map((u) => [
          oneLine(u.url, 60),
          String(u.in_flight),
          u.max_concurrency === null ? NONE : String(u.max_concurrency),
          String(u.requests),
          String(u.failures),
          u.healthy ? 'used' : 'passed over',
        ]),
      ]),
    );
  }
  const dropped = snapshots.reduce((sum, s) => sum + s.records.dropped, 0);
  const problem = snapshots.find((s) => s.records.problem !== null)?.records.problem;
  if (dropped > 0 || problem)
    lines.push(
      paint.red(`  ${dropped} records dropped${problem ? `: ${oneLine(problem, 120)}` : ''}; traffic is untouched`),
    );
  return lines;
}

function windowRow(w: WindowTogether, seen: readonly LedgerClass[]): string[] {
  const a = w.attainment;
  return [
    new Date(1000 * w.start_s).toISOString().slice(11, 19),
    String(w.offered),
    ...seen.map((name) => String(w.outcomes[name])),
    String(w.pending),
    a === null ? NONE : a.high - a.low < 0.0005 ? share(a.low) : `${share(a.low)} to ${share(a.high)}`,
    w.goodput_rps === null ? NONE : w.goodput_rps.toFixed(w.goodput_rps < 10 ? 2 : 1),
    ...[w.ttft, w.tpot].flatMap((q) => [duration(q?.p50_ms ?? null), duration(q?.p99_ms ?? null)]),
    duration(w.oldest_waiting_ms),
  ];
}

function engineRows(engines: readonly ReplicaEvidence[]): string[][] {
  const mean = (r: ReplicaEvidence, concept: DurationConcept): string => {
    const o = r.durations[concept];
    return o?.sum !== undefined && o.count > 0 ? duration((1000 * o.sum) / o.count) : NONE;
  };
  const gauge = (r: ReplicaEvidence, concept: GaugeConcept, digits = 0): string =>
    r.gauges[concept]?.last.toFixed(digits) ?? NONE;
  return [
    ['replica', 'engine', 'requests', 'running', 'waiting', 'KV', 'queue', 'prefill', 'TTFT', 'ITL', 'E2E (means)', ''],
    ...engines.map((r) => [
      oneLine(r.replica, 50),
      r.engine,
      String(r.durations.ttft?.count ?? r.durations.e2e?.count ?? NONE),
      gauge(r, 'running'),
      gauge(r, 'waiting'),
      r.gauges.kv_usage ? share(r.gauges.kv_usage.last) : NONE,
      ...(['queue', 'prefill', 'ttft', 'itl', 'e2e'] as const).map((c) => mean(r, c)),
      r.reset ? 'restarted' : '',
    ]),
  ];
}

/** One replica that holds far more of what waits than the others do. */
function skew(engines: readonly ReplicaEvidence[]): string | undefined {
  const waiting = engines.flatMap((r) => (r.gauges.waiting ? [{ r, n: r.gauges.waiting.last }] : []));
  const total = waiting.reduce((sum, { n }) => sum + n, 0);
  const most = waiting.reduce<(typeof waiting)[number] | undefined>((a, b) => (!a || b.n > a.n ? b : a), undefined);
  if (!most || waiting.length < 2 || most.n < 5) return undefined;
  const others = (total - most.n) / (waiting.length - 1);
  return most.n > 3 * others + 5
    ? `${oneLine(most.r.replica, 50)} holds ${most.n} of ${total} waiting requests: look at how the balancer chooses`
    : undefined;
}

function duration(ms: Millis | 'inf' | null): string {
  if (ms === null) return NONE;
  return ms === 'inf' ? 'never' : formatDuration(ms);
}

const share = (x: number): string => `${(100 * x).toFixed(1)} %`;
