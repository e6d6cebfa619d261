/** Prometheus recording rules and alerts of one contract: joint attainment, its burn, and what scaling needs. */
import type { Contract } from '../../core/contract.ts';
import { METRICS } from '../export/names.ts';
import { BURNS, budgetOf, type Threshold, thresholds } from './burn-rate.ts';

export interface RuleOptions {
  /** Bad operations an alert rests on at least, within its long window: below, one unlucky request would page. */
  readonly minBad: number;
  /** What one replica carries inside the contract, operations a second: from a capacity run or a plan. */
  readonly capacityPerReplica?: number;
  /** Replicas are sized for the offered rate times this. */
  readonly headroom: number;
}

export const RULE_DEFAULTS: RuleOptions = { minBad: 10, headroom: 1.2 };

export interface RecordingRule {
  readonly record: string;
  readonly expr: string;
}

export interface AlertRule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface RuleFile {
  readonly groups: readonly {
    readonly name: string;
    readonly interval?: string;
    readonly rules: readonly (RecordingRule | AlertRule)[];
  }[];
}

const by = (expr: string): string => `sum by (class) (${expr})`;
const rate = (metric: string, window: string): string => by(`rate(${metric}[${window}])`);

/** Every window an alert looks at, shortest first. */
export const WINDOWS: readonly string[] = ['5m', '30m', '1h', '6h', '3d'];

/** Names of the recorded series. */
export const RECORDED = {
  badShare: (window: string): string => `goodput:bad_share:rate${window}`,
  bad: (window: string): string => `goodput:bad:increase${window}`,
  attainment: 'goodput:attainment:rate5m',
  goodput: 'goodput:goodput_rps:rate5m',
  offered: 'goodput:offered_rps:rate2m',
  required: 'goodput:required_replicas',
} as const;

export function recordingRules(options: RuleOptions): readonly RecordingRule[] {
  const { good, judged, arrived } = METRICS;
  const rules: RecordingRule[] = [];
  for (const window of WINDOWS) {
    rules.push({
      record: RECORDED.badShare(window),
      expr: `1 - ${rate(good.name, window)} / ${rate(judged.name, window)}`,
    });
  }
  for (const window of new Set(BURNS.map((b) => b.long))) {
    rules.push({
      record: RECORDED.bad(window),
      expr: `${by(`increase(${judged.name}[${window}])`)} - ${by(`increase(${good.name}[${window}])`)}`,
    });
  }
  rules.push(
    { record: RECORDED.attainment, expr: `${rate(good.name, '5m')} / ${rate(judged.name, '5m')}` },
    { record: RECORDED.goodput, expr: rate(good.name, '5m') },
    { record: RECORDED.offered, expr: `sum(rate(${arrived.name}[2m]))` },
  );
  if (options.capacityPerReplica !== undefined) {
    rules.push({
      record: RECORDED.required,
      expr: `ceil(${RECORDED.offered} * ${options.headroom} / ${options.capacityPerReplica})`,
    });
  }
  return rules;
}

/** A share exactly on target must not exceed it by the noise of binary fractions (PromQL's round() leaves such noise too). */
const NOISE = '1e-9';

export function alertRules(contract: Contract, options: RuleOptions): readonly AlertRule[] {
  return thresholds(contract.attainment).map((t) => ({
    alert: alertName(t),
    expr:
      `${RECORDED.badShare(t.long)} > ${t.badShare} + ${NOISE} and ${RECORDED.badShare(t.short)} > ${t.badShare} + ${NOISE}` +
      ` and ${RECORDED.bad(t.long)} >= ${options.minBad}`,
    labels: { severity: t.severity, contract: contract.name },
    annotations: annotations(contract, t, '{{ $labels.class }}', '{{ $value | humanizePercentage }}'),
  }));
}

export const alertName = (t: Threshold): string => `GoodputBurn${t.name}`;

/** The alert's words; the test file expects the same with values in place of the templates. */
export function annotations(
  contract: Contract,
  t: Threshold,
  className: string,
  value: string,
): { summary: string; description: string } {
  const budget = budgetOf(contract.attainment);
  const burn = t.capped
    ? `the threshold of ${percent(t.badShare)} stands for ${t.multiple}x, which a budget of ${percent(budget)} cannot reach`
    : `${t.multiple} times the budget of ${percent(budget)}`;
  return {
    summary: `${className}: ${value} of operations miss contract ${contract.name} over ${t.long}`,
    description:
      `Attainment is below what ${percent(contract.attainment)} allows over ${t.long} and still over ${t.short} (${burn}). ` +
      'Counted jointly: an operation is bad when it missed any limit, failed, timed out or was refused.',
  };
}

const percent = (share: number): string => `${Number((100 * share).toPrecision(6))}%`;

export function ruleFile(contract: Contract, options: RuleOptions = RULE_DEFAULTS): RuleFile {
  return {
    groups: [
      { name: 'goodput-recording', rules: recordingRules(options) },
      { name: 'goodput-burn', rules: alertRules(contract, options) },
    ],
  };
}
