/** Operations of real traffic and their live cohorts: what proxy and client share, and what exporters listen to. */
export * from './cohort.ts';
export * from './labels.ts';
export * from './live.ts';
export * from './operation.ts';
export * from './operations.ts';
export * from './redact.ts';
export * from './snapshot.ts';
export * from './trace.ts';
