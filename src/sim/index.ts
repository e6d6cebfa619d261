/** Iteration-level simulation of a serving system, and its two doors. Pure; runs in a browser. */
export * from './build.ts';
export * from './chrome-trace.ts';
export * from './cluster.ts';
export * from './continuous.ts';
export * from './disaggregated.ts';
export * from './frontend.ts';
export * from './held-batch.ts';
export * from './limits.ts';
export * from './link.ts';
export * from './paced.ts';
export * from './record-of.ts';
export * from './router.ts';
export * from './scripted.ts';
export * from './sim-engine.ts';
export * from './simulate.ts';
export * from './speculative.ts';
export * from './static.ts';
