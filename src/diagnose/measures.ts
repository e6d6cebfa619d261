/** Every quantity of a side, from all it has. */

import { deriveFrom } from './derive.ts';
import { measureCohorts } from './measure-cohorts.ts';
import { measureEvidence } from './measure-evidence.ts';
import { measureRequests } from './measure-requests.ts';
import type { QuantityId } from './quantities.ts';
import type { Side } from './side.ts';
import { type Measures, put } from './table.ts';
import { toldError } from './told.ts';

export function measuresOf(side: Side): Measures {
  const into: Measures = new Map();
  if (side.requests) {
    measureRequests(side.requests, side.client, into);
    measureCohorts(side.requests, into);
  }
  if (side.evidence) measureEvidence(side.evidence, into);
  if (side.told) {
    for (const [id, value] of Object.entries(side.told.figures)) {
      const se = Math.max(toldError(value), 1e-9);
      put(into, id as QuantityId, { value, se, n: 0, source: 'told', population: side.told.source });
    }
  }
  acrossSources(side, into);
  deriveFrom(into);
  return into;
}

/** What needs both ends: delivery is the client's TTFT from sending less the server's own. */
function acrossSources(side: Side, into: Measures): void {
  // A KV transfer has a name of its own: what is left is the frontend's.
  const transfer = into.get('transfer')?.['server-metrics'];
  const frontend = into.get('frontend');
  if (transfer && frontend) {
    for (const source of ['server-per-request', 'server-metrics'] as const) {
      const own = frontend[source];
      if (own)
        put(into, 'frontend', { ...own, value: own.value - transfer.value, se: Math.hypot(own.se, 0.3 * transfer.se) });
    }
  }
  const server = into.get('server_ttft')?.['server-metrics'];
  const ttft = into.get('ttft')?.requests;
  const rows = side.requests?.rows;
  if (!server || !ttft || !rows || into.get('delivery')?.['server-per-request']) return;
  // Two populations: only where they are nearly the same in number is their difference one of the same requests.
  if (!(server.n > 0) || Math.abs(Math.log(server.n / ttft.n)) > 0.25) return;
  const before = (into.get('client')?.requests?.value ?? 0) + (into.get('connect')?.requests?.value ?? 0);
  put(into, 'delivery', {
    value: ttft.value - before - server.value,
    // The same requests on both sides: most of the spread is common.
    se: 0.35 * Math.hypot(ttft.se, server.se) + 0.01 * ttft.value,
    n: Math.min(ttft.n, server.n),
    source: 'server-metrics',
    population: `${ttft.n} requests at the client, ${server.n} at the server`,
  });
}
