/** What one replica carries, read from the JSON of a capacity search or of a plan. */
import { InputError, messageOf, oneLine } from '../../base/errors.ts';

/**
 * The lower end of the capacity interval of `goodput capacity --json`, divided over the replicas that carried it; or the
 * rate a replica that the best row of `goodput plan --json` rests on. Operations a second.
 * @throws InputError when the text is neither, or found no capacity.
 */
export function capacityOf(text: string, file: string, replicas = 1): number {
  const where = oneLine(file);
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch (error) {
    throw new InputError(
      `${where}: is not JSON (${oneLine(messageOf(error))}); save the output of goodput capacity --json`,
    );
  }
  const { schema, capacity, rows } = (found ?? {}) as Record<string, unknown>;
  if (schema === 'goodput.capacity/1') {
    const low = (capacity as { low?: unknown } | undefined)?.low;
    if (typeof low === 'number' && low > 0) return low / replicas;
    throw new InputError(`${where}: that search found no rate inside the contract; look at its report first`);
  }
  if (schema === 'goodput.plan/1' && Array.isArray(rows)) {
    const best = (rows as Record<string, unknown>[]).find((r) => typeof r.gpus === 'number');
    const rate = best?.rate;
    if (typeof rate === 'number' && rate > 0) return rate;
    throw new InputError(`${where}: that plan found no deployment that carries the rate; look at why its rows lose`);
  }
  throw new InputError(
    `${where}: is neither a capacity nor a plan; save the output of goodput capacity --json or of goodput plan --json`,
  );
}
