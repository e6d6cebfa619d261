/** For tests: an import with its records in a list, by operation. */
import type { RequestRecord } from '../../core/record.ts';
import { type Imported, importResults } from './index.ts';

export async function importAll(
  path: string,
  entry?: number,
): Promise<Omit<Imported, 'records'> & { readonly records: readonly RequestRecord[] }> {
  const found = await importResults(path, entry);
  const records: RequestRecord[] = [];
  for await (const record of found.records) records.push(record);
  return { ...found, records: records.sort((a, b) => a.operation - b.operation) };
}
