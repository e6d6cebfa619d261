/** Reports: one plain object, and its renderers. */
export { ArrivalLog, arrivalsReport, type PlannedLoad } from './arrivals.ts';
export * from './build.ts';
export { type ClassFold, classReports } from './classes.ts';
export * from './compare.ts';
export * from './compare-render.ts';
export * from './compare-repeats.ts';
export * from './compare-run.ts';
export * from './compare-thresholds.ts';
export * from './compare-unlike.ts';
export * from './contract-text.ts';
export * from './formats/index.ts';
export { METRIC_WORDS } from './notes.ts';
export * from './render.ts';
export * from './report.ts';
export * from './request-row.ts';
export * from './spread.ts';
