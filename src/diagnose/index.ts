/** Evidence of two windows → additive attribution → ranked causes, or `unknown`. Pure; runs in a browser. */
export * from './attribution.ts';
export * from './attribution-tpot.ts';
export * from './causes/index.ts';
export * from './change.ts';
export * from './changes.ts';
export * from './diagnose.ts';
export * from './facts.ts';
export * from './fold.ts';
export * from './json.ts';
export type { Missing } from './missing.ts';
export * from './quantities.ts';
export type { RuledOut } from './ruled-out.ts';
export * from './score.ts';
export * from './side.ts';
export * from './told.ts';
