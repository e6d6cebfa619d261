/** A side as a table of quantities, each by every source that has it. */
import { type Estimate, SOURCES, type Source } from './estimate.ts';
import type { QuantityId } from './quantities.ts';

export type Measures = Map<QuantityId, Partial<Record<Source, Estimate>>>;

export function put(into: Measures, id: QuantityId, estimate: Estimate | undefined): void {
  if (!estimate || !Number.isFinite(estimate.value) || !Number.isFinite(estimate.se)) return;
  const had = into.get(id);
  if (had) had[estimate.source] = estimate;
  else into.set(id, { [estimate.source]: estimate });
}

/** The best source both sides have, and the two estimates. */
export function both(
  a: Measures,
  b: Measures,
  id: QuantityId,
): { readonly a: Estimate; readonly b: Estimate } | undefined {
  const [x, y] = [a.get(id), b.get(id)];
  if (!x || !y) return undefined;
  for (const source of SOURCES) if (x[source] && y[source]) return { a: x[source], b: y[source] };
  return undefined;
}

/** The best source a side has. */
export function best(table: Measures, id: QuantityId): Estimate | undefined {
  const own = table.get(id);
  if (!own) return undefined;
  for (const source of SOURCES) if (own[source]) return own[source];
  return undefined;
}
