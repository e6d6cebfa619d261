/**
 * Unit tests of the written rules, for `promtool test rules`: every alert fires under total failure, none on target, none
 * on a trickle, and a page ends soon after recovery.
 */
import type { Contract } from '../../core/contract.ts';
import { METRICS } from '../export/names.ts';
import { type Threshold, thresholds } from './burn-rate.ts';
import { alertName, annotations, type RuleOptions } from './rules.ts';

export interface PromtoolTests {
  readonly rule_files: readonly string[];
  readonly evaluation_interval: string;
  readonly tests: readonly PromtoolTest[];
}

interface PromtoolTest {
  readonly name: string;
  readonly interval: string;
  readonly input_series: readonly { readonly series: string; readonly values: string }[];
  readonly alert_rule_test: readonly {
    readonly eval_time: string;
    readonly alertname: string;
    readonly exp_alerts: readonly { exp_labels: Record<string, string>; exp_annotations: Record<string, string> }[];
  }[];
}

/** Samples 2 minutes apart, so that the shortest window of 5 holds two; enough of them to fill the longest. */
const EVERY_MINUTES = 2;
const FILLED = (3 * 24 * 60) / EVERY_MINUTES + 5;

export function promtoolTests(contract: Contract, options: RuleOptions, rulesFile: string): PromtoolTests {
  const alerts = thresholds(contract.attainment);
  const [judged, good] = onTarget(contract.attainment);
  const silent = (at: string) =>
    alerts.map((t) => ({ eval_time: at, alertname: alertName(t), exp_alerts: [] as never[] }));
  const fires = (t: Threshold, at: string) => ({
    eval_time: at,
    alertname: alertName(t),
    exp_alerts: [
      {
        exp_labels: { severity: t.severity, contract: contract.name, class: 'default' },
        exp_annotations: annotations(contract, t, 'default', '100%'),
      },
    ],
  });
  return {
    rule_files: [rulesFile],
    evaluation_interval: '5m',
    tests: [
      {
        name: 'total failure: every alert fires',
        interval: `${EVERY_MINUTES}m`,
        input_series: series('0+120x200', '0+0x200'),
        alert_rule_test: alerts.map((t) => fires(t, t.long === '1h' ? '1h' : '6h')),
      },
      {
        name: 'on target: none fires',
        interval: `${EVERY_MINUTES}m`,
        input_series: series(`0+${judged}x${FILLED}`, `0+${good}x${FILLED}`),
        alert_rule_test: ['1h', '6h', '3d'].flatMap(silent),
      },
      {
        name: `low traffic: fewer than ${options.minBad} bad operations alert nobody`,
        interval: `${EVERY_MINUTES}m`,
        // One an hour, all bad: extrapolation may add a part of one.
        input_series: series('0+0x29 1+0x29 2+0x29', '0+0x90'),
        alert_rule_test: options.minBad > 3 ? silent('2h') : [],
      },
      {
        name: 'recovery: the fast page ends with its short window',
        interval: `${EVERY_MINUTES}m`,
        input_series: series('0+120x75', '0+0x45 120+120x29'),
        alert_rule_test: alerts
          .filter((t) => t.long === '1h')
          .flatMap((t) => [fires(t, '1h20m'), { eval_time: '1h45m', alertname: alertName(t), exp_alerts: [] }]),
      },
    ],
  };
}

function series(judged: string, good: string): PromtoolTest['input_series'] {
  const labels = '{class="default",tenant="",instance="proxy:9464"}';
  return [
    { series: `${METRICS.judged.name}${labels}`, values: judged },
    { series: `${METRICS.good.name}${labels}`, values: good },
  ];
}

/** Whole operations a minute whose share is the target: `[judged, good]`; the good rounded up where none is exact. */
function onTarget(target: number): readonly [number, number] {
  for (let judged = 10; judged <= 100_000; judged *= 10) {
    const good = judged * target;
    if (Math.abs(good - Math.round(good)) < 1e-9 * judged) return [judged, Math.round(good)];
  }
  return [100_000, Math.ceil(100_000 * target)];
}
