/** The Engine over HTTP: requests to a live server, stamped as their bytes are received. */
export { type LiveEngine, liveEngine } from './engine.ts';
export { BURST_EVENTS, BURST_SILENCE, type LiveEvidence } from './evidence.ts';
export type { LiveOptions } from './options.ts';
export { type ProbeResult, post, probe } from './probe.ts';
export { type Environment, type HttpProxy, isLoopback, proxyFor } from './proxy.ts';
export { keyFromEnvironment, redactUrl } from './secrets.ts';
export { type Target, targetOf } from './target.ts';
