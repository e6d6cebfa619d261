/** What things are called on the pages, as in the reports. */
import { formatDuration, trim } from '../src/base/units.ts';
import type { LimitName } from '../src/core/contract.ts';
import type { LedgerClass } from '../src/core/judge.ts';
import { percentText } from '../src/core/limit-text.ts';

export { boundText, LIMIT_WORDS, limitsText } from '../src/core/limit-text.ts';

export const LIMIT_HELP: Readonly<Record<LimitName, string>> = {
  ttft: 'time to the first token',
  ttfa: 'time to the first token of the answer, reasoning left out',
  tpot: 'mean time of each token after the first',
  gap: 'the largest gap between two chunks',
  smoothness: 'share of tokens received by their deadline',
  latency: 'time to the last token',
  e2e: 'time to the end of the response',
};

/** Colours are the style sheet's: `--c-<class>`. */
export const ledgerColor = (c: LedgerClass): string => `var(--c-${c})`;

export const percent = (x: number | null | undefined, digits = 4): string =>
  x === null || x === undefined ? '–' : percentText(x, digits);
export const ms = (x: number | null | undefined): string =>
  x === null || x === undefined || Number.isNaN(x) ? '–' : formatDuration(x);
export const figure = (x: number | null | undefined, digits = 4): string =>
  x === null || x === undefined ? '–' : trim(x, digits);
export const rate = (x: number | null | undefined): string => (x === null || x === undefined ? '–' : `${trim(x, 4)}/s`);
const GROUPED = new Intl.NumberFormat('en-US');
export const whole = (n: number): string => GROUPED.format(n);

/** `2026-11-29 14:05:10` in the reader's own time. */
export function when(epoch: number | null): string {
  if (epoch === null) return '–';
  const d = new Date(epoch);
  const two = (n: number): string => String(n).padStart(2, '0');
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}
