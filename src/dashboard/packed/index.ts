/** The binary forms that the server writes and the pages read. Pure. */
export * from './chunks.ts';
export * from './form.ts';
export * from './judge.ts';
export * from './pack.ts';
export * from './stamps.ts';
