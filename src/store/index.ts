/** Run folders: what a measurement leaves behind, and how it is read again. docs/run-folder.md is its reference. */
export * from './meta.ts';
export * from './reader.ts';
export type { Keep } from './retention.ts';
export * from './schemas.ts';
export * from './writer.ts';
