export * from './errors.ts';
export * from './heap.ts';
export * from './nearest.ts';
export * from './random.ts';
export * from './units.ts';
