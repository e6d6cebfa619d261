export * from './drive.ts';
export * from './retry.ts';
export * from './self-watch.ts';
export * from './window.ts';
