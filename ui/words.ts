/** What things are called on the pages, as in the reports. */
import { formatDuration, trim } from '../src/base/units.ts';
import { type Contract, LIMIT_NAMES, type LimitName } from '../src/core/contract.ts';
import type { LedgerClass } from '../src/core/judge.ts';

export const LIMIT_WORDS: Readonly<Record<LimitName, string>> = {
  ttft: 'TTFT',
  ttfa: 'TTFA',
  tpot: 'TPOT',
  gap: 'max gap',
  smoothness: 'smoothness',
  latency: 'last-token latency',
  e2e: 'E2E',
};

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
  x === null || x === undefined ? '–' : `${trim(100 * x, digits)} %`;
export const ms = (x: number | null | undefined): string =>
  x === null || x === undefined || Number.isNaN(x) ? '–' : formatDuration(x);
export const figure = (x: number | null | undefined, digits = 4): string =>
  x === null || x === undefined ? '–' : trim(x, digits);
export const rate = (x: number | null | undefined): string => (x === null || x === undefined ? '–' : `${trim(x, 4)}/s`);
export const whole = (n: number): string => n.toLocaleString('en-US');

/** `2026-11-29 14:05:10` in the reader's own time. */
export function when(epoch: number | null): string {
  if (epoch === null) return '–';
  const d = new Date(epoch);
  const two = (n: number): string => String(n).padStart(2, '0');
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

export function limitText(name: LimitName, limit: number): string {
  return name === 'smoothness' ? `≥ ${percent(limit)}` : `≤ ${formatDuration(limit)}`;
}

export function contractText(contract: Contract): string {
  const limits = LIMIT_NAMES.flatMap((name) => {
    const limit = contract.limits[name];
    return limit === undefined ? [] : [`${LIMIT_WORDS[name]} ${limitText(name, limit)}`];
  });
  return [...limits, `deadline ${formatDuration(contract.deadline)}`].join(', ');
}
