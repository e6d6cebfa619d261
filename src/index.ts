/**
 * The library: the vocabulary of records and contracts, the judge, the statistics, and the seams. What needs HTTP, files
 * or a process stays behind the command line.
 */
export * from './base/index.ts';
export * from './core/index.ts';
export * from './stats/index.ts';
