/** The arrivals and lengths of a run, again: so that a simulation answers exactly what was measured. */
import type { Millis } from '../base/units.ts';
import type { RequestRecord } from '../core/record.ts';
import type { Offer, Workload } from '../core/request.ts';

/**
 * Offers at the recorded times, of the lengths the server counted (or, unknown, as asked). Times start at the first.
 * @param from `scheduled`: when the load wanted them; `sent`: when they left the client, whose own lag is then not in them.
 */
export function replay(records: readonly RequestRecord[], from: 'scheduled' | 'sent' = 'scheduled'): Workload {
  const at = ({ stamps }: RequestRecord): Millis => stamps[from] ?? stamps.scheduled;
  const order = [...records].sort((a, b) => at(a) - at(b) || a.operation - b.operation);
  const origin: Millis = order[0] ? at(order[0]) : 0;
  let i = 0;
  return {
    next(): Offer | undefined {
      const r = order[i++];
      if (!r) return undefined;
      return {
        at: at(r) - origin,
        spec: {
          operation: r.operation,
          attempt: 0,
          class: r.class,
          inputTokens: Math.max(1, r.usage?.input ?? r.asked.input),
          outputTokens: Math.max(1, r.usage?.output ?? (r.timeline.length || r.asked.output)),
          choices: 1,
          stream: true,
          ignoreEos: true,
        },
      };
    },
    ended: () => [],
  };
}
