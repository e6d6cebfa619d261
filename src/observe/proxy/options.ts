/** What a proxy needs to know. Plain data. */
import type { Millis } from '../../base/units.ts';
import type { Contract } from '../../core/contract.ts';
import type { OperationListener } from '../cohorts/index.ts';
import type { TlsIdentity } from './identity.ts';
import type { UpstreamTarget } from './upstream.ts';

export interface ProxyOptions {
  readonly upstreams: readonly UpstreamTarget[];
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** Speak TLS to callers. */
  readonly tls?: TlsIdentity;
  readonly contract: Contract;
  /** Contracts of traffic classes that have their own. */
  readonly classContracts?: Readonly<Record<string, Contract>>;
  /** Header that names the traffic class, default `x-goodput-class`. */
  readonly classHeader?: string;
  /** Header that names the tenant; without one there are no tenants. */
  readonly tenantHeader?: string;
  /** Distinct classes and tenants at most, the rest is `other`. Default 16 and 64. */
  readonly maxClasses?: number;
  readonly maxTenants?: number;
  /** Header by which callers name an operation, before `Idempotency-Key`. */
  readonly operationHeader?: string;
  /** Join attempts of one trace that follow one another, default true. */
  readonly groupByTrace?: boolean;
  /** How long a named operation waits for a further attempt. */
  readonly retryWindow?: Millis;
  /** Requests an upstream may have in flight; without it everything is sent on at once. */
  readonly maxConcurrency?: number;
  /** With a cap: how long a request may wait, default its TTFT limit or deadline. */
  readonly maxQueueAge?: Millis;
  readonly maxQueue?: number;
  readonly preserveHost?: boolean;
  readonly connectTimeout?: Millis;
  /** For a client to send its head, and its whole request. */
  readonly headersTimeout?: Millis;
  readonly requestTimeout?: Millis;
  /** For a client to take what waits for it, default 5 min: it holds a place at the upstream meanwhile. */
  readonly stallTimeout?: Millis;
  /** Bytes of a request's head, default 64 KiB. */
  readonly maxHeaderBytes?: number;
  /** Length of a live window. */
  readonly window?: Millis;
  readonly listeners?: readonly OperationListener[];
  /** Admin port; none without it. */
  readonly admin?: AdminOptions;
}

export interface AdminOptions {
  readonly host: string;
  readonly port: number;
  /** Let others than this machine ask. */
  readonly open?: boolean;
}
