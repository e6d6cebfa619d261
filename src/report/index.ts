/** Reports: one plain object, and its renderers. */
export * from './build.ts';
export * from './contract-text.ts';
export { METRIC_WORDS } from './notes.ts';
export * from './render.ts';
export * from './report.ts';
export * from './request-row.ts';
export * from './spread.ts';
