/** A Grafana dashboard of what people felt: joint attainment first, then what it is made of. JSON model, schema 39. */
import { type Contract, LIMIT_NAMES } from '../../core/contract.ts';
import { METRICS } from '../export/names.ts';
import { BURNS, budgetOf, thresholds } from './burn-rate.ts';
import { RECORDED, type RuleOptions } from './rules.ts';

interface Target {
  readonly expr: string;
  readonly legendFormat: string;
}

interface PanelRow {
  readonly title: string;
  readonly description: string;
  readonly unit: string;
  readonly targets: readonly Target[];
  readonly stacked?: boolean;
  readonly limit?: number;
  readonly max?: number;
}

const WINDOW = '$__rate_interval';
const SELECT = 'class=~"$class"';

const quantiles = (metric: string): readonly Target[] =>
  [0.5, 0.9, 0.99].map((q) => ({
    expr: `histogram_quantile(${q}, sum by (le) (rate(${metric}_bucket{${SELECT}}[${WINDOW}])))`,
    legendFormat: `p${100 * q}`,
  }));

function panels(contract: Contract, options: RuleOptions): readonly PanelRow[] {
  const seconds = (name: 'ttft' | 'tpot' | 'gap' | 'latency' | 'e2e'): { limit?: number } =>
    contract.limits[name] === undefined ? {} : { limit: (contract.limits[name] as number) / 1000 };
  return [
    {
      title: 'Attainment (joint)',
      description:
        'Share of final operations that met every limit of the contract at once. Two passing percentiles do not make this pass.',
      unit: 'percentunit',
      max: 1,
      limit: contract.attainment,
      targets: [{ expr: `${RECORDED.attainment}{${SELECT}}`, legendFormat: '{{class}}' }],
    },
    {
      title: 'Goodput and offered rate',
      description: 'Good operations a second beside those offered. A fall of both is a fall of demand, not a fault.',
      unit: 'reqps',
      targets: [
        { expr: `sum(${RECORDED.goodput}{${SELECT}})`, legendFormat: 'goodput' },
        { expr: RECORDED.offered, legendFormat: 'offered' },
      ],
    },
    {
      title: 'Error budget burn',
      description: `1 burns the budget of ${100 * budgetOf(contract.attainment)} % in its period; alerts look at two windows.`,
      unit: 'none',
      limit: Math.min(...thresholds(contract.attainment).map((t) => t.badShare)) / budgetOf(contract.attainment),
      targets: [...new Set(BURNS.flatMap((b) => [b.short, b.long]))].map((w) => ({
        expr: `max(${RECORDED.badShare(w)}{${SELECT}}) / ${budgetOf(contract.attainment)}`,
        legendFormat: w,
      })),
    },
    {
      title: 'Outcomes',
      description: 'Final operations by outcome: they add up to all of them.',
      unit: 'reqps',
      stacked: true,
      targets: [
        { expr: `sum by (outcome) (rate(${METRICS.final.name}{${SELECT}}[${WINDOW}]))`, legendFormat: '{{outcome}}' },
      ],
    },
    {
      title: 'Limits missed',
      description: 'Operations that missed each limit; one that missed two is counted under both.',
      unit: 'reqps',
      targets: [
        { expr: `sum by (limit) (rate(${METRICS.missed.name}{${SELECT}}[${WINDOW}]))`, legendFormat: '{{limit}}' },
      ],
    },
    {
      title: 'TTFT',
      description: 'Of operations that had a first output. Quantiles are interpolated inside a bucket.',
      unit: 's',
      ...seconds('ttft'),
      targets: quantiles(METRICS.ttft.name),
    },
    {
      title: 'TPOT',
      description: 'Mean time a token, one observation an operation: not the ITL.',
      unit: 's',
      ...seconds('tpot'),
      targets: quantiles(METRICS.tpot.name),
    },
    {
      title: 'Largest gap',
      description: 'The pause a person feels.',
      unit: 's',
      ...seconds('gap'),
      targets: quantiles(METRICS.gap.name),
    },
    {
      title: 'Last-token latency',
      description: 'From the receipt of a request to its last output, of completed operations.',
      unit: 's',
      ...seconds('latency'),
      targets: quantiles(METRICS.latency.name),
    },
    {
      title: 'E2E',
      description: 'Of completed operations.',
      unit: 's',
      ...seconds('e2e'),
      targets: quantiles(METRICS.e2e.name),
    },
    {
      title: 'Waiting',
      description: 'In flight without any output, and the age of the oldest: both lead, before anything is late.',
      unit: 'none',
      targets: [
        { expr: `sum(${METRICS.waiting.name})`, legendFormat: 'waiting' },
        { expr: `max(${METRICS.oldestWaiting.name}{${SELECT}})`, legendFormat: 'oldest, seconds' },
        { expr: `sum(${METRICS.inFlight.name})`, legendFormat: 'in flight' },
      ],
    },
    {
      title: 'In flight by upstream',
      description: 'One replica far above the others is an imbalance.',
      unit: 'none',
      targets: [{ expr: `sum by (upstream) (${METRICS.upstreamInFlight.name})`, legendFormat: '{{upstream}}' }],
    },
    ...(options.capacityPerReplica === undefined
      ? []
      : [
          {
            title: 'Replicas required',
            description: `Offered rate x ${options.headroom} over the ${options.capacityPerReplica} a second that one replica carries inside the contract.`,
            unit: 'none',
            targets: [{ expr: RECORDED.required, legendFormat: 'required' }],
          },
        ]),
  ];
}

