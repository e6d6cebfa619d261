/** Hardware × model × precision → step time and KV pool. Pure; runs in a browser. */
export * from './accelerator.ts';
export * from './adjusted.ts';
export * from './calibrated.ts';
export { ACCELERATORS } from './catalogue/accelerators.ts';
export { MODELS } from './catalogue/models.ts';
export * from './config.ts';
export * from './deployment.ts';
export * from './dtype.ts';
export * from './engines.ts';
export * from './ideal.ts';
export * from './lookup.ts';
export * from './operating.ts';
export * from './roofline.ts';
export * from './shape.ts';
export * from './step.ts';
