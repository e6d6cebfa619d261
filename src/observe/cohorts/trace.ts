/** W3C trace context, level 1: read and checked, never made up. */
import type { TraceContext } from './operation.ts';

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/** A valid `traceparent`; undefined for anything else, as the recommendation asks. */
export function traceContext(header: string | undefined): TraceContext | undefined {
  const m = TRACEPARENT.exec(header?.trim() ?? '');
  if (!m) return undefined;
  const [, version, traceId = '', parentId = '', flags = '0', more] = m;
  if (version === 'ff' || /^0+$/.test(traceId) || /^0+$/.test(parentId)) return undefined;
  if (version === '00' && more !== undefined) return undefined;
  return { traceId, parentId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}