/** The dashboard, to import or to provision. Its data source is a variable, its classes too. */
export function grafanaDashboard(contract: Contract, options: RuleOptions): object {
  const WIDE = 12;
  const HIGH = 8;
  return {
    title: `goodput: ${contract.name}`,
    uid: `goodput-${slug(contract.name)}`,
    schemaVersion: 39,
    version: 1,
    editable: true,
    tags: ['goodput', 'llm'],
    time: { from: 'now-6h', to: 'now' },
    refresh: '30s',
    description: `Contract ${contract.name}: ${promise(contract)}`,
    templating: {
      list: [
        { name: 'datasource', type: 'datasource', query: 'prometheus', label: 'Data source' },
        {
          name: 'class',
          type: 'query',
          label: 'Class',
          datasource: { type: 'prometheus', uid: '$datasource' },
          query: { query: `label_values(${METRICS.judged.name}, class)`, refId: 'class' },
          includeAll: true,
          multi: true,
          allValue: '.*',
          current: { text: 'All', value: '$__all' },
          refresh: 2,
        },
      ],
    },
    panels: panels(contract, options).map((panel, i) => ({
      id: i + 1,
      type: 'timeseries',
      title: panel.title,
      description: panel.description,
      datasource: { type: 'prometheus', uid: '$datasource' },
      gridPos: { x: (i % 2) * WIDE, y: Math.floor(i / 2) * HIGH, w: WIDE, h: HIGH },
      targets: panel.targets.map((t, n) => ({ ...t, refId: String.fromCharCode(65 + n) })),
      fieldConfig: {
        defaults: {
          unit: panel.unit,
          min: 0,
          ...(panel.max !== undefined && { max: panel.max }),
          custom: {
            ...(panel.stacked && { stacking: { mode: 'normal' }, fillOpacity: 40 }),
            ...(panel.limit !== undefined && { thresholdsStyle: { mode: 'line' } }),
          },
          ...(panel.limit !== undefined && {
            thresholds: {
              mode: 'absolute',
              steps: [
                { color: 'transparent', value: null },
                { color: 'red', value: panel.limit },
              ],
            },
          }),
        },
        overrides: [],
      },
    })),
  };
}

const slug = (name: string): string =>
  name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, 30);

function promise(contract: Contract): string {
  const limits = LIMIT_NAMES.flatMap((name) => {
    const limit = contract.limits[name];
    return limit === undefined ? [] : [name === 'smoothness' ? `${name} >= ${limit}` : `${name} <= ${limit} ms`];
  });
  return `${limits.join(', ')} on ${100 * contract.attainment} % of operations, jointly`;
}
