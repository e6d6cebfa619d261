/** An HTTP server with vLLM's surface over any engine, with faults on demand. */
export type { ServedModel } from './body.ts';
export * from './engines.ts';
export { FAULT_NAMES, FAULTS, type FaultName, type FaultRate, parseFault } from './faults.ts';
export { type EmulatorHost, monotonicMillis, nodeHost } from './host.ts';
export type { Lateness } from './lateness.ts';
export type { EngineLoad } from './metrics.ts';
export { type Emulator, type ServerOptions, SURFACE_VERSION, serve } from './server.ts';
export type { ServedEngine } from './service.ts';
export { countTokens } from './words.ts';
