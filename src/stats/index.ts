export * from './beta.ts';
export * from './binomial.ts';
export * from './gamma.ts';
export * from './normal.ts';
export * from './quantile.ts';
export * from './sketch.ts';
