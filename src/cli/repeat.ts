/**
 * `bench --repeat N [--against URL]`: the same measurement several times, each with a seed of its own; against another
 * server in pairs of one seed, interleaved, so that what drifts with time meets both sides alike.
 */
import { randomUUID } from 'node:crypto';
import { keyed } from '../base/random.ts';
import { formatDuration } from '../base/units.ts';
import { percentText } from '../report/contract-text.ts';
import type { Report } from '../report/index.ts';
import { type Cli, EXIT } from './cli.ts';

/** Where a run stands among repeated ones; kept as `workload.group` in `run.json`. */
export interface RunGroup {
  readonly id: string;
  readonly side: 'A' | 'B';
  /** The pair, from 0. Both of a pair have one seed. */
  readonly repeat: number;
}

export interface RepeatPlan {
  readonly times: number;
  readonly seed: number;
  readonly json: boolean;
  readonly against: boolean;
  /** Measures one run. */
  readonly once: (side: 'A' | 'B', seed: number, group: RunGroup) => Promise<{ folder: string; report: Report }>;
}

/** Which side goes first in each pair: drawn for the first, then in turn. */
export function orderOf(times: number, seed: number): ('AB' | 'BA')[] {
  const first = keyed(seed, 'repeat-order')() < 0.5;
  return Array.from({ length: times }, (_, i) => ((i % 2 === 0) === first ? 'AB' : 'BA'));
}

/** A run in a line: what it showed, and whether it may be believed. */
function shownText(report: Report): string {
  const { value } = report.attainment;
  const ttft = report.metrics.ttft_ms;
  return [
    value === null ? 'no attainment' : `${percentText(value, 3)} good`,
    ...(ttft ? [`TTFT mean ${formatDuration(ttft.mean)}`] : []),
    ...(report.client.verdict === 'client-bound' ? ['CLIENT-BOUND'] : []),
  ].join(', ');
}

export async function repeated(cli: Cli, plan: RepeatPlan): Promise<void> {
  const id = randomUUID().slice(0, 8);
  const folders: Record<'A' | 'B', string[]> = { A: [], B: [] };
  const reports: Report[] = [];
  const orders = orderOf(plan.times, plan.seed);
  if (plan.against) {
    cli.stderr.line(`Repeats   ${plan.times} runs a side, in turn: ${orders.join(' ')}; both of a pair have one seed`);
  }
  for (const [repeat, order] of orders.entries()) {
    const sides = (plan.against ? [...order] : ['A']) as ('A' | 'B')[];
    for (const side of sides) {
      const seed = plan.seed + repeat;
      cli.stderr.line(`Run ${repeat + 1} of ${plan.times}${plan.against ? `, side ${side}` : ''}, seed ${seed}`);
      const { folder, report } = await plan.once(side, seed, { id, side, repeat });
      folders[side].push(folder);
      reports.push(report);
      cli.stderr.line(`          ${shownText(report)}. Run folder: ${folder}`);
      if (report.run.cut !== undefined) {
        cli.stderr.line(`Stopped: ${report.run.cut}; no further runs.`);
        cli.exit(EXIT.invalid);
        return;
      }
    }
  }
  if (plan.against) {
    const { runCompare } = await import('./compare.ts');
    cli.stderr.line(`Again: goodput compare --a ${folders.A.join(',')} --b ${folders.B.join(',')}`);
    await runCompare.call(cli, { a: folders.A, b: folders.B, onlyShown: false, anyway: false, json: plan.json });
    return;
  }
  const { repeatsText } = await import('../report/index.ts');
  if (plan.json)
    cli.stdout.write(
      `${JSON.stringify({ schema: 'goodput.repeat/1', group: id, folders: folders.A, reports }, null, 2)}\n`,
    );
  else cli.stdout.write(repeatsText(reports));
  const isBound = reports.some((r) => r.client.verdict === 'client-bound');
  cli.exit(isBound ? EXIT.invalid : reports.every((r) => r.attainment.met) ? EXIT.ok : EXIT.missed);
}
