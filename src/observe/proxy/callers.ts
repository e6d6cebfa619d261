/** Who asks, read from a request's headers: class, tenant, the operation's name, trace and request id. All bounded. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Millis } from '../../base/units.ts';
import { BoundedLabels, type Caller, type OperationName, traceContext } from '../cohorts/index.ts';
import type { ProxyOptions } from './options.ts';

/** Longer names of operations are no keys. */
const MAX_NAME = 256;
const MAX_REQUEST_ID = 128;

export class Callers {
  readonly #classHeader: string;
  readonly #tenantHeader: string | undefined;
  readonly #operationHeader: string | undefined;
  readonly #byTrace: boolean;
  readonly #classes: BoundedLabels;
  readonly #tenants: BoundedLabels;

  constructor(options: ProxyOptions) {
    this.#classHeader = (options.classHeader ?? 'x-goodput-class').toLowerCase();
    this.#tenantHeader = options.tenantHeader?.toLowerCase();
    this.#operationHeader = options.operationHeader?.toLowerCase();
    this.#byTrace = options.groupByTrace ?? true;
    this.#classes = new BoundedLabels(options.maxClasses ?? 16, 'default', [
      'default',
      ...Object.keys(options.classContracts ?? {}),
    ]);
    this.#tenants = new BoundedLabels(options.maxTenants ?? 64, '');
  }

  of(at: Millis, path: string, headers: IncomingHttpHeaders): Caller {
    const trace = traceContext(one(headers.traceparent));
    const tenant = this.#tenantHeader === undefined ? '' : this.#tenants.of(one(headers[this.#tenantHeader]));
    const name = this.#name(path, tenant, headers, trace?.traceId);
    return {
      at,
      class: this.#classes.of(one(headers[this.#classHeader])),
      tenant,
      ...(name && { name }),
      ...(trace && { trace }),
    };
  }

  #name(path: string, tenant: string, headers: IncomingHttpHeaders, traceId?: string): OperationName | undefined {
    const given = this.#operationHeader && one(headers[this.#operationHeader]);
    // Within one tenant and endpoint: two callers' keys may be the same by accident.
    const scoped = (value: string): string => `${tenant} ${path} ${value}`;
    if (given && given.length <= MAX_NAME) return { by: 'header', value: scoped(given) };
    const key = one(headers['idempotency-key']);
    if (key && key.length <= MAX_NAME) return { by: 'idempotency-key', value: scoped(key) };
    // A trace may hold many calls: only one of the very same length can be the same again.
    const length = headers['content-length'];
    if (this.#byTrace && traceId !== undefined && length !== undefined) {
      return { by: 'trace', value: scoped(`${traceId} ${length}`) };
    }
    return undefined;
  }
}

/** The first value, where a header came more than once. */
export function one(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}

/** `x-request-id`, where it is fit to be kept. */
export function requestIdOf(headers: IncomingHttpHeaders): string | undefined {
  const id = one(headers['x-request-id']);
  return id !== undefined && id.length <= MAX_REQUEST_ID && /^[\x21-\x7e]+$/.test(id) ? id : undefined;
}
