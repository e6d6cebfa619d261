/** A transparent streaming proxy that judges what passes through it. */

export { isLoopback } from './admin.ts';
export type { TransportCounts } from './exchange.ts';
export { type TlsIdentity, tlsIdentity } from './identity.ts';
export * from './options.ts';
export { type ProxyHost, type RunningProxy, startProxy } from './proxy.ts';
export { type TlsTrust, upstreamTargets } from './targets.ts';
export type { UpstreamTarget } from './upstream.ts';
