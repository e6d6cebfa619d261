/** A plan for people. */
import { formatDuration, trim } from '../base/units.ts';
import type { Excluded, PlanAsk, PlanRow, TradeRow } from '../plan/index.ts';
import { limitsText, percentText } from '../report/contract-text.ts';
import { table, wrapText } from '../report/text.ts';
import type { Asked } from './plan-ask.ts';

/** Rows shown; `--json` and `--csv` hold all. */
const SHOWN = 24;

export interface Planned {
  readonly rows: readonly PlanRow[];
  readonly excluded: readonly Excluded[];
  readonly trade: readonly TradeRow[];
  readonly protect: readonly string[];
}

export function planLines({ ask, traffic, isDefault, remarks }: Asked, plan: Planned): string[] {
  const { rows, excluded, trade, protect } = plan;
  const origin = isDefault ? `'${ask.contract.name}', since none was given: ` : '';
  const wrapped = (head: string, text: string): string => wrapText(text, 110, head.padEnd(10), ' '.repeat(10));
  const out = [
    `Plan for ${ask.model.name}, ${percentText(ask.headroom, 3)} headroom; ${basisText(ask)}`,
    wrapped('Traffic', traffic),
    wrapped('Contract', `${origin}${limitsText(ask.contract)}, for ${percentText(ask.contract.attainment)}`),
    ...Object.entries(ask.contracts ?? {}).map(([name, c]) =>
      wrapped('', `class ${name}: ${limitsText(c)}, for ${percentText(c.attainment)} of its own`),
    ),
    wrapped(
      'Method',
      `concurrency is capped at the largest batch that meets the pace for the target share of requests (${percentText(ask.contract.attainment)}); the rate a replica so capped sustains is found by simulation; then replicas are added, never a larger batch`,
    ),
    '',
  ];
  const best = rows.find((r) => r.gpus !== null);
  out.push(
    best
      ? wrapped(
          'Answer',
          `${best.replicas} replicas of ${label(best)}, batch cap ${best.cap}, prompt budget ${best.chunk}: ${best.gpus} GPUs${best.cost_per_hour === null ? '' : `, ${trim(best.cost_per_hour, 4)} an hour`}`,
        )
      : wrapped('Answer', 'nothing that was tried holds the contract at any rate'),
    '',
    ...table([
      ['', 'replica', 'chunk', 'cap', 'by', 'rate/replica', 'replicas', 'GPUs', 'cost/h', 'TTFT p90', 'TPOT p90'],
      ...rows
        .slice(0, SHOWN)
        .map((r) => [
          r.frontier ? '*' : '',
          label(r),
          String(r.chunk),
          String(r.cap),
          r.cap_bound,
          rateText(r),
          String(r.replicas ?? '–'),
          String(r.gpus ?? '–'),
          r.cost_per_hour === null ? '–' : trim(r.cost_per_hour, 4),
          ms(r.ttft_p90_ms),
          ms(r.tpot_p90_ms),
        ]),
    ]),
    '  * on the frontier of cost (or GPUs), TTFT and TPOT; ~ rate not confirmed by replications',
  );
  if (rows.length > SHOWN) out.push(`  … and ${rows.length - SHOWN} more, in --json and --csv`);
  out.push('', 'Why');
  for (const [why, labels] of reasons(rows.slice(0, SHOWN)))
    out.push(wrapText(`${labels.join('; ')}: ${why}`, 110, '  ', '    '));
  if (excluded.length > 0) {
    out.push('', 'Not tried');
    for (const e of excluded.slice(0, 12)) out.push(wrapText(`${e.label}: ${e.why}`, 110, '  ', '    '));
    if (excluded.length > 12) out.push(`  … and ${excluded.length - 12} more, in --json`);
  }
  if (trade.length > 0) {
    out.push(
      '',
      'What a larger batch buys and costs (a replica of the first row, its batch kept full)',
      ...table([
        ['batch', 'requests/s', 'tokens/s', 'TTFT p90', 'TPOT p90', 'E2E p90'],
        ...trade.map((t) => [
          String(t.batch),
          trim(t.requestsPerSecond, 3),
          trim(t.tokensPerSecond, 4),
          ms(t.ttftP90),
          ms(t.tpotP90),
          ms(t.e2eP90),
        ]),
      ]),
      'Which metric to protect',
      ...protect.map((s) => wrapText(s, 110, '  ', '    ')),
    );
  }
  const beyond = new Set(rows.filter((r) => r.gpus !== null).flatMap((r) => r.beyond));
  const notes = [...remarks, ...beyond];
  if (notes.length > 0)
    out.push('', 'Beyond the data of the step model', ...notes.map((b) => wrapText(b, 110, '  ', '    ')));
  return out;
}

/** Rows that lose by the same thing, together. */
function reasons(rows: readonly PlanRow[]): Map<string, string[]> {
  const by = new Map<string, string[]>();
  for (const r of rows) {
    const labels = by.get(r.why) ?? [];
    labels.push(`${label(r)}, ${r.chunk}`);
    by.set(r.why, labels);
  }
  return by;
}

const ms = (x: number | null): string => (x === null ? '–' : formatDuration(Number(x.toPrecision(3))));

function label(r: PlanRow): string {
  return `${r.tp} × ${r.gpu} ${r.weights}${r.kv === 'bf16' ? '' : ` kv ${r.kv}`}`;
}

function rateText(r: PlanRow): string {
  if (r.gpus === null) return '0';
  if (!r.confirmed) return `~${trim(r.rate, 3)}`;
  return `${trim(r.rate_low ?? 0, 3)} to ${r.rate_high === null ? '?' : trim(r.rate_high, 3)}`;
}

function basisText(ask: PlanAsk): string {
  if (ask.profile) return `calibrated by the profile '${ask.profile.profile.name}'`;
  if (ask.basis === 'ideal') return 'IDEAL step times: no real engine is this fast';
  return ask.engine ? `calibrated step times (served rows of ${ask.engine})` : 'calibrated step times (served rows)';
}
