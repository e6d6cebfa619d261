/** What limits are called, and a contract on one line: the same words in reports, on terminals and on the pages. */
import { formatDuration, trim } from '../base/units.ts';
import type { Contract, LimitName } from './contract.ts';
import { limitsSet } from './judge.ts';

/** What each limit is called where people read it. */
export const LIMIT_WORDS: Readonly<Record<LimitName, string>> = {
  ttft: 'TTFT',
  ttfa: 'TTFA',
  tpot: 'TPOT',
  gap: 'max gap',
  smoothness: 'smoothness',
  latency: 'last-token latency',
  e2e: 'E2E',
};

/** `90 %`, to as many figures as it has. */
export function percentText(share: number, digits = 4): string {
  return `${trim(share * 100, digits)} %`;
}

/** `≤ 500 ms`, `≥ 99 %`. */
export function boundText(name: LimitName, limit: number): string {
  return name === 'smoothness' ? `≥ ${percentText(limit)}` : `≤ ${formatDuration(limit)}`;
}

/** `TTFT ≤ 500 ms`, `smoothness ≥ 99 %`. */
export function limitText(name: LimitName, limit: number): string {
  return `${LIMIT_WORDS[name]} ${boundText(name, limit)}`;
}

/** All limits on one line: `TTFT ≤ 500 ms, TPOT ≤ 50 ms, deadline 30 s`. */
export function limitsText(contract: Contract): string {
  const limits = limitsSet(contract.limits).map((name) => limitText(name, contract.limits[name] as number));
  return [...limits, `deadline ${formatDuration(contract.deadline)}`].join(', ');
}
