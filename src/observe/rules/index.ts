/** Alert rules, their proof, the dashboard and the autoscaling example of one contract. */
export * from './burn-rate.ts';
export * from './capacity-of.ts';
export * from './grafana.ts';
export * from './keda.ts';
export * from './promtool-tests.ts';
export * from './rules.ts';
