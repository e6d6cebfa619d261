/** Calibration on one's own measurements, and the plan: contract, workload and hardware to operating points. */
export * from './calibrate.ts';
export * from './choose.ts';
export * from './design.ts';
export * from './evaluate.ts';
export * from './fit.ts';
export * from './form.ts';
export * from './observations.ts';
export * from './options.ts';
export * from './pool.ts';
export * from './probe.ts';
export * from './profile.ts';
export * from './profile-step.ts';
export * from './receipts.ts';
export * from './replay.ts';
export * from './trade.ts';
export type { PlanTask } from './worker.ts';
