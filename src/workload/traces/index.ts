/** Traces of real traffic, and their replay. */
export * from './formats.ts';
export { BAILIAN_BLOCK_TOKENS, MOONCAKE_BLOCK_TOKENS } from './mooncake.ts';
export * from './replay.ts';
export * from './scale.ts';
export { traceArrivals } from './sessions.ts';
export { MAX_REQUESTS, type Slice, type Trace, TraceBuilder, type TraceOptions, traceSpan } from './trace.ts';
