/** Looking at proxies and engines while they run: `goodput live`. */
export * from './poll.ts';
export * from './together.ts';
