/** The capacity search: pure, resumable, the same for a live server and a simulated one. */
export * from './assess.ts';
export * from './cost.ts';
export * from './fold.ts';
export * from './knee.ts';
export * from './outcome.ts';
export * from './run.ts';
export * from './search.ts';
export * from './types.ts';
